package outbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// Keys that nothing was staged for in a long time are removed, in two sweeps at
// least ten minutes apart, and begin anew above where they ended. Keys in use stay.
func TestRelay_SweepsIdleKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r, err := outbox.NewRelay(f.pool, newBroker(), outbox.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	stage := func(id, key string, n int) {
		t.Helper()
		var msgs []events.Message
		for i := range n {
			msgs = append(msgs, created(key, i))
		}
		if err := f.stage(origin(id), msgs); err != nil {
			t.Fatal(err)
		}
	}
	ahead := func(d time.Duration) {
		t.Helper()
		if _, err := f.pool.Exec(f.ctx, `SELECT journeyman.advance_clock($1::interval)`, d); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(want int64) {
		t.Helper()
		if n, err := r.SweepKeys(f.ctx); err != nil || n != want {
			t.Fatalf("swept %d keys, %v; want %d", n, err, want)
		}
	}
	last := func(key string) int {
		t.Helper()
		return f.count(`SELECT max(seq) FROM journeyman.outbox WHERE business_key = $1`, key)
	}
	stage("op-1", "idle", 7)
	stage("op-2", "busy", 2)
	sweep(0) // marks both
	ahead(399 * 24 * time.Hour)
	stage("op-3", "busy", 1)
	sweep(0)
	ahead(2 * 24 * time.Hour)
	sweep(0) // raises the floor to 7
	ahead(9 * time.Minute)
	sweep(0) // a statement from before the floor may still run
	stage("op-4", "new", 1)
	if got := last("new"); got != 8 {
		t.Errorf("a new key begins at %d, want above the floor, 8", got)
	}
	ahead(2 * time.Minute)
	sweep(1)
	if n := f.count(`SELECT count(*) FROM journeyman.outbox_key WHERE business_key IN ('busy', 'new')`); n != 2 {
		t.Errorf("%d of the keys in use are left, want 2", n)
	}
	stage("op-5", "idle", 2)
	if got := last("idle"); got != 9 {
		t.Errorf("the removed key is at %d, want 9: above where it ended, and in sequence", got)
	}
	stage("op-6", "busy", 1)
	if got := last("busy"); got != 4 {
		t.Errorf("the key in use is at %d, want 4", got)
	}
}

// What consumers count on is not forgotten: a key of a strict order stays.
func TestRelay_SweepKeepsStrictOrders(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r, err := outbox.NewRelay(f.pool, newBroker(), outbox.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.pool.Exec(f.ctx, `
		INSERT INTO journeyman.outbox_key (business_key, seq, turn, idle_since) VALUES ('strict', 5, 5, '2020-01-01'), ('plain', 3, 3, '2020-01-01');
		INSERT INTO journeyman.outbox_order (business_key, scope, seq, previous) VALUES ('strict', 's', 5, 4);
		UPDATE journeyman.outbox_key_floor SET seq = 9, turn = 9`); err != nil {
		t.Fatal(err)
	}
	if n, err := r.SweepKeys(f.ctx); err != nil || n != 1 {
		t.Errorf("swept %d keys, %v; want 1", n, err)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.outbox_key WHERE business_key = 'strict'`); n != 1 {
		t.Error("the key of a strict order is gone")
	}
}

// One relay sweeps: while another session holds the lock nothing is removed, raised or marked; when it lets go all of it is done.
func TestRelay_SweepIsLeftToTheHolder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	r, err := outbox.NewRelay(f.pool, newBroker(), outbox.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.pool.Exec(f.ctx, `
		INSERT INTO journeyman.outbox_key (business_key, seq, turn, idle_since) VALUES ('below', 3, 3, '2020-01-01'), ('above', 12, 12, '2020-01-01'), ('used', 2, 2, NULL);
		UPDATE journeyman.outbox_key_floor SET seq = 9, turn = 9`); err != nil {
		t.Fatal(err)
	}
	stands := func() string {
		t.Helper()
		var s string
		if err := f.pool.QueryRow(f.ctx, `
			SELECT concat_ws(' ', (SELECT count(*) FROM journeyman.outbox_key), (SELECT seq FROM journeyman.outbox_key_floor),
				(SELECT idle_since IS NOT NULL FROM journeyman.outbox_key WHERE business_key = 'used'))`).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	letGo := f.hold("journeyman.outbox_key.journeyman")
	if n, err := r.SweepKeys(f.ctx); err != nil || n != 0 || stands() != "3 9 f" {
		t.Errorf("under another's lock: swept %d keys, %v; keys, floor and mark are %s, want them left at 3 9 f", n, err, stands())
	}
	letGo()
	if n, err := r.SweepKeys(f.ctx); err != nil || n != 1 || stands() != "2 12 t" {
		t.Errorf("afterwards: swept %d keys, %v; keys, floor and mark are %s, want 2 12 t", n, err, stands())
	}
}

// hold takes an advisory lock in a session of its own, as another process would, until the returned function is called.
func (f *fixture) hold(lock string) (letGo func()) {
	f.Helper()
	tx, err := f.pool.Begin(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	letGo = func() { _ = tx.Rollback(context.Background()) } // again is no harm
	f.Cleanup(letGo)
	if _, err := tx.Exec(f.ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, lock); err != nil {
		f.Fatal(err)
	}
	return letGo
}
