package worker

import (
	"context"
	"testing"
	"time"
)

// TestGroup_later: a job whose turn does not come within the budget leaves nothing behind, and goes with the next group.
func TestGroup_later(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		if j.OperationID == "op-2" {
			if _, err := tx.Exec(ctx, `SELECT pg_sleep(1.2 * $1)`, 1); err != nil {
				return reserved{}, err
			}
		}
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	cfg := fast()
	cfg.groupBudget = time.Second
	rt := w.runtime(mux, cfg)
	rt.send = nil
	var mates []*mate
	for _, id := range []string{"op-1", "op-2", "op-3", "op-4"} {
		mates = append(mates, &mate{t: w.jobTask(rt, "flight.reserve", job(id, offer)), ctx: w.ctx})
	}
	rt.runGroup(w.ctx, mates)
	for i, m := range mates {
		id, want, rooms := m.t.meta.OperationID, answered, 1
		if i > 1 {
			want, rooms = later, 0
		}
		if m.res.kind != want || w.rooms(id) != rooms || (w.op(id).State == "") != (rooms == 0) {
			t.Errorf("%s: end %d with %d rooms, state %q; want end %d with %d rooms", id, m.res.kind, w.rooms(id), w.op(id).State, want, rooms)
		}
	}
	rt.runGroup(w.ctx, mates[2:])
	for _, m := range mates[2:] {
		if m.res.kind != answered || w.rooms(m.t.meta.OperationID) != 1 {
			t.Errorf("%s: end %d, %d rooms", m.t.meta.OperationID, m.res.kind, w.rooms(m.t.meta.OperationID))
		}
	}
}

// TestPace: a type is judged by its runs on connections that know its statements, every few runs, by the mean and by the slowest twentieth.
func TestPace(t *testing.T) {
	t.Parallel()
	p := &pace{skip: 8}
	runs := func(n int, d time.Duration) {
		for range n {
			p.record(d)
		}
	}
	runs(8, time.Second)
	if runs(paceEnough-1, time.Millisecond); p.shares() {
		t.Error("shares before it is judged")
	}
	if runs(1, time.Millisecond); !p.shares() || p.expect() != time.Millisecond || p.most() != time.Millisecond {
		t.Errorf("shares %v, expects %s, at most %s", p.shares(), p.expect(), p.most())
	}
	if runs(paceEvery, paceFast); !p.shares() {
		t.Error("does not share although its mean is below the limit")
	}
	if runs(paceEvery, paceSlow); p.shares() {
		t.Error("shares with a p95 that is not below half the budget")
	}
	if runs(paceWindow, paceFast); p.shares() {
		t.Error("shares with a mean that is not below the limit")
	}
	if runs(paceWindow, time.Millisecond); !p.shares() {
		t.Error("does not share again")
	}
	if p.split(); p.shares() {
		t.Error("shares after a split")
	}
}

func TestLanesOf(t *testing.T) {
	t.Parallel()
	for c := 1; c <= 64; c++ {
		if n := lanesOf(c); n < 1 || n > c || c >= 4 && n > c/2 || c > 1 && n < 2 {
			t.Errorf("concurrency %d: %d lanes", c, n)
		}
	}
}
