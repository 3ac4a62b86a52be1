package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// Eight writers with slow commits, four relays that come and go: every
// committed row is published, and each key's first deliveries are in sequence.
func TestRelay_OrderAndLoss(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	flaky := func(events.Record) error {
		if rand.IntN(400) == 0 {
			return fmt.Errorf("the network hiccups")
		}
		return nil
	}
	bk.refuse = flaky
	fast := func(c *outbox.RelayConfig) {
		c.Batch = 100
		c.Lease = time.Second
		c.ProduceTimeout = 100 * time.Millisecond
	}
	stops := make([]func(), 4)
	for i := range stops {
		_, stops[i] = f.relay(bk, fast)
	}
	ctx, cancel := context.WithTimeout(f.ctx, 3*time.Second)
	defer cancel()
	var committed atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				var slow []string
				if rand.IntN(100) == 0 {
					slow = []string{`SELECT pg_sleep(0.02)`}
				}
				a, b := fmt.Sprintf("K-%d", rand.IntN(40)), fmt.Sprintf("K-%d", rand.IntN(40))
				msgs := []events.Message{created(a, n), renamed(b, n), created(a, n)}
				if err := f.stage(origin(fmt.Sprintf("op-%d-%d", w, n)), msgs, slow...); err != nil {
					t.Errorf("stage: %v", err)
					return
				}
				committed.Add(int64(len(msgs)))
			}
		})
	}
	wg.Go(func() { // relays leave and come back while rows flow
		for i := 0; ctx.Err() == nil; i++ {
			stops[i%4]()
			_, stops[i%4] = f.relay(bk, fast)
		}
	})
	wg.Wait()
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	for _, stop := range stops {
		stop()
	}
	log := bk.records()
	ids := map[string]bool{}
	for _, r := range log {
		ids[r.Header(events.HeaderEventID)] = true
	}
	if int64(len(ids)) != committed.Load() {
		t.Errorf("published %d distinct messages of %d committed", len(ids), committed.Load())
	}
	if n := inversions(log); n > 0 {
		t.Errorf("%d inversions", n)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.event_log`); int64(n) != committed.Load() {
		t.Errorf("event log has %d rows of %d", n, committed.Load())
	}
	t.Logf("committed %d, duplicates %d", committed.Load(), len(log)-len(ids))
}
