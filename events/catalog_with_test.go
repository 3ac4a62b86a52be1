package events_test

import (
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events"
)

func TestCatalog_Override(t *testing.T) {
	t.Parallel()
	c := parse(t, good)
	over, err := c.Override(parse(t, `
domains: [tour]
messages:
  - {type: tour.booking.confirmed, class: domain, owner: tour, producers: [tour-workers], format: avro, schema: {type: record, name: B, fields: []}}
  - {type: tour.booking.held, class: domain, owner: tour, producers: [tour-workers]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := over.Entry("tour.booking.confirmed", 1); e.Format != events.FormatAvro || e.Wire != events.WireConfluent {
		t.Errorf("version 1 is of %s, %s", e.Format, e.Wire)
	}
	for name, version := range map[string]int{"tour.booking.confirmed": 2, "tour.booking.held": 1, "payment.money.captured": 1} {
		if e, ok := over.Entry(name, version); !ok || e.Format != events.FormatJSON {
			t.Errorf("%s v%d: %v, %s", name, version, ok, e.Format)
		}
	}
	if e, _ := c.Entry("tour.booking.confirmed", 1); e.Format != events.FormatJSON {
		t.Error("the catalog itself changed")
	}
	if _, err := c.Override(parse(t, strings.Replace(good, "tour-workers: tour", "tour-workers: payment", 1))); err == nil || !strings.Contains(err.Error(), "tour-workers") {
		t.Errorf("a service in two domains: %v", err)
	}
}

func TestCatalog_Encrypted(t *testing.T) {
	t.Parallel()
	c := parse(t, good+"encryption: {audit: at_rest}\n")
	more, err := c.Encrypted(map[events.Class]events.Encryption{events.ClassSaga: events.EncryptEndToEnd, events.ClassAudit: events.EncryptAtRest})
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := more.Entry("platform.saga.started", 1); e.Encryption != events.EncryptEndToEnd {
		t.Errorf("saga is kept as %q", e.Encryption)
	}
	if e, _ := c.Entry("platform.saga.started", 1); e.Encryption != events.EncryptNone {
		t.Error("the catalog itself changed")
	}
	_, err = c.Encrypted(map[events.Class]events.Encryption{"secret": "rot13", events.ClassAudit: events.EncryptEndToEnd})
	for _, want := range []string{`class "secret"`, `"rot13"`, "end_to_end for class audit, but the catalog says at_rest"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}
