package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// Relays share the shards evenly, and one that leaves gives its own back at once.
func TestRelay_SharesShards(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	long := func(c *outbox.RelayConfig) { c.Lease = time.Minute; c.ProduceTimeout = time.Second }
	a, _ := f.relay(bk, long)
	f.eventually("the first to own all", func() bool { return a.Stats().Shards == 64 })
	b, stopB := f.relay(bk, long)
	c, _ := f.relay(bk, long)
	f.eventually("thirds", func() bool {
		return a.Stats().Shards <= 22 && b.Stats().Shards <= 22 && c.Stats().Shards <= 22 && a.Stats().Shards+b.Stats().Shards+c.Stats().Shards == 64
	})
	stopB() // a lease of a minute would be waited for, if it were not given back
	f.eventually("halves", func() bool { return a.Stats().Shards == 32 && c.Stats().Shards == 32 })
}

// A relay that lost its lease while it was stuck between acknowledgement and
// delete must not delete under the new owner, and stops working on the shard.
func TestRelay_ZombieDeletesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	key := "K"
	msg := created(key, 1)
	msg.Type = "test.zombie.raised" // a topic of its own: the hook below is seen by relays of other tests
	stuck, release := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	bk := newBroker()
	remove := crash.Hook("relay.publish.acked", func(topics string) {
		if topics == "test.zombie.raised.v1" && once.CompareAndSwap(false, true) {
			close(stuck)
			<-release
		}
	})
	defer remove()
	if err := f.stage(origin("op"), []events.Message{msg}); err != nil {
		t.Fatal(err)
	}
	zombie, stop := f.relay(bk, func(c *outbox.RelayConfig) { c.Owner = "zombie"; c.Lanes = 1 })
	<-stuck
	// The lease is taken from it, as if it had been paused for longer than that.
	if _, err := f.pool.Exec(f.ctx, `UPDATE journeyman.outbox_shard SET owner = 'other', fence = fence + 1, lease_until = 'infinity' WHERE shard = $1`, events.Shard(key)); err != nil {
		t.Fatal(err)
	}
	close(release)
	f.eventually("the zombie to notice", func() bool { return zombie.Stats().Lost == 1 })
	if n := f.count(`SELECT count(*) FROM journeyman.outbox`); n != 1 {
		t.Errorf("%d rows left, want the other owner's 1", n)
	}
	stop()
}

// Nothing can be published: the relay says so once, goes on trying with bounded
// waits, and everything flows in order when the broker is back.
func TestRelay_PausesInAnOutage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	bk.refuse = func(events.Record) error {
		return &events.PublishError{Fault: events.Unusable, Err: errors.New("bad credentials")}
	}
	var paused, resumed atomic.Int64
	r, _ := f.relay(bk, func(c *outbox.RelayConfig) {
		c.Hooks.Paused = func(string) { paused.Add(1) }
		c.Hooks.Resumed = func(time.Duration) { resumed.Add(1) }
	})
	for n := 1; n <= 20; n++ {
		if err := f.stage(origin(fmt.Sprint("op", n)), []events.Message{created("K", n), renamed("K", n)}); err != nil {
			t.Fatal(err)
		}
	}
	f.eventually("the pause", func() bool {
		return paused.Load() == 1 && r.Stats().Paused && strings.Contains(r.Stats().Reason, "bad credentials")
	})
	if n := f.count(`SELECT count(*) FROM journeyman.outbox_parked_key`); n != 0 {
		t.Errorf("%d keys parked in an outage, want none", n)
	}
	bk.setRefuse(nil)
	log := f.wait(bk, "all messages", atLeast(40))
	if bad := inversions(log); bad > 0 {
		t.Errorf("%d inversions: %v", bad, brief(log))
	}
	f.eventually("the end of the pause", func() bool { return resumed.Load() == 1 && !r.Stats().Paused })
	if paused.Load() != 1 {
		t.Errorf("%d alerts, want 1", paused.Load())
	}
}

