package worker

import (
	"context"
	"strings"
	"testing"
)

// TestClaimedElsewhere: an operation whose row somebody entered without taking its lock, as workers of an earlier version do, keeps one
// effect: what runs here is taken back, alone or together, and the job gets the stored answer.
func TestClaimedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		if strings.HasPrefix(j.OperationID, "late") { // once
			if _, err := w.pool.Exec(ctx, `INSERT INTO journeyman.operation SELECT (jsonb_populate_record(o, jsonb_build_object('operation_id', $1::text))).*
				FROM journeyman.operation o WHERE operation_id = 'first'`, j.OperationID); err != nil {
				return reserved{}, err
			}
		}
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	rt := w.runtime(mux, fast())
	if res := rt.execute(w.ctx, w.jobTask(rt, "flight.reserve", job("first", offer))); res.kind != answered {
		t.Fatalf("the first: end %d, %v", res.kind, res.err)
	}
	late := w.jobTask(rt, "flight.reserve", job("late-1", offer))
	if res := rt.execute(w.ctx, late); res.kind != busy {
		t.Errorf("alone: end %d, %v; want that it claims again", res.kind, res.err)
	}
	if res := rt.execute(w.ctx, late); res.kind != answered || string(res.left.Variables) != `{"id":"R-first"}` {
		t.Errorf("again: end %d with %s, want the stored answer", res.kind, res.left.Variables)
	}
	var mates []*mate
	for _, id := range []string{"late-2", "other"} {
		mates = append(mates, &mate{t: w.jobTask(rt, "flight.reserve", job(id, offer)), ctx: w.ctx})
	}
	rt.runGroup(w.ctx, mates)
	for _, m := range mates {
		if m.res.kind != apart {
			t.Errorf("%s together: end %d, want that it runs singly", m.t.meta.OperationID, m.res.kind)
		}
	}
	for id, want := range map[string]int{"first": 1, "late-1": 0, "late-2": 0, "other": 0} {
		if n := w.rooms(id); n != want {
			t.Errorf("%s left %d rooms, want %d", id, n, want)
		}
	}
}
