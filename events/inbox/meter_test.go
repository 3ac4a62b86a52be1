package inbox_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// What an inbox does is counted by type, group and outcome; a type that the catalog lacks makes no series of its own.
func TestMeter_V3_E14(t *testing.T) {
	t.Parallel()
	f := setup(t, transports()[0])
	m := inbox.NewMeter(f.cat)
	var told atomic.Int64
	h := func(ctx context.Context, tx *outbox.Tx, r events.Received) error {
		switch r.Metadata.BusinessKey {
		case "parked":
			return outcome.NewBusiness("NO", "no")
		case "poison":
			return outcome.Fatalf("odd", "odd")
		}
		return apply(ctx, tx, r)
	}
	a := f.created("K", 1)
	junk := envelope(t, "test.thing.created", 1, events.NewID(), "J", 1)
	junk.Body = []byte(strings.Replace(string(junk.Body), "test.thing.created", "made.up.happened", 1))
	junk.Key = "other" // so that it is no message
	f.publish(a, a, f.created("parked", 1), f.created("poison", 1), junk)
	f.run(h, func(c *inbox.Config) { c.Hooks = m.Hooks("view", inbox.Hooks{Duplicate: func(string) { told.Add(1) }}) })
	f.eventually("all of them", func() bool { return f.applied() == 1 && len(f.dead()) == 3 && told.Load() == 1 })
	page := func() string {
		var out strings.Builder
		if err := m.WriteMetrics(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, want := range []string{
		`journeyman_consumer_handler_duration_seconds_count{type="test.thing.created",group="view",outcome="SUCCESS"} 1`,
		`journeyman_consumer_duplicates_total{type="test.thing.created",group="view"} 1`,
		`journeyman_dlq_messages_total{type="test.thing.created",group="view",reason="NO"} 1`,
		`journeyman_dlq_messages_total{type="unknown",group="view",reason="envelope"} 1`,
		`journeyman_consumer_poison_total{type="test.thing.created",group="view",reason="odd"} 1`,
	} {
		f.eventually(want, func() bool { return strings.Contains(page(), want) }) // it is told after the commit
	}
	if strings.Contains(page(), "made.up") || strings.Contains(page(), `poison_total{type="test.thing.created",group="view",reason="NO"`) {
		t.Errorf("a made-up type has a series, or what is parked counts as poison:\n%s", page())
	}
}
