package work_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// An item is part of the transaction that puts it: it is done when that commits, and never when it does not.
func TestPut_E14_IsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.run(work.Config{}, f.queue(apply))
	err := pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error {
		return errors.Join(f.store.Put(f.ctx, tx, item("undone")), errors.New("changed my mind"))
	})
	if err == nil || !strings.Contains(err.Error(), "changed") {
		t.Fatal(err)
	}
	f.put(item("done"))
	f.eventually("the item", func() bool { return f.applied() == 1 })
	if n := f.count(`SELECT count(*) FROM applied WHERE id = 'undone'`) + f.count(`SELECT count(*) FROM journeyman.work_item`); n != 0 {
		t.Errorf("%d items of the transaction that was rolled back, or left over", n)
	}
}

func TestPut_SameIDTwice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(item("a"), item("a"))
	other := item("a")
	other.Payload = "other"
	if err := f.store.Put(f.ctx, f.pool, other); !errors.Is(err, work.ErrConflict) {
		t.Errorf("another payload under the same id: got %v, want ErrConflict", err)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.work_item`); n != 1 {
		t.Errorf("%d items, want 1", n)
	}
	err := f.store.Put(f.ctx, f.pool, work.Item{Queue: "Not A Name", Key: "\x00", Priority: 7, After: -1})
	for _, want := range []string{"queue", "id", "key", "priority 7", "after -1ns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

// Five runners do 500 items of 25 keys: each once, each key in order, one at a time.
func TestRunner_E14_ManyRunnersKeepTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var items []work.Item
	for n := range 20 {
		for k := range 25 {
			items = append(items, keyed(fmt.Sprintf("K%d", k), n))
		}
	}
	f.put(items...)
	var running [25]atomic.Int64
	var overlaps atomic.Int64
	h := func(ctx context.Context, tx *outbox.Tx, task work.Task) error {
		var k int
		if _, err := fmt.Sscanf(task.Key, "K%d", &k); err != nil {
			return err
		}
		if running[k].Add(1) > 1 {
			overlaps.Add(1)
		}
		defer running[k].Add(-1)
		return apply(ctx, tx, task)
	}
	for range 5 {
		f.run(work.Config{}, f.queue(h))
	}
	f.eventually("all items", func() bool { return f.applied() >= len(items) })
	for k := range 25 {
		var want []string
		for n := range 20 {
			want = append(want, fmt.Sprintf("K%d-%d", k, n))
		}
		if got := f.order(fmt.Sprintf("K%d", k)); got != strings.Join(want, " ") {
			t.Errorf("key %d: done %s", k, got)
		}
	}
	if n := overlaps.Load(); n > 0 || f.applied() != len(items) {
		t.Errorf("%d overlaps within a key, %d items done, want %d", n, f.applied(), len(items))
	}
}

// A failing item holds the later ones of its key, nobody else's, and ends in the quarantine by its schedule.
func TestRunner_E8_HowAHandlerEnds(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var attempts, alerts atomic.Int64
	h := func(ctx context.Context, tx *outbox.Tx, task work.Task) error {
		if err := apply(ctx, tx, task); err != nil {
			return err
		}
		switch task.ID {
		case "sick-1":
			attempts.Store(int64(task.Attempt))
			return errors.New("always")
		case "business":
			return outcome.NewBusiness("SOLD_OUT", "no room")
		case "fatal":
			return outcome.NewFatal(errors.New("broken"))
		case "panic":
			panic("boom")
		case "commit":
			_, _ = tx.Exec(ctx, "COMMIT")
		case "emit":
			tx.Emit(events.Message{Type: "test.no.such", BusinessKey: "K"})
		case "overstays":
			<-ctx.Done()
		}
		return nil
	}
	q := f.queue(h)
	q.Timeout = 200 * time.Millisecond
	f.put(keyed("sick", 1), keyed("sick", 2), keyed("well", 1), item("business"), item("fatal"), item("panic"), item("commit"), item("emit"), item("overstays"))
	f.run(work.Config{Hooks: work.Hooks{Dead: func(string, string, string, bool) { alerts.Add(1) }}}, q)
	f.eventually("seven in quarantine, two done", func() bool { return len(f.quarantine()) == 7 && f.applied() == 2 })
	want := map[string]string{
		"sick-1": "dead poisoned 3", "business": "parked SOLD_OUT 1", "fatal": "dead error 1", "panic": "dead panic 1", "commit": "dead error 1", "emit": "dead emit 1", "overstays": "dead poisoned 3",
	}
	for _, q := range f.quarantine() {
		if got := fmt.Sprintf("%s %s %d", q.State, q.Reason, q.Attempts); got != want[q.ID] {
			t.Errorf("%s: %s (%s), want %s", q.ID, got, q.Error, want[q.ID])
		}
	}
	if attempts.Load() != 3 || f.order("sick") != "sick-2" || f.order("well") != "well-1" {
		t.Errorf("%d attempts, sick %q, well %q", attempts.Load(), f.order("sick"), f.order("well"))
	}
	f.eventually("an alert for each", func() bool { return alerts.Load() == 7 })
}

func TestDesk_E14_RetryDropAndStats(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var refuse atomic.Bool
	refuse.Store(true)
	f.put(item("a"), item("b"))
	stop := f.run(work.Config{}, f.queue(func(ctx context.Context, tx *outbox.Tx, task work.Task) error {
		if refuse.Load() {
			return outcome.NewBusiness("NO", "no")
		}
		return apply(ctx, tx, task)
	}))
	f.eventually("both in quarantine", func() bool { return len(f.quarantine()) == 2 })
	refuse.Store(false)
	list := f.quarantine()
	if err := f.desk.Retry(f.ctx, f.pool, list[0].Row); err != nil {
		t.Fatal(err)
	}
	f.eventually("the retried one", func() bool { return f.applied() == 1 })
	stop()
	if err := f.desk.Drop(f.ctx, f.pool, list[1].Row); err != nil {
		t.Fatal(err)
	}
	if err := f.desk.Drop(f.ctx, f.pool, list[1].Row); !errors.Is(err, work.ErrNotQuarantined) {
		t.Errorf("got %v, want ErrNotQuarantined", err)
	}
	later := item("later")
	later.After = time.Hour
	f.put(item("now"), later)
	f.advance(10 * time.Minute)
	stats, err := f.desk.Stats(f.ctx, f.pool, "test")
	if err != nil || len(stats) != 1 {
		t.Fatalf("got %v, %v", stats, err)
	}
	if s := stats[0]; s.Due != 1 || s.Scheduled != 1 || s.OldestDue < 10*time.Minute || s.OldestDue > 11*time.Minute || s.Dead+s.Parked != 0 {
		t.Errorf("got %+v", s)
	}
	var text strings.Builder
	if err := work.WriteMetrics(&text, stats); err != nil || !strings.Contains(text.String(), `journeyman_work_backlog{queue="test"} 1`) {
		t.Errorf("got %v\n%s", err, text.String())
	}
}

// Nothing is done before its time, by the database's clock; what is due later does not hold its key; a cancelled item is not done.
func TestSchedule_E14_NotBefore(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first, second, third := keyed("K", 1), keyed("K", 2), keyed("K", 3)
	first.After, third.After = time.Hour, 2*time.Hour
	f.put(first, second, third)
	f.run(work.Config{}, f.queue(apply))
	f.eventually("the one that is due", func() bool { return f.order("K") == "K-2" })
	f.advance(59 * time.Minute)
	f.put(item("marker"))
	f.eventually("a later item", func() bool { return f.applied() == 2 })
	if got := f.order("K"); got != "K-2" {
		t.Errorf("done %s a minute before the time", got)
	}
	if ok, err := f.store.Cancel(f.ctx, f.pool, "test", "K-3"); !ok || err != nil {
		t.Errorf("cancel: %v, %v", ok, err)
	}
	f.advance(2 * time.Hour)
	f.eventually("the scheduled one", func() bool { return f.order("K") == "K-2 K-1" })
	if ok, err := f.store.Cancel(f.ctx, f.pool, "test", "K-1"); ok || err != nil {
		t.Errorf("cancel of what was done: %v, %v", ok, err)
	}
}

func TestRunner_Priority(t *testing.T) {
	t.Parallel()
	f := setup(t)
	low, high := item("low"), item("high")
	low.Priority, high.Priority = work.Low, work.High
	f.put(low, item("normal"), high)
	q := f.queue(apply)
	q.Concurrency = 1
	f.run(work.Config{}, q)
	f.eventually("all", func() bool { return f.applied() == 3 })
	if got := f.order(""); got != "high normal low" {
		t.Errorf("done %s", got)
	}
}

// A message that is due later is staged then, once, under an id that does not change.
func TestSchedule_E14_Message(t *testing.T) {
	t.Parallel()
	f := setup(t)
	at := time.Now().Add(time.Hour)
	m := events.Message{Type: "test.quote.expired", Data: map[string]any{"quote": 7}}
	o := events.Origin{OperationID: "op-1", BusinessKey: "Q-7", CorrelationID: "c-1"}
	if err := f.store.Schedule(f.ctx, f.pool, f.stager, "Q-7/expiry", at, o, m); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Schedule(f.ctx, f.pool, f.stager, "x", at, o, events.Message{Type: "test.no.such"}); err == nil {
		t.Error("a message that cannot be staged was scheduled")
	}
	f.run(work.Config{}, work.Messages(2), f.queue(apply))
	f.put(item("marker"))
	f.eventually("a marker", func() bool { return f.applied() == 1 })
	if n := f.count(`SELECT count(*) FROM journeyman.outbox`); n != 0 {
		t.Fatalf("%d messages staged before their time", n)
	}
	f.advance(time.Hour + time.Minute)
	f.eventually("the message", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 1 })
	var id, key, op string
	if err := f.pool.QueryRow(f.ctx, `SELECT event_id::text, business_key, operation_id FROM journeyman.outbox`).Scan(&id, &key, &op); err != nil {
		t.Fatal(err)
	}
	want := events.DeriveID("work/"+work.MessageQueue+"/Q-7/expiry", 0, events.Message{Type: m.Type, Version: 1, BusinessKey: "Q-7"})
	if id != want || key != "Q-7" || op != "op-1" {
		t.Errorf("staged %s %s %s, want %s", id, key, op, want)
	}
}

// A runner that stood still past its lease was taken over: when it wakes it does nothing.
func TestRunner_E14_ZombieIsFenced(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := "zombie-" + events.NewID()
	var first atomic.Bool
	asleep, wake := make(chan struct{}), make(chan struct{})
	stop := crash.Hook("work.claimed", func(detail string) {
		if detail == id && first.CompareAndSwap(false, true) {
			close(asleep)
			<-wake
		}
	})
	defer stop()
	f.put(item(id))
	var fenced atomic.Int64
	cfg := work.Config{Hooks: work.Hooks{Fenced: func(string, string) { fenced.Add(1) }}}
	q := f.queue(apply)
	q.Concurrency = 1
	f.run(cfg, q)
	<-asleep
	f.run(work.Config{}, q)
	f.put(item("marker"))
	f.eventually("a marker by the other runner", func() bool { return f.applied() == 1 })
	if n := f.count(`SELECT count(*) FROM applied WHERE id = $1`, id); n != 0 {
		t.Fatal("taken over before the lease ended")
	}
	f.advance(2 * time.Minute)
	f.eventually("the item, by the other runner", func() bool { return f.applied() == 2 })
	close(wake)
	f.eventually("the fence", func() bool { return fenced.Load() == 1 })
	if n := f.applied(); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

// The runner's process is killed after the claim, inside the transaction and after the commit: each item is done once, in order.
func TestRunner_E14_Killed(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"work.claimed", "work.begun", "work.committed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			var items []work.Item
			for n := range 5 {
				for k := range 4 {
					items = append(items, keyed(fmt.Sprintf("K%d", k), n))
				}
			}
			f.put(items...)
			for n := range 5 {
				if err := f.store.Schedule(f.ctx, f.pool, f.stager, fmt.Sprint(n), time.Time{}, events.Origin{BusinessKey: "Q"}, events.Message{Type: "test.quote.expired", Data: struct{}{}}); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(f.ctx, os.Args[0])
			cmd.Env = append(os.Environ(), envChild+"="+f.dsn, envArm+"="+point+":7")
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:forcetypeassert // Unix
				t.Fatalf("child ended with %v, want SIGKILL\n%s", err, out)
			}
			f.advance(2 * time.Minute)
			f.run(work.Config{}, f.queue(apply), work.Messages(1))
			defer func() {
				if t.Failed() {
					list, _ := f.desk.List(context.Background(), f.pool, "", 100)
					t.Logf("applied %d waiting %+v quarantine %+v", f.applied(), list, f.quarantine())
				}
			}()
			f.eventually("all items", func() bool {
				return f.applied() >= len(items) && f.count(`SELECT count(*) FROM journeyman.outbox`) >= 5
			})
			for k := range 4 {
				want := fmt.Sprintf("K%[1]d-0 K%[1]d-1 K%[1]d-2 K%[1]d-3 K%[1]d-4", k)
				if got := f.order(fmt.Sprintf("K%d", k)); got != want {
					t.Errorf("key %d: done %s", k, got)
				}
			}
			if n := f.count(`SELECT count(*) FROM journeyman.outbox`); n != 5 {
				t.Errorf("%d messages, want 5", n)
			}
		})
	}
}

// What ends its connection every time does not go on for ever.
func TestRunner_CrashLoopIsQuarantined(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(item("killer"))
	f.run(work.Config{}, f.queue(func(ctx context.Context, tx *outbox.Tx, _ work.Task) error {
		_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	}))
	f.eventually("the quarantine", func() bool { l := f.quarantine(); return len(l) == 1 && l[0].Reason == work.ReasonCrashLoop })
}

// A call to another system comes before the transaction, and gives its result to the handler.
func TestQueue_Call(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var calls atomic.Int64
	q := f.queue(func(ctx context.Context, tx *outbox.Tx, task work.Task) error {
		if task.Result != "answer to "+task.ID {
			return outcome.NewFatal(fmt.Errorf("result %v", task.Result))
		}
		return apply(ctx, tx, task)
	})
	q.Call = func(_ context.Context, task work.Task) (any, error) {
		if calls.Add(1) == 1 {
			return nil, errors.New("not yet")
		}
		return "answer to " + task.ID, nil
	}
	f.put(item("a"))
	f.run(work.Config{}, q)
	f.eventually("the item", func() bool { return f.applied() == 1 })
	if calls.Load() != 2 {
		t.Errorf("%d calls, want 2", calls.Load())
	}
}

func TestStore_E4_PayloadsRestEncrypted(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dir := t.TempDir()
	if err := errors.Join(seal.Generate(dir, "k1"), seal.Use(dir, "k1")); err != nil {
		t.Fatal(err)
	}
	keys, err := seal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if f.store, err = work.NewStore("", keys); err != nil {
		t.Fatal(err)
	}
	secret := item("a")
	secret.Payload = map[string]string{"name": "Roberta"}
	f.put(secret)
	if n := f.count(`SELECT count(*) FROM journeyman.work_item WHERE position('Roberta'::bytea IN body) > 0`); n != 0 {
		t.Error("the payload rests in the clear")
	}
	f.run(work.Config{Keys: keys}, f.queue(work.Typed(func(ctx context.Context, tx *outbox.Tx, task work.Task, p struct{ Name string }) error {
		if p.Name != "Roberta" {
			return outcome.NewFatal(fmt.Errorf("name %q", p.Name))
		}
		return apply(ctx, tx, task)
	})))
	f.eventually("the item", func() bool { return f.applied() == 1 })
}

func TestNewRunner_R5_RefusesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	_, err := work.NewRunner(f.pool, work.Config{Poll: 1, DrainTimeout: -1},
		work.Queue{Name: "a", PoisonedAfter: 99, Lease: time.Second},
		work.Queue{Name: "a", Concurrency: 1, Handler: apply, Retry: slices.Repeat([]time.Duration{time.Hour}, 33)},
		work.Queue{Name: "b", Concurrency: 1, Handler: apply, Retry: []time.Duration{48 * time.Hour}}, work.Messages(1))
	for _, want := range []string{"poll", "drain timeout", "handler: missing", "concurrency 0", "poisoned after 99", "lease 1s", `queue "a": twice`, "33 delays", "48h", "stager: missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant it to name %q", err, want)
		}
	}
}

// A queue that the catalog lacks, or that is retried otherwise than it says, refuses to start; what the code leaves open is the catalog's.
func TestNewRunner_Catalog_E3(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c, err := events.ParseCatalog([]byte("queues: [{name: test, owner: platform, producers: [a], consumers: [b], retry: [20ms], poisoned_after: 1}]"))
	if err != nil {
		t.Fatal(err)
	}
	slow := f.queue(apply)
	slow.Retry = []time.Duration{time.Hour}
	other := f.queue(apply)
	other.Name = "other"
	for want, q := range map[string]work.Queue{`queue "other": not in the catalog`: other, `queue "test": retry [1h0m0s]`: slow} {
		if _, err := work.NewRunner(f.pool, work.Config{Catalog: c}, q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f.put(item("a"))
	q := work.Queue{Name: "test", Concurrency: 1, Handler: func(context.Context, *outbox.Tx, work.Task) error { return errors.New("never") }}
	f.run(work.Config{Catalog: c}, q)
	f.eventually("the quarantine, after the catalog's one attempt", func() bool { return len(f.quarantine()) == 1 })
	if got := f.quarantine()[0].Attempts; got != 1 {
		t.Errorf("%d attempts, want 1", got)
	}
	if own, err := work.Catalog(); err != nil || len(own.Queues()) != 1 || own.Complete() != nil {
		t.Errorf("the library's own catalog: %v", err)
	}
}
