//go:build kafka

package deadletter_test

import (
	"os"
	"testing"

	"github.com/vitrip/journeyman/events"
)

// brokers gives the address of a real Apache Kafka that all tests share, and a prefix of the test's own.
func brokers(t *testing.T) (addrs []string, prefix string) {
	t.Helper()
	addr := os.Getenv("JOURNEYMAN_TEST_KAFKA")
	if addr == "" {
		t.Fatal("JOURNEYMAN_TEST_KAFKA names no broker: run make kafka")
	}
	return []string{addr}, events.NewID() + "."
}
