package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

const day = 24 * time.Hour

// TestRetention_D1: each type's operations stay as long as it declares, never shorter than the worker's, its undo too, whichever way
// they end. A repeat within that time gets the stored answer.
func TestRetention_D1(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	m := s.mux(Retain(90 * day))
	m.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test"), Retain(60*day)))
	m.Handle("plain", Transactional(w.insertRoom, NotCompensable("test")))
	m.Handle("batch", Batch(4, func(_ context.Context, _ *Tx, jobs []Job[reserve]) ([]BatchEnd[reserved], error) {
		return make([]BatchEnd[reserved], len(jobs)), nil
	}, NoEffect(), Retain(45*day)))
	cfg := fast()
	wk, _ := w.start(m, cfg)
	rt := wk.Runtime()
	for jobType, want := range map[string]int{"hotel.reserve": 90, "flight.reserve": 60, "plain": 30, "batch": 45} {
		w.wait(w.gw.add(jobType, job(jobType, offer)), "completed")
		op := w.op(jobType)
		if got := op.ExpiresAt.Sub(op.SettledAt).Round(time.Hour); got != time.Duration(want)*day {
			t.Errorf("%s stays %s, want %d days", jobType, got, want)
		}
		if r, ok := rt.RetentionOf(jobType); !ok || r.For != time.Duration(want)*day || r.Keep != 0 {
			t.Errorf("%s says %+v, %v", jobType, r, ok)
		}
	}
	if _, err := rt.Undo(w.ctx, "hotel.reserve", "test"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"hotel.reserve", "hotel.reserve:undo"} {
		if op := w.op(id); op.ExpiresAt.Sub(op.SettledAt) < 89*day {
			t.Errorf("%s (%s) stays %s", id, op.State, op.ExpiresAt.Sub(op.SettledAt))
		}
	}
	if d := rt.LongestRetention(); d != 90*day {
		t.Errorf("longest retention %s", d)
	}
	w.advance(59 * day)
	w.until("purged", func() bool { // the worker's own purge may be the leader, and an answer not yet acknowledged holds its row
		_, err := rt.Purge(w.ctx)
		return err == nil && w.op("plain").OperationID == ""
	})
	runs := w.runs.Load()
	w.wait(w.gw.add("flight.reserve", job("flight.reserve", offer)), "completed")
	if w.runs.Load() != runs {
		t.Error("a repeat within the retention ran again")
	}
	short := NewMux()
	short.Handle("a", Transactional(w.insertRoom, NoEffect(), Retain(time.Hour)))
	if _, err := newWorker(w.gw, w.pool, short, fast()); err == nil || !strings.Contains(err.Error(), `"a": Retain 1h0m0s: want at least the worker's 720h0m0s`) {
		t.Errorf("a retention under the worker's: %v", err)
	}
}

// TestRetention_D3: what is left of a money operation never lets it run again: a repeat whose answer is gone is FATAL, one that had no
// variables gets its answer, another input is a conflict as ever, and it cannot be undone any more.
func TestRetention_D3(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	m := s.mux(Amount(func(reserve) (int64, string) { return 100, "EUR" }))
	m.Handle("void", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (struct{}, error) {
		_, err := w.insertRoom(ctx, tx, j)
		return struct{}{}, err
	}, NotCompensable("test"), Financial()))
	wk, _ := w.start(m, fast())
	rt := wk.Runtime()
	w.wait(w.gw.add("hotel.reserve", job("pay", offer)), "completed")
	w.wait(w.gw.add("void", job("void", offer)), "completed")
	w.advance(31 * day)
	w.until("slimmed", func() bool {
		_, err := rt.Purge(w.ctx)
		return err == nil && !w.op("pay").SlimmedAt.IsZero() && !w.op("void").SlimmedAt.IsZero()
	})
	if op := w.op("pay"); op.Keep != dedup.KeepMoney || op.Input != nil || op.Variables != nil || op.CallResult != nil || op.BusinessKey != "B-1" || len(op.ResultHash) == 0 {
		t.Errorf("left of it: %+v", op)
	}
	if j := w.wait(w.gw.add("hotel.reserve", job("pay", offer)), "failed"); !strings.Contains(j.message, reasonExpired) {
		t.Errorf("repeat: %q", j.message)
	}
	w.wait(w.gw.add("void", job("void", offer)), "completed")
	if j := w.wait(w.gw.add("void", job("void", `"offer":"F2","seats":2`)), "failed"); !strings.Contains(j.message, outcome.ReasonConflict) {
		t.Errorf("another input: %q", j.message)
	}
	if u, err := rt.Undo(w.ctx, "pay", "too late"); err != nil || !u.Parked || u.Standing == "" {
		t.Errorf("undo: %+v, %v", u, err)
	}
	if c := s.counts("pay"); c.calls != 1 || c.undone != 0 || w.runs.Load() != 1 {
		t.Errorf("supplier saw %+v, %d runs", c, w.runs.Load())
	}
}
