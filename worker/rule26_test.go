package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

// bus makes jobs share a transaction: one slot, held by a job of another type until all are waiting.
type bus struct {
	*world
	mu  sync.Mutex
	xid map[string][]string // transactions in which an operation's handler ran
	wk  *Worker
}

// runBus runs jobs op-1, op-2, ... of one type, whose handler is f, together. Each leaves a room behind first.
func runBus(w *world, n int, f func(ctx context.Context, tx *Tx, j Job[reserve]) error, edit ...func(*Config)) (*bus, []int64) {
	w.t.Helper()
	b := &bus{world: w, xid: map[string][]string{}}
	gate := make(chan struct{})
	mux := NewMux()
	mux.Handle("gate", Transactional(func(ctx context.Context, _ *Tx, _ Job[struct{}]) (struct{}, error) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return struct{}{}, ctx.Err()
	}, NoEffect()))
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		var xid string
		if err := tx.QueryRow(ctx, `INSERT INTO room VALUES ($1, $2) RETURNING pg_current_xact_id()::text`, j.OperationID, w.runs.Add(1)).Scan(&xid); err != nil {
			return reserved{}, err
		}
		b.mu.Lock()
		b.xid[j.OperationID] = append(b.xid[j.OperationID], xid)
		b.mu.Unlock()
		if f != nil {
			if err := f(ctx, tx, j); err != nil {
				return reserved{}, err
			}
		}
		return reserved{ID: "R-" + j.OperationID}, nil
	}, NotCompensable("test")))
	cfg := fast()
	cfg.Concurrency, cfg.MaxJobsActive, cfg.groupBudget = 1, 40, 10*time.Second // whatever else the machine does
	for _, e := range edit {
		e(&cfg)
	}
	var stop func()
	b.wk, stop = w.start(mux, cfg)
	w.t.Cleanup(stop)
	g := w.gw.add("gate", job("gate", ""))
	w.until("the slot is held", func() bool { return w.gw.job(g).state == "activated" })
	w.until("the slot is taken", func() bool { ok := b.wk.slots.TryAcquire(1); release(ok, b.wk); return !ok })
	keys := make([]int64, n)
	for i := range keys {
		keys[i] = w.gw.add("flight.reserve", job(fmt.Sprint("op-", i+1), offer))
	}
	w.until("all wait", func() bool { b.wk.mu.Lock(); defer b.wk.mu.Unlock(); return len(b.wk.waiting) == n })
	for range paceEnough + cfg.Concurrency { // only now: a backlog may have come before its type was known to be fast
		b.wk.rt.paces["flight.reserve"].record(time.Millisecond)
	}
	close(gate)
	return b, keys
}

// in lists the transactions in which an operation's handler ran.
func (b *bus) in(id string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.xid[id])
}

func release(ok bool, w *Worker) {
	if ok {
		w.slots.Release(1)
	}
}

// TestRule26_group: a refusal in a shared transaction takes only its own changes back, and everybody's outcome stands.
func TestRule26_group(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, keys := runBus(w, 5, func(_ context.Context, _ *Tx, j Job[reserve]) error {
		if j.OperationID == "op-3" {
			return BusinessError("SOLD_OUT", "none left")
		}
		return nil
	})
	for i, k := range keys {
		id := fmt.Sprint("op-", i+1)
		want, rooms := "completed", 1
		if i == 2 {
			want, rooms = "error-thrown", 0
		}
		if w.wait(k, want); w.rooms(id) != rooms {
			t.Errorf("%s: %s with %d rooms, want %d", id, want, w.rooms(id), rooms)
		}
		if x := b.in(id); len(x) != 1 || x[0] != b.in("op-1")[0] {
			t.Errorf("%s ran in transactions %v, want once, in the one of op-1, %v", id, x, b.in("op-1"))
		}
	}
	if p := b.wk.rt.paces["flight.reserve"]; p.grouped != 5 || p.splits != 0 || !p.shares() {
		t.Errorf("grouped %d, splits %d", p.grouped, p.splits)
	}
}

