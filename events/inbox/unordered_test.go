package inbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

const unorderedYAML = `
domains: [test]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [tester], consumers: [view], retry: [50ms], partitions: 2}
  - {type: test.thing.counted, class: operational, owner: test, producers: [tester], consumers: [view], retry: [50ms], partitions: 2}
  - {type: test.thing.clicked, class: analytical, owner: test, producers: [tester], consumers: [view], retry: [50ms], partitions: 2}
`

// A message of a class without order waits for its retry alone: later ones of its key pass, those of ordered classes too, until it
// is due. Of an ordered class they wait behind it (spec E4, E7).
func TestInbox_RetryOfAnUnorderedClassHoldsNobody(t *testing.T) {
	onEach(t, testInboxRetryOfAnUnorderedClassHoldsNobody)
}

func testInboxRetryOfAnUnorderedClassHoldsNobody(t *testing.T, f *fixture) {
	var err error
	if f.cat, err = events.ParseCatalog([]byte(unorderedYAML)); err != nil {
		t.Fatal(err)
	}
	if err := f.bus.EnsureTopics(f.ctx, 1, f.cat.Topics()...); err != nil {
		t.Fatal(err)
	}
	f.stage = nil // it is of another catalog
	f.runRoutes([]inbox.Route{{Types: []string{"test.*"}, Handler: func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if m.Metadata.Sequence == 1 && m.Attempt == 1 {
			return outcome.NewRetryable(errors.New("not yet"), time.Hour)
		}
		return apply(ctx, tx, m)
	}}})
	of := func(typ, key string, n int) events.Record { return envelope(t, typ, 1, events.NewID(), key, n) }
	row := func(n int) []events.Record {
		return []events.Record{of("test.thing.counted", "operational", n), of("test.thing.clicked", "analytical", n), of("test.thing.created", "domain", n)}
	}
	f.publish(append(row(1), row(2)...)...)
	f.eventually("the first of each key to wait", func() bool { return f.count(`SELECT count(*) FROM journeyman.inbox_retry WHERE attempts = 1`) == 3 })
	later := append(append(row(3), row(4)...), row(5)...)
	f.publish(append(later, of("test.thing.created", "operational", 6), of("test.thing.created", "analytical", 6))...)
	f.eventually("all behind the unordered ones", func() bool { return f.applied() == 10 })
	f.eventually("all behind the ordered one to wait", func() bool {
		return f.count(`SELECT count(*) FROM journeyman.inbox_retry WHERE business_key = 'domain' AND next_at = 'infinity'`) == 4
	})
	if n := f.count(`SELECT count(*) FROM journeyman.inbox_retry WHERE NOT ordered AND attempts = 1 AND business_key IN ('operational', 'analytical')`); n != 2 || f.order("domain") != "" {
		t.Errorf("%d unordered messages wait and %q of the ordered key was applied, want 2 and nothing", n, f.order("domain"))
	}
	if err := postgres.AdvanceClock(f.ctx, f.pool, "journeyman", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	f.eventually("the retries", func() bool { return f.applied() == 17 })
	if got := f.order("domain"); got != "1 2 3 4 5" {
		t.Errorf("the ordered key was applied as %s", got)
	}
	for _, key := range []string{"operational", "analytical"} {
		if n := f.count(`SELECT count(*) FROM applied WHERE key = $1 AND n < (SELECT n FROM applied WHERE key = $1 AND body::jsonb->>'n' = '1')`, key); n != 5 {
			t.Errorf("%s: %d messages passed the one that waited (%s), want 5", key, n, f.order(key))
		}
	}
}
