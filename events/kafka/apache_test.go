//go:build kafka

package kafka_test

import (
	"os"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/kafka"
)

// The conformance suite against a real Apache Kafka (make kafka).
func TestConformance_Apache(t *testing.T) {
	t.Parallel()
	addr := os.Getenv("JOURNEYMAN_TEST_KAFKA")
	if addr == "" {
		t.Fatal("JOURNEYMAN_TEST_KAFKA names no broker: run make kafka")
	}
	eventstest.Transport(t, func(t *testing.T) eventstest.Broker {
		t.Helper()
		c, err := kafka.New(kafka.Config{Brokers: []string{addr}, SessionTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return eventstest.Shared(eventstest.Broker{Publisher: c, Subscriber: c, Admin: c, MaxBytes: 1 << 20}, events.NewID()+".")
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