// TestRule26_split: an SQL error takes the whole transaction back; each runs singly then, and so does the type for a while.
func TestRule26_split(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var once sync.Once
	b, keys := runBus(w, 4, func(ctx context.Context, tx *Tx, j Job[reserve]) (err error) {
		if j.OperationID == "op-3" {
			once.Do(func() { _, err = tx.Exec(ctx, `DO $$ BEGIN RAISE deadlock_detected; END $$`) })
		}
		return err
	})
	for i, k := range keys {
		id := fmt.Sprint("op-", i+1)
		if j := w.wait(k, "completed"); j.Retries != 3 || w.rooms(id) != 1 {
			t.Errorf("%s: %d retries left, %d rooms", id, j.Retries, w.rooms(id))
		}
	}
	if p := b.wk.rt.paces["flight.reserve"]; p.splits != 1 || p.grouped != 0 || p.shares() {
		t.Errorf("grouped %d, splits %d, shares %v", p.grouped, p.splits, p.shares())
	}
}

// TestRule26_settings: what a handler sets ends with its transaction, before the next handler.
func TestRule26_settings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	seen := map[string]string{}
	b, keys := runBus(w, 4, func(ctx context.Context, tx *Tx, j Job[reserve]) error {
		var v string
		if err := tx.QueryRow(ctx, `SELECT current_setting('statement_timeout')`).Scan(&v); err != nil {
			return err
		}
		mu.Lock()
		seen[j.OperationID] = v
		mu.Unlock()
		_, err := tx.Exec(ctx, `/* mine */ SET LOCAL statement_timeout = '7s'`)
		return err
	})
	for i, k := range keys {
		id := fmt.Sprint("op-", i+1)
		w.wait(k, "completed")
		mu.Lock()
		had := seen[id]
		mu.Unlock()
		if w.rooms(id) != 1 || had != "0" {
			t.Errorf("%s: %d rooms, statement_timeout %s from the handler before", id, w.rooms(id), had)
		}
	}
	if b.wk.rt.paces["flight.reserve"].shares() {
		t.Error("a type that changes settings still shares transactions")
	}
}

// TestRule26_retry: a failure that is no SQL error leaves the others alone; its claim goes, and it runs again.
func TestRule26_retry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var once sync.Once
	b, keys := runBus(w, 4, func(_ context.Context, _ *Tx, j Job[reserve]) (err error) {
		if j.OperationID == "op-2" {
			once.Do(func() { err = errors.New("the price list is being loaded") })
		}
		return err
	})
	for i, k := range keys {
		id := fmt.Sprint("op-", i+1)
		w.wait(k, "completed")
		if op := w.op(id); w.rooms(id) != 1 || op.State != dedup.Done {
			t.Errorf("%s: %d rooms, %s", id, w.rooms(id), op.State)
		}
	}
	if len(b.in("op-2")) != 2 || len(b.in("op-3")) != 1 {
		t.Errorf("op-2 ran in %v, op-3 in %v", b.in("op-2"), b.in("op-3"))
	}
}

// TestRule26_budget: no handler begins that would not end within the budget; those left run afterwards.
func TestRule26_budget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, keys := runBus(w, 4, func(ctx context.Context, tx *Tx, j Job[reserve]) error {
		if j.OperationID != "op-2" {
			return nil
		}
		_, err := tx.Exec(ctx, `SELECT pg_sleep(1.2 * $1)`, 1)
		return err
	}, func(c *Config) { c.groupBudget = time.Second })
	for i, k := range keys {
		w.wait(k, "completed")
		if n := w.rooms(fmt.Sprint("op-", i+1)); n != 1 {
			t.Errorf("op-%d: %d rooms", i+1, n)
		}
	}
	if b.in("op-1")[0] != b.in("op-2")[0] || b.in("op-3")[0] == b.in("op-2")[0] || len(b.in("op-3")) != 1 {
		t.Errorf("transactions %v, %v, %v", b.in("op-1"), b.in("op-2"), b.in("op-3"))
	}
}

