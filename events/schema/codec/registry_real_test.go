//go:build kafka

package codec_test

import (
	"os"
	"testing"

	"github.com/vitrip/journeyman/events"
)

// services gives the addresses of a real Apache Kafka and a real Apicurio Registry that all tests share, and a prefix of the test's own.
func services(t *testing.T) (addrs []string, prefix, registryURL string) {
	t.Helper()
	addr, url := os.Getenv("JOURNEYMAN_TEST_KAFKA"), os.Getenv("JOURNEYMAN_TEST_REGISTRY")
	if addr == "" || url == "" {
		t.Fatal("JOURNEYMAN_TEST_KAFKA and JOURNEYMAN_TEST_REGISTRY name no services: run make kafka")
	}
	return []string{addr}, events.NewID() + ".", url
}