// An unknown topic may be on its way: its key is parked only after the time of grace.
func TestRelay_UnknownTopic(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	missing := func(r events.Record) error {
		if r.Key == "K" {
			return &events.PublishError{Err: fmt.Errorf("%w: no such", events.ErrUnknownTopic)}
		}
		return nil
	}
	bk.refuse = missing
	f.relay(bk, func(c *outbox.RelayConfig) { c.TopicGrace = 300 * time.Millisecond })
	if err := f.stage(origin("op"), []events.Message{created("K", 1), created("other", 1)}); err != nil {
		t.Fatal(err)
	}
	f.wait(bk, "the neighbour", atLeast(1))
	f.eventually("the key to be parked", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox_parked`) == 1 })
}

// An operator gives one row up; the others of its key come out in order.
func TestDesk_SkipAndRelease(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	bk.refuse = func(r events.Record) error {
		if number(t, r) == 2 {
			return &events.PublishError{Fault: events.Permanent, Err: errors.New("too large")}
		}
		return nil
	}
	f.relay(bk)
	if err := f.stage(origin("op"), []events.Message{created("K", 1), created("K", 2), renamed("K", 3)}); err != nil {
		t.Fatal(err)
	}
	var parked []outbox.ParkedKey
	f.eventually("two rows to be parked", func() bool {
		parked, _ = f.desk.Parked(f.ctx, f.pool, 10)
		return len(parked) == 1 && parked[0].Rows == 2
	})
	backlog, err := f.desk.Backlog(f.ctx, f.pool)
	if err != nil || backlog.ParkedKeys != 1 || backlog.ParkedRows != 2 {
		t.Errorf("backlog %+v, %v", backlog, err)
	}
	if err := f.desk.Skip(f.ctx, f.pool, "K", events.NewID(), "?"); !errors.Is(err, outbox.ErrNotParked) {
		t.Errorf("skip of another row: got %v", err)
	}
	if err := f.desk.Skip(f.ctx, f.pool, "K", parked[0].EventID, "agreed with the owner"); err != nil {
		t.Fatal(err)
	}
	if err := f.desk.Release(f.ctx, f.pool, "K"); err != nil {
		t.Fatal(err)
	}
	if log := f.wait(bk, "1 and 3", atLeast(2)); number(t, log[1]) != 3 {
		t.Errorf("published %v", brief(log))
	}
	f.eventually("the key to be free", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox_parked_key`) == 0 })
	if err := f.desk.Release(f.ctx, f.pool, "K"); !errors.Is(err, outbox.ErrNotParked) {
		t.Errorf("release of a free key: got %v", err)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.outbox_skipped WHERE reason = 'agreed with the owner'`); n != 1 {
		t.Errorf("%d skipped rows on record, want 1", n)
	}
}

// The clock jumps past every prepared day: the log's day is made on the way.
func TestRelay_EventLogDayIsMadeOnDemand(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	f.relay(bk, func(c *outbox.RelayConfig) { c.LogRetention = 24 * time.Hour })
	stage := func(op string) {
		t.Helper()
		if err := f.stage(origin(op), []events.Message{created("K", 1)}); err != nil {
			t.Fatal(err)
		}
		f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	}
	stage("op-1")
	if err := postgres.AdvanceClock(f.ctx, f.pool, "journeyman", 40*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	stage("op-2")
	f.eventually("the new row alone: the old day is past the retention of a day", func() bool { return f.count(`SELECT count(*) FROM journeyman.event_log`) == 1 })
}

// A transaction draws its xid last, its id first, and commits late. The highest
// finished xid says nothing about it, so a floor by the snapshot's xmax would
// pass its row.
func TestRelay_FloorPassesNoRow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	f.relay(bk)
	begin := func() (pgx.Tx, func(key string)) {
		t.Helper()
		tx, err := f.pool.Begin(f.ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(f.ctx) })
		return tx, func(key string) {
			t.Helper()
			b := &pgx.Batch{}
			if err := f.Queue(b, origin("op-"+key), []events.Message{created(key, 1)}); err != nil {
				t.Fatal(err)
			}
			if err := tx.SendBatch(f.ctx, b).Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	early, stageEarly := begin()
	if _, err := early.Exec(f.ctx, `SELECT pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	late, stageLate := begin()
	stageLate("late")   // xid 2, id 1
	stageEarly("early") // xid 1, id 2
	if err := early.Commit(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wait(bk, "the early row", atLeast(1))
	deadline := time.Now().Add(2500 * time.Millisecond) // two looks at the horizon
	for n := 1; time.Now().Before(deadline); n++ {
		if err := f.stage(origin(fmt.Sprint("op", n)), []events.Message{created(fmt.Sprint("K", n%7), n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := late.Commit(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wait(bk, "the late row", func(log []events.Record) bool {
		return slices.ContainsFunc(log, func(r events.Record) bool { return r.Key == "late" })
	})
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	if bad := inversions(bk.records()); bad > 0 {
		t.Errorf("%d inversions", bad)
	}
}

func TestNewRelay_RefusesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := outbox.NewRelay(nil, nil, outbox.RelayConfig{Lanes: 65, Batch: -1, Poll: time.Hour, Lease: 4 * time.Second, ProduceTimeout: 3 * time.Second, LogRetention: time.Hour})
	for _, want := range []string{"pool", "publisher", "lanes 65", "batch -1", "poll 1h", "produce timeout 3s", "log retention 1h"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %q", err, want)
		}
	}
}
