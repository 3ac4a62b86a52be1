package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

const orderYAML = `
domains: [test]
messages:
  - {type: test.step.started, class: domain, owner: test, producers: [tester], consumers: [view], retry: [50ms, 50ms], partitions: 2, order_scope: test.steps}
  - {type: test.step.completed, class: domain, owner: test, producers: [tester], consumers: [view], retry: [50ms], partitions: 2, order_scope: test.steps}
  - {type: test.step.logged, class: domain, owner: test, producers: [tester], consumers: [other], partitions: 2, order_scope: test.steps}
  - {type: test.saga.started, class: saga, owner: test, producers: [tester], consumers: [view], partitions: 2}
`

// orders gives the fixture the catalog of strict orders.
func (f *fixture) orders(more string) {
	f.Helper()
	var err error
	if f.cat, err = events.ParseCatalog([]byte(orderYAML + more)); err != nil {
		f.Fatal(err)
	}
	if err := f.bus.EnsureTopics(f.ctx, 1, f.cat.Topics()...); err != nil {
		f.Fatal(err)
	}
	f.stage = nil
}

// step is a message of the scope: n is its sequence, previous the one before it.
func (f *fixture) step(typ, key string, n, previous int) events.Record {
	r := envelope(f, typ, 1, events.NewID(), key, n)
	r.Headers = append(r.Headers, events.Header{Name: events.HeaderEventType, Value: typ}, events.Header{Name: events.HeaderPreviousSequence, Value: strconv.Itoa(previous)})
	return r
}

func (f *fixture) runSteps(h inbox.Handler, edit ...func(*inbox.Config)) (stop func()) {
	return f.runRoutes([]inbox.Route{{Types: []string{"test.step.started", "test.step.completed", "test.saga.started"}, Handler: h}},
		append([]func(*inbox.Config){func(c *inbox.Config) { c.Stager = nil }}, edit...)...)
}

func (f *fixture) held() int {
	return f.count(`SELECT count(*) FROM journeyman.inbox_retry WHERE scope IS NOT NULL`)
}

// Messages that come before the one they follow are held, over topics and members, and applied in order when it comes.
func TestOrder_GapIsHeldUntilFilled_E4(t *testing.T) { onEach(t, testOrderGapIsHeldUntilFilledE4) }

func testOrderGapIsHeldUntilFilledE4(t *testing.T, f *fixture) {
	f.orders("")
	var waits atomic.Int64
	edit := func(c *inbox.Config) { c.Hooks.Held = func(string, int64) { waits.Add(1) } }
	f.runSteps(apply, edit)
	f.runSteps(apply, edit)
	f.publish(f.step("test.step.completed", "K", 5, 4), f.step("test.step.completed", "K", 7, 5), f.step("test.step.started", "K", 9, 7),
		f.step("test.step.started", "other", 1, 0), f.step("test.saga.started", "K", 6, 0))
	f.eventually("three held and two applied", func() bool { return f.held() == 3 && f.applied() == 2 })
	if got := f.order("K"); got != "6" {
		t.Errorf("applied %s of the key, want only what is in another scope", got)
	}
	f.publish(f.step("test.step.started", "K", 1, 0))
	f.eventually("the first", func() bool { return f.order("K") == "6 1" })
	f.publish(f.step("test.step.logged", "K", 4, 1)) // of a type that the group has no handler for
	f.eventually("all in order", func() bool { return f.order("K") == "6 1 5 7 9" })
	f.eventually("no row left", func() bool { return f.count(`SELECT count(*) FROM journeyman.inbox_retry`) == 0 }) // a redelivered one goes through it, too
	if waits.Load() < 3 || f.held() != 0 || len(f.dead()) != 0 {
		t.Errorf("%d held in all, %d still, %d dead", waits.Load(), f.held(), len(f.dead()))
	}
}

// A gap that is not filled in time parks what is behind it, and nothing else; an
// operator lets the key go on; the missing message is refused when it comes after all.
func TestOrder_GapIsParkedAndAccepted_E4(t *testing.T) { onEach(t, testOrderGapIsParkedAndAcceptedE4) }

