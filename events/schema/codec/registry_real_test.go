//go:build kafka

package codec_test

import (
	"errors"
	"os"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/registry"
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

// TestRegistry_RefusesWhatIsIncompatible_E5: the compatibility API of a registry that keeps its levels.
func TestRegistry_RefusesWhatIsIncompatible_E5(t *testing.T) {
	t.Parallel()
	_, _, url := services(t)
	c, err := registry.New(registry.Config{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	avro := func(fields string) registry.Schema {
		return registry.Schema{Format: events.FormatAvro, Text: `{"type":"record","name":"R","fields":[{"name":"id","type":"string"}` + fields + `]}`}
	}
	ctx, subject := t.Context(), events.NewID()+"-value"
	first, err := c.Register(ctx, subject, avro(""))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Register(ctx, subject, avro("")); err != nil || again != first {
		t.Errorf("registered again as %d, %v; want %d", again, err, first)
	}
	if err := c.SetLevel(ctx, subject, "BACKWARD"); err != nil {
		t.Fatal(err)
	}
	breaking, fine := avro(`,{"name":"n","type":"int"}`), avro(`,{"name":"n","type":"int","default":0}`)
	if ok, reasons, err := c.Compatible(ctx, subject, breaking); err != nil || ok {
		t.Errorf("a field without default: %v, %v, %v; want it to be incompatible", ok, reasons, err)
	}
	if _, err := c.Register(ctx, subject, breaking); !errors.Is(err, registry.ErrIncompatible) {
		t.Errorf("a field without default was registered: %v", err)
	}
	if ok, reasons, err := c.Compatible(ctx, subject, fine); err != nil || !ok {
		t.Errorf("a field with default: %v, %v, %v; want it to be compatible", ok, reasons, err)
	}
	if ok, _, err := c.Compatible(ctx, events.NewID()+"-value", fine); err != nil || !ok {
		t.Errorf("a subject that is not there: %v, %v", ok, err)
	}
	second, err := c.Register(ctx, subject, fine)
	if err != nil || second == first {
		t.Errorf("a field with default got id %d, %v", second, err)
	}
	if found, err := c.Lookup(ctx, subject, fine); err != nil || found != second {
		t.Errorf("looked up as %d, %v; want %d", found, err, second)
	}
	if _, err := c.Lookup(ctx, subject, breaking); !errors.Is(err, events.ErrSchemaUnknown) {
		t.Errorf("look-up of what is not registered: %v", err)
	}
	fresh, err := registry.New(registry.Config{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fresh.Close)
	if s, err := fresh.Schema(ctx, first); err != nil || s.Format != events.FormatAvro {
		t.Errorf("schema %d: %+v, %v", first, s, err)
	}
	if _, err := fresh.Schema(ctx, 2_000_000_000); !errors.Is(err, events.ErrSchemaUnknown) {
		t.Errorf("an id that is not there: %v", err)
	}
}
