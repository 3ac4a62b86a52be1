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

// write commits transactions of three messages over keys for the given time,
// one in a hundred slow, and gives the number of messages.
func (f *fixture) write(writers, keys int, during time.Duration) int {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, during)
	defer cancel()
	var committed atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				var slow []string
				if rand.IntN(100) == 0 {
					slow = []string{`SELECT pg_sleep(0.02)`}
				}
				a, b := fmt.Sprintf("K-%d", rand.IntN(keys)), fmt.Sprintf("K-%d", rand.IntN(keys))
				msgs := []events.Message{created(a, n), renamed(b, n), created(a, n)}
				if err := f.stage(origin(fmt.Sprintf("op-%d-%d", w, n)), msgs, slow...); err != nil {
					f.Errorf("stage: %v", err)
					return
				}
				committed.Add(int64(len(msgs)))
			}
		})
	}
	wg.Wait()
	return int(committed.Load())
}

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
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // relays leave and come back while rows flow
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			stops[i%4]()
			_, stops[i%4] = f.relay(bk, fast)
		}
	})
	committed := f.write(8, 40, 3*time.Second)
	close(stop)
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
	if len(ids) != committed {
		t.Errorf("published %d distinct messages of %d committed", len(ids), committed)
	}
	if n := inversions(log); n > 0 {
		t.Errorf("%d inversions", n)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.event_log`); n != committed {
		t.Errorf("event log has %d rows of %d", n, committed)
	}
	t.Logf("committed %d, duplicates %d", committed, len(log)-len(ids))
}