func testOrderGapIsParkedAndAcceptedE4(t *testing.T, f *fixture) {
	f.orders("")
	f.runSteps(apply, func(c *inbox.Config) { c.GapLimit = 300 * time.Millisecond })
	f.publish(f.step("test.step.started", "K", 1, 0), f.step("test.step.started", "K", 4, 3), f.step("test.step.completed", "K", 6, 4), f.step("test.step.started", "L", 1, 0))
	f.eventually("two parked", func() bool { return len(f.dead()) == 2 })
	for _, d := range f.dead() {
		if d.State != "parked" || d.Reason != inbox.ReasonGap || d.BusinessKey != "K" {
			t.Errorf("got %+v", d)
		}
	}
	if f.order("K") != "1" || f.order("L") != "1" {
		t.Errorf("applied %s and %s", f.order("K"), f.order("L"))
	}
	if err := f.desk.AcceptGap(f.ctx, f.pool, "view", "L"); !errors.Is(err, inbox.ErrNoGap) {
		t.Errorf("a key without gap: got %v", err)
	}
	if err := f.desk.AcceptGap(f.ctx, f.pool, "view", "K"); err != nil {
		t.Fatal(err)
	}
	f.eventually("what was behind the gap", func() bool { return f.order("K") == "1 4 6" })
	f.publish(f.step("test.step.started", "K", 3, 1))
	f.eventually("the missing one, late", func() bool {
		l := f.dead()
		return len(l) == 1 && l[0].Reason == inbox.ReasonLate && l[0].State == "parked"
	})
	if got := f.order("K"); got != "1 4 6" {
		t.Errorf("applied %s: the order is broken", got)
	}
}

// A parked gap that is filled after all needs no operator.
func TestOrder_ParkedGapIsFilled_E4(t *testing.T) { onEach(t, testOrderParkedGapIsFilledE4) }

func testOrderParkedGapIsFilledE4(t *testing.T, f *fixture) {
	f.orders("")
	f.runSteps(apply, func(c *inbox.Config) { c.GapLimit = 100 * time.Millisecond })
	f.publish(f.step("test.step.started", "K", 2, 1), f.step("test.step.started", "K", 3, 2))
	f.eventually("both parked", func() bool { return len(f.dead()) == 2 })
	f.publish(f.step("test.step.started", "K", 1, 0))
	f.eventually("all in order", func() bool { return f.order("K") == "1 2 3" && len(f.dead()) == 0 })
}

// What follows a dead letter of a strict order waits until it was redriven.
func TestOrder_NothingPassesADeadLetter_E4(t *testing.T) {
	onEach(t, testOrderNothingPassesADeadLetterE4)
}

func testOrderNothingPassesADeadLetterE4(t *testing.T, f *fixture) {
	f.orders("")
	broken := atomic.Bool{}
	broken.Store(true)
	f.runSteps(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if broken.Load() && m.Metadata.Sequence == 2 {
			return errors.New("always")
		}
		return apply(ctx, tx, m)
	})
	for n := 1; n <= 4; n++ {
		f.publish(f.step("test.step.started", "K", n, n-1))
	}
	f.publish(f.step("test.step.started", "L", 1, 0))
	f.eventually("the dead letter", func() bool { return len(f.dead()) == 1 && f.held() == 2 && f.order("L") == "1" })
	if d := f.dead()[0]; d.Reason != inbox.ReasonPoisoned || f.order("K") != "1" {
		t.Errorf("got %s, applied %s", d.Reason, f.order("K"))
	}
	broken.Store(false)
	if err := f.desk.Redrive(f.ctx, f.pool, f.dead()[0].ID); err != nil {
		t.Fatal(err)
	}
	f.eventually("all in order", func() bool { return f.order("K") == "1 2 3 4" })
}

// A group that is made after the broker dropped old records may begin anywhere, if it says so.
func TestOrder_JoinLate(t *testing.T) { onEach(t, testOrderJoinLate) }

func testOrderJoinLate(t *testing.T, f *fixture) {
	f.orders("")
	f.runSteps(apply, func(c *inbox.Config) { c.JoinLate = true })
	f.publish(f.step("test.step.started", "K", 7, 6), f.step("test.step.started", "K", 9, 8))
	f.eventually("the first it sees, and the gap", func() bool { return f.order("K") == "7" && f.held() == 1 })
}

func TestOrder_BadHeaderIsBuried(t *testing.T) { onEach(t, testOrderBadHeaderIsBuried) }

func testOrderBadHeaderIsBuried(t *testing.T, f *fixture) {
	f.orders("")
	f.runSteps(apply)
	f.publish(f.step("test.step.started", "K", 1, 1), f.step("test.step.started", "L", 1, -1))
	f.eventually("both buried", func() bool { return len(f.dead()) == 2 })
}

// Bodies wait and lie dead encrypted; what came encrypted is read with the key, and parked without.
func TestInbox_Encryption_E4(t *testing.T) { onEach(t, testInboxEncryptionE4) }

