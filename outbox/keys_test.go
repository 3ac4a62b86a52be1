package outbox_test

import (
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