// TestRule26_cut: the answer of a shared COMMIT is lost. All claim again and find their outcome.
func TestRule26_cut(t *testing.T) {
	t.Parallel()
	w, c := newCutWorld(t)
	b, keys := runBus(w, 4, func(_ context.Context, _ *Tx, j Job[reserve]) error {
		if j.OperationID == "op-1" {
			c.after.Store(true)
		}
		return nil
	})
	for i, k := range keys {
		id := fmt.Sprint("op-", i+1)
		if j := w.wait(k, "completed"); w.rooms(id) != 1 || j.answer != fmt.Sprintf(`{"id":"R-%s"}`, id) || len(b.in(id)) != 1 {
			t.Errorf("%s: %d rooms, answer %s, ran in %v", id, w.rooms(id), j.answer, b.in(id))
		}
	}
	if c.cuts.Load() == 0 {
		t.Error("nothing was cut")
	}
}

// TestGroup_twins: two jobs of one operation in a shared transaction: one runs there, the other is left to find its outcome.
func TestGroup_twins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	cfg := fast()
	cfg.groupBudget = 10 * time.Second
	rt := w.runtime(mux, cfg)
	rt.send = nil
	var mates []*mate
	for _, id := range []string{"op-1", "op-2", "op-2"} {
		mates = append(mates, &mate{t: w.jobTask(rt, "flight.reserve", job(id, offer)), ctx: w.ctx})
	}
	rt.runGroup(w.ctx, mates)
	if mates[0].res.kind != answered || mates[1].res.kind != answered || mates[2].res.kind != apart || w.rooms("op-2") != 1 {
		t.Fatalf("ends %d %d %d, %d rooms", mates[0].res.kind, mates[1].res.kind, mates[2].res.kind, w.rooms("op-2"))
	}
	if res := rt.execute(w.ctx, mates[2].t); res.kind != answered || res.left.Class != outcome.Success || w.rooms("op-2") != 1 {
		t.Errorf("the twin: %d %v, %d rooms", res.kind, res.err, w.rooms("op-2"))
	}
}

// TestGroup_statements: whatever way a handler sends its first statement, what stands before it goes along.
func TestGroup_statements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := []func(ctx context.Context, tx *Tx) error{
		func(ctx context.Context, tx *Tx) error { _, err := tx.Exec(ctx, `SELECT $1::int`, 1); return err },
		func(ctx context.Context, tx *Tx) error { _, err := tx.Exec(ctx, `SELECT 1; SELECT 2`); return err },
		func(ctx context.Context, tx *Tx) error {
			rows, err := tx.Query(ctx, `SELECT generate_series(1, $1::int)`, 3)
			if err != nil {
				return err
			}
			n := 0
			for rows.Next() { // to the end, without Close
				n++
			}
			if n != 3 {
				return fmt.Errorf("%d rows", n)
			}
			return rows.Err()
		},
		func(ctx context.Context, tx *Tx) error {
			rows, err := tx.Query(ctx, `SELECT generate_series(1, $1::int)`, 3)
			if err != nil {
				return err
			}
			got, err := pgx.CollectRows(rows, pgx.RowTo[int])
			if len(got) != 3 {
				return fmt.Errorf("%d rows, %w", len(got), err)
			}
			return err
		},
		func(ctx context.Context, tx *Tx) error {
			var n int
			if err := tx.QueryRow(ctx, `SELECT 1 WHERE $1::int = 2`, 1).Scan(&n); !errors.Is(err, pgx.ErrNoRows) {
				return fmt.Errorf("want no row, got %w", err)
			}
			return nil
		},
		func(ctx context.Context, tx *Tx) error {
			b := &pgx.Batch{}
			n, m := 0, 0
			b.Queue(`SELECT 41`).QueryRow(func(r pgx.Row) error { return r.Scan(&n) })
			b.Queue(`SELECT $1::int`, 42).QueryRow(func(r pgx.Row) error { return r.Scan(&m) })
			if err := tx.SendBatch(ctx, b).Close(); err != nil || n != 41 || m != 42 {
				return fmt.Errorf("%d, %d, %w", n, m, err)
			}
			return nil
		},
		func(ctx context.Context, tx *Tx) error {
			_, err := tx.Exec(ctx, `SELECT @n::int`, pgx.NamedArgs{"n": 1})
			return err
		},
		func(context.Context, *Tx) error { return nil },
		func(ctx context.Context, tx *Tx) error { _, err := tx.Exec(ctx, `SELECT $1::int`, 1); return err },
	}
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		return reserved{ID: j.OperationID}, first[j.In.Seats](ctx, tx)
	}, NoEffect()))
	cfg := fast()
	cfg.groupBudget = 10 * time.Second
	rt := w.runtime(mux, cfg)
	rt.send = nil
	mates := make([]*mate, len(first))
	for i := range first {
		mates[i] = &mate{t: w.jobTask(rt, "flight.reserve", job(fmt.Sprint("op-", i), fmt.Sprintf(`"offer":"F1","seats":%d`, i))), ctx: w.ctx}
	}
	rt.runGroup(w.ctx, mates)
	for _, m := range mates {
		if m.res.kind != answered || m.res.err != nil {
			t.Errorf("statement %s: %d %v", m.t.meta.OperationID, m.res.kind, m.res.err)
		}
	}
}

