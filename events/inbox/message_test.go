package inbox

import (
	"context"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

func opener(tb testing.TB, by DedupBy) *Inbox {
	tb.Helper()
	cat, err := events.ParseCatalog([]byte(`
domains: [test]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [p], consumers: [g]}
  - {type: test.thing.make.requested, kind: command, class: domain, owner: test, producers: [p], consumers: [g], idempotency_key: data.idempotencyKey}`))
	if err != nil {
		tb.Fatal(err)
	}
	i := &Inbox{cfg: Config{Group: "g", Catalog: cat, DedupBy: by}.withDefaults(), routes: map[string]Route{}}
	if errs := i.add(Route{Types: []string{"test.*"}, Handler: noHandler}); len(errs) > 0 {
		tb.Fatal(errs)
	}
	return i
}

func noHandler(context.Context, *outbox.Tx, events.Received) error { return nil }

func TestIdentity(t *testing.T) {
	t.Parallel()
	body := func(typ, operation, data string) string {
		kind := "event"
		if typ == "test.thing.make.requested" {
			kind = "command"
		}
		return `{"messageId":"0B6A3D1E-0000-8000-8000-000000000001","messageKind":"` + kind + `","messageType":"` + typ + `","messageVersion":1,"data":` + data +
			`,"metadata":{"businessKey":"K","operationId":"` + operation + `"}}`
	}
	for _, c := range []struct {
		by       DedupBy
		body     string
		want     string
		wantFail bool
	}{
		{ByCatalog, body("test.thing.created", "op", `{}`), "0b6a3d1e-0000-8000-8000-000000000001", false},
		{ByEventID, body("test.thing.make.requested", "op", `{}`), "0b6a3d1e-0000-8000-8000-000000000001", false},
		{ByOperationID, body("test.thing.created", "op", `{}`), "op:test.thing.created:K:op", false},
		{ByOperationID, body("test.thing.created", "", `{}`), "", true},
		{ByOperationID, body("test.thing.created", `\u0000`, `{}`), "", true},
		{ByCatalog, body("test.thing.make.requested", "op", `{"idempotencyKey":"i"}`), "key:test.thing.make.requested:i", false},
		{ByCatalog, body("test.thing.make.requested", "op", `{}`), "", true},
		{ByCatalog, body("test.thing.make.requested", "op", `{"idempotencyKey":7}`), "", true},
	} {
		m, skip, err := opener(t, c.by).open(events.Delivery{Record: events.Record{Key: "K", Body: []byte(c.body)}})
		if skip || (err != nil) != c.wantFail || err == nil && m.id != c.want {
			t.Errorf("%s %s: got %q, %v", c.by, c.body, m.id, err)
		}
	}
}

// The fingerprint ignores order of fields and space, and keeps every digit.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	sum := func(data string) string {
		return string(fingerprint(events.Envelope{MessageType: "a", MessageVersion: 1, Metadata: events.Metadata{BusinessKey: "K"}, Data: []byte(data)}))
	}
	if sum(`{"a":1,"b":{"c":2}}`) != sum(`{ "b" : {"c":2}, "a":1 }`) {
		t.Error("order and space change the fingerprint")
	}
	if sum(`{"a":12345678901234567890}`) == sum(`{"a":12345678901234567891}`) {
		t.Error("the last digit is lost")
	}
	if sum(`{"a":1}`) == sum(`{"a":"1"}`) {
		t.Error("number and text are one")
	}
}

// Whatever arrives is opened, passed over, or refused for good with a reason.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"messageId":"0b6a3d1e-0000-8000-8000-000000000001","messageKind":"event","messageType":"test.thing.created","messageVersion":1,"data":{},"metadata":{"businessKey":"K"}}`), "K")
	f.Add([]byte(`{`), "\x00")
	i := opener(f, ByCatalog)
	f.Fuzz(func(t *testing.T, body []byte, key string) {
		_, _, err := i.open(events.Delivery{Record: events.Record{Key: key, Body: body}})
		if err != nil && (outcome.ClassOf(err) != outcome.Fatal || outcome.Classify(err).Reason == "") {
			t.Errorf("got %v, want FATAL with a reason", err)
		}
	})
}
