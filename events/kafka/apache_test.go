//go:build kafka

package kafka_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/kafka"
)

// copies is how many copies of a topic the brokers can keep: one, or what JOURNEYMAN_TEST_KAFKA_COPIES says.
func copies(t *testing.T) int {
	t.Helper()
	text := os.Getenv("JOURNEYMAN_TEST_KAFKA_COPIES")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("JOURNEYMAN_TEST_KAFKA_COPIES %q, want a number from 1", text)
	}
	return n
}

// The conformance suite against a real Apache Kafka: one node (make kafka), or three with as many copies of each topic (make soak).
func TestConformance_Apache(t *testing.T) {
	t.Parallel()
	addr := os.Getenv("JOURNEYMAN_TEST_KAFKA")
	if addr == "" {
		t.Fatal("JOURNEYMAN_TEST_KAFKA names no broker: run make kafka")
	}
	replication := copies(t)
	eventstest.Transport(t, func(t *testing.T) eventstest.Broker {
		t.Helper()
		c, err := kafka.New(kafka.Config{Brokers: []string{addr}, SessionTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return eventstest.Shared(eventstest.Broker{Publisher: c, Subscriber: c, Admin: c, MaxBytes: 1 << 20, Replication: replication}, events.NewID()+".")
	})
}

func TestEnsureTopics_RetentionOfTheCatalog_Apache_E3(t *testing.T) {
	t.Parallel()
	addr := os.Getenv("JOURNEYMAN_TEST_KAFKA")
	if addr == "" {
		t.Fatal("JOURNEYMAN_TEST_KAFKA names no broker: run make kafka")
	}
	c, err := kafka.New(kafka.Config{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	retention(t, c, addr, events.NewID()+".")
}