// TestGroup_saga: gate, ledger and events in a shared transaction are each operation's own; who was given up is refused alone.
func TestGroup_saga(t *testing.T) {
	t.Parallel()
	w, saga := newWorld(t), &fakeSaga{}
	mux := NewMux()
	mux.Handle("room", Transactional(w.insertRoom, NotCompensable("test")))
	cfg := w.withStager(fast())
	cfg.Saga, cfg.groupBudget = saga, 10*time.Second
	rt := w.runtime(mux, cfg)
	rt.send = nil
	group := func(ids ...string) (mates []*mate) {
		for _, id := range ids {
			mates = append(mates, &mate{t: w.jobTask(rt, "room", job(id, `"sagaId":"S",`+offer)), ctx: w.ctx})
		}
		rt.runGroup(w.ctx, mates)
		return mates
	}
	for _, m := range group("S:a", "S:b") {
		if m.res.kind != answered || m.res.err != nil || w.rooms(m.t.meta.OperationID) != 1 {
			t.Errorf("%s: %d %v", m.t.meta.OperationID, m.res.kind, m.res.err)
		}
	}
	if got := saga.all(); strings.Count(got, "step S:") != 2 || strings.Count(got, "enter S:") != 2 {
		t.Errorf("saga was told\n%s", got)
	}
	if n := strings.Count(w.staged(), "step.SUCCESS"); n != 2 {
		t.Errorf("%d events staged, want 2", n)
	}
	saga.mu.Lock()
	saga.enter = outcome.NewBusiness(CodeSagaGivenUp, "expired")
	saga.mu.Unlock()
	for _, m := range group("S:c", "S:d") {
		if id := m.t.meta.OperationID; m.res.kind != answered || m.res.left.Code != CodeSagaGivenUp || w.rooms(id) != 0 || w.op(id).State != dedup.Done {
			t.Errorf("%s: %d %v", id, m.res.kind, m.res.err)
		}
	}
	saga.mu.Lock()
	saga.enter = outcome.NewBusiness(CodeSagaNotMine, "another instance")
	saga.mu.Unlock()
	for _, m := range group("S:e", "S:f") {
		if id := m.t.meta.OperationID; m.res.kind != apart || w.op(id).State != "" {
			t.Errorf("%s: end %d, state %q, want nothing recorded", id, m.res.kind, w.op(id).State)
		}
	}
}