func testInboxEncryptionE4(t *testing.T, f *fixture) {
	f.orders("encryption: {domain: at_rest, saga: end_to_end}\n")
	dir := filepath.Join(t.TempDir(), "keys")
	for _, id := range []string{"lost", "now"} {
		if err := seal.Generate(dir, id); err != nil {
			t.Fatal(err)
		}
	}
	all, err := seal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	saga := f.step("test.saga.started", "S", 1, 0)
	if saga.Body, err = seal.Seal(all, seal.EndToEnd, saga.Body, saga.Header(events.HeaderEventID)); err != nil {
		t.Fatal(err)
	}
	if err := seal.Use(dir, "lost"); err != nil {
		t.Fatal(err)
	}
	again, err := seal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	lost := f.step("test.saga.started", "T", 1, 0)
	if lost.Body, err = seal.Seal(again, seal.EndToEnd, lost.Body, lost.Header(events.HeaderEventID)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(seal.Use(dir, "now"), os.Rename(filepath.Join(dir, "lost.key"), filepath.Join(dir, "lost.away"))); err != nil {
		t.Fatal(err)
	}
	keys, err := seal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var refuse atomic.Bool
	refuse.Store(true)
	f.runSteps(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		switch {
		case refuse.Load() && m.Metadata.BusinessKey == "dead":
			return outcome.NewFatal(errors.New("no"))
		case refuse.Load() && m.Metadata.BusinessKey == "waiting":
			return outcome.NewRetryable(errors.New("not yet"), time.Hour)
		}
		return apply(ctx, tx, m)
	}, func(c *inbox.Config) { c.Keys = keys })
	poison := f.step("test.step.started", "dead", 1, 0)
	garbage := events.Record{Topic: "test.step.started.v1", Key: "garbage", Body: []byte(`{"n":idem`)}
	f.publish(saga, lost, poison, f.step("test.step.started", "waiting", 1, 0), garbage)
	f.eventually("three set aside, one waits, one applied", func() bool {
		return len(f.dead()) == 3 && f.count(`SELECT count(*) FROM journeyman.inbox_retry`) == 1 && f.order("S") == "1"
	})
	for _, table := range []string{"inbox_retry", "inbox_dead"} {
		if n := f.count(`SELECT count(*) FROM journeyman.` + table + ` WHERE position('idem'::bytea IN body) > 0`); n != 0 {
			t.Errorf("%d clear bodies in %s", n, table)
		}
	}
	var redrive []int64
	for _, d := range f.dead() {
		body, err := d.Clear(keys)
		switch d.BusinessKey {
		case "T":
			if d.State != "parked" || d.Reason != inbox.ReasonNoKey || !errors.Is(err, seal.ErrNoKey) || !bytes.Equal(d.Body, lost.Body) {
				t.Errorf("without its key: %s %s, %v", d.State, d.Reason, err)
			}
		case "dead":
			if err != nil || !bytes.Equal(body, poison.Body) {
				t.Errorf("the dead letter's original bytes: %q, %v", body, err)
			}
		case "garbage":
			if err != nil || !bytes.Equal(body, garbage.Body) || d.Reason != inbox.ReasonEnvelope {
				t.Errorf("garbage: %q, %v", body, err)
			}
		}
		if d.BusinessKey == "garbage" {
			continue
		}
		redrive = append(redrive, d.ID)
	}
	refuse.Store(false)
	if err := os.Rename(filepath.Join(dir, "lost.away"), filepath.Join(dir, "lost.key")); err != nil {
		t.Fatal(err)
	}
	f.eventually("the key is back", func() bool { _, err := keys.Key("lost"); return err == nil })
	for _, id := range redrive {
		if err := f.desk.Redrive(f.ctx, f.pool, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.pool.Exec(f.ctx, `UPDATE journeyman.inbox_retry SET next_at = journeyman.now()`); err != nil {
		t.Fatal(err)
	}
	f.eventually("all when the key is back", func() bool { return f.order("T") == "1" && f.order("dead") == "1" && f.order("waiting") == "1" })
	if _, err := inbox.New(f.bus, f.pool, inbox.Config{Group: "view", Catalog: f.cat, Concurrency: 1}, inbox.Route{Types: []string{"test.saga.started"}, Handler: apply}); err == nil || !strings.Contains(err.Error(), "keys: missing") {
		t.Errorf("without keys: got %v", err)
	}
}

// Rotation reaches what waits and what lies dead, also what came encrypted.
func TestInbox_Reseal_E4(t *testing.T) { onEach(t, testInboxResealE4) }

func testInboxResealE4(t *testing.T, f *fixture) {
	f.orders("encryption: {domain: at_rest, saga: end_to_end}\n")
	dir := filepath.Join(t.TempDir(), "keys")
	if err := seal.Generate(dir, "old"); err != nil {
		t.Fatal(err)
	}
	keys, err := seal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	saga := f.step("test.saga.started", "dead", 1, 0)
	if saga.Body, err = seal.Seal(keys, seal.EndToEnd, saga.Body, saga.Header(events.HeaderEventID)); err != nil {
		t.Fatal(err)
	}
	var refuse atomic.Bool
	refuse.Store(true)
	f.runSteps(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		switch {
		case refuse.Load() && m.Metadata.BusinessKey == "dead":
			return outcome.NewFatal(errors.New("no"))
		case refuse.Load():
			return outcome.NewRetryable(errors.New("not yet"), time.Hour)
		}
		return apply(ctx, tx, m)
	}, func(c *inbox.Config) { c.Keys = keys })
	f.publish(saga, f.step("test.step.started", "dead", 2, 0), f.step("test.step.started", "waiting", 1, 0))
	f.eventually("two dead, one waits", func() bool {
		return len(f.dead()) == 2 && f.count(`SELECT count(*) FROM journeyman.inbox_retry`) == 1
	})
	if err := seal.Generate(dir, "new"); err != nil {
		t.Fatal(err)
	}
	f.eventually("the new key is in use", func() bool { id, err := keys.Current(); return err == nil && id == "new" })
	got, err := seal.Reseal(f.ctx, f.pool, keys, inbox.SealedTables("journeyman"), nil)
	if err != nil || got.Rows != 3 || got.Changed != 0 || len(got.Left) != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := os.Remove(filepath.Join(dir, "old.key")); err != nil {
		t.Fatal(err)
	}
	refuse.Store(false)
	for _, d := range f.dead() {
		if err := f.desk.Redrive(f.ctx, f.pool, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.pool.Exec(f.ctx, `UPDATE journeyman.inbox_retry SET next_at = journeyman.now()`); err != nil {
		t.Fatal(err)
	}
	f.eventually("all under the new key alone", func() bool { return f.applied() == 3 })
}

func TestOrder_BatchesKeepIt_E4(t *testing.T) { onEach(t, testOrderBatchesKeepItE4) }

// Messages of strict orders share a transaction and go to a batch handler together, in order; a gap or a refusal stops its key alone.
func testOrderBatchesKeepItE4(t *testing.T, f *fixture) {
	f.orders("")
	var most atomic.Int64
	batch := func(ctx context.Context, tx *outbox.Tx, list []events.Received) error {
		for _, m := range list {
			if m.Metadata.BusinessKey == "bad" && m.Metadata.Sequence == 5 {
				return outcome.NewBusiness("NO", "no")
			}
		}
		most.Store(max(most.Load(), int64(len(list))))
		for _, m := range list {
			if err := apply(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	}
	const each = 20
	var all []events.Record
	for n := 1; n <= each; n++ {
		for _, key := range []string{"A", "B", "bad", "gap"} {
			if key != "gap" || n != 10 {
				all = append(all, f.step("test.saga.started", key, n, n-1))
			}
		}
	}
	f.publish(all...)
	f.runRoutes([]inbox.Route{{Types: []string{"test.saga.started"}, Batch: batch}}, func(c *inbox.Config) { c.Stager, c.Concurrency, c.MaxInFlight = nil, 1, 200 })
	f.eventually("all that can be applied", func() bool { return f.applied() == 2*each+4+9 && f.held() == 15+10 && len(f.dead()) == 1 })
	const whole = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"
	for key, want := range map[string]string{"A": whole, "B": whole, "bad": "1 2 3 4", "gap": "1 2 3 4 5 6 7 8 9"} {
		if got := f.order(key); got != want {
			t.Errorf("key %s: applied %s, want %s", key, got, want)
		}
	}
	if most.Load() < 2 {
		t.Errorf("the largest batch has %d messages", most.Load())
	}
	if n := f.count(`SELECT count(*) FROM journeyman.inbox_order WHERE business_key IN ('A', 'B') AND seq = $1 OR business_key = 'bad' AND seq = 4 OR business_key = 'gap' AND seq = 9`, each); n != 4 {
		t.Errorf("%d of four keys stand where they should", n)
	}
	f.publish(f.step("test.saga.started", "gap", 10, 9))
	f.eventually("the rest behind the gap", func() bool { return f.order("gap") == whole && f.held() == 15 })
}
