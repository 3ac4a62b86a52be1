//go:build kafka

package outbox_test

import (
	"os"
	"testing"

	"github.com/vitrip/journeyman/events"
)

// transports is a real Apache Kafka that all tests share.
func transports() []transport { return []transport{{"kafka", serveKafka, dial}} }

// serveKafka gives its address, and a prefix of the test's own.
func serveKafka(t *testing.T) (addrs []string, prefix string) {
	t.Helper()
	addr := os.Getenv("JOURNEYMAN_TEST_KAFKA")
	if addr == "" {
		t.Fatal("JOURNEYMAN_TEST_KAFKA names no broker: run make kafka")
	}
	return []string{addr}, events.NewID() + "."
}
