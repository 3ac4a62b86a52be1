package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// TestUndo_operatorRetry: the supplier refuses an undo that the runtime runs for a job. The undo has no job of its own: when a
// person resolves the incident of the job that asked, the undo runs afresh, once for each such retry.
func TestUndo_operatorRetry(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	mux := NewMux()
	var refused atomic.Int32
	refused.Store(2)
	mux.Handle("hotel.reserve", External(s.remote(), KeyValidFor(time.Hour), CompensatedBy("hotel.cancel", RemoteUndo[reserve, reserved]{
		Call: func(ctx context.Context, key string, u UndoOf[reserve, reserved]) error {
			if refused.Add(-1) >= 0 {
				return Fatal(errors.New("not today"))
			}
			return s.cancel(ctx, key, u)
		},
	})))
	mux.Handle("undo.rest", External(Remote[struct{}, struct{}, struct{}]{
		Call: func(ctx context.Context, c Call[struct{}]) (struct{}, error) {
			_, err := c.Undo(ctx, "op", "failed")
			return struct{}{}, err
		},
		Settle: func(context.Context, *outbox.Tx, Job[struct{}], struct{}) (struct{}, error) { return struct{}{}, nil },
	}, NoEffect(), KeyValidFor(time.Hour)))
	w.start(mux, fast())
	w.wait(w.gw.add("hotel.reserve", job("op", offer)), "completed")

	rest := w.gw.add("undo.rest", job("rest", ""))
	for n := range 2 {
		w.wait(rest, "failed")
		w.until("acknowledgement recorded", func() bool { return !w.op("rest").AnsweredAt.IsZero() })
		if c := s.counts("op"); c.undone != 0 || w.op("op:undo").OperatorRetries != n {
			t.Fatalf("after %d retries: supplier saw %+v, undo retried %d times", n, c, w.op("op:undo").OperatorRetries)
		}
		w.gw.resolve(rest)
	}
	w.wait(rest, "completed")
	if c := s.counts("op"); c.undone != 1 || w.op("op:undo").Class != outcome.Success || w.op("op").UndoneAt.IsZero() {
		t.Errorf("supplier saw %+v, undo ended %s", c, w.op("op:undo").Class)
	}
}

// TestUndo_callGaveUpWaiting: the caller of the other system gave up waiting, and the operation is undone at once. That the other
// system knows of nothing is not believed yet: the call may still be on its way. It lands, and is undone.
func TestUndo_callGaveUpWaiting(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	remote := s.remote()
	remote.Call = func(context.Context, Call[reserve]) (reserved, error) {
		return reserved{}, Unknown(errors.New("time-out after send"))
	}
	mux := NewMux()
	mux.Handle("hotel.reserve", External(remote, s.undo(), KeyValidFor(time.Hour)))
	rt := w.runtime(mux, fast())
	if r := rt.execute(w.ctx, w.jobTask(rt, "hotel.reserve", job("slow", offer))); r.kind != retry {
		t.Fatalf("call without an answer: %+v", r)
	}
	for range 2 {
		if u, r := rt.undoOnce(w.ctx, nil, 0, "slow", "timer"); r.kind != retry {
			t.Fatalf("undo before the call can have landed: %+v, %+v", u, r)
		}
	}
	s.mu.Lock()
	s.held["slow"]++ // it lands
	s.mu.Unlock()
	if u, err := rt.Undo(w.ctx, "slow", "timer"); err != nil || u.Nothing {
		t.Errorf("undo: %+v, %v", u, err)
	}
	if c := s.counts("slow"); c.undone != 1 {
		t.Errorf("supplier saw %+v, want the effect undone once", c)
	}

	if r := rt.execute(w.ctx, w.jobTask(rt, "hotel.reserve", job("lost", offer))); r.kind != retry {
		t.Fatalf("call without an answer: %+v", r)
	}
	if err := postgres.AdvanceClock(w.ctx, w.pool, postgres.DefaultSchema, time.Minute); err != nil {
		t.Fatal(err)
	}
	if u, err := rt.Undo(w.ctx, "lost", "timer"); err != nil || !u.Nothing {
		t.Errorf("undo of a call that never landed: %+v, %v", u, err)
	}
}
