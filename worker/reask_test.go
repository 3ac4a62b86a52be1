package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outcome"
)

// slowBoat is a supplier whose calls are lost on their way: the caller sees a time-out, and they land when the test says so.
func (w *world) slowBoat(s *supplier, opts ...Option) *Mux {
	r := s.remote()
	r.Call = func(context.Context, Call[reserve]) (reserved, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls++
		return reserved{}, Unknown(errors.New("time-out after send"))
	}
	m := NewMux()
	m.Handle("hotel.reserve", External(r, append([]Option{s.undo(), KeyValidFor(time.Hour), Orphan(Undo)}, opts...)...))
	return m
}

func (s *supplier) land(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[key]++
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	if err := postgres.AdvanceClock(w.ctx, w.pool, postgres.DefaultSchema, d); err != nil {
		w.t.Fatal(err)
	}
}

// revokedUnseen lets an operation call, revokes it when nobody waits any more, and the supplier says that nothing happened.
func (w *world) revokedUnseen(rt *Runtime, id string) {
	w.t.Helper()
	if r := rt.execute(w.ctx, w.jobTask(rt, "hotel.reserve", job(id, offer))); r.kind != retry || r.err.Reason != outcome.ReasonUnknown {
		w.t.Fatalf("the call: %+v", r)
	}
	w.advance(time.Hour) // past every wait
	u, err := rt.Undo(w.ctx, id, "timer")
	if err != nil || !u.Nothing {
		w.t.Fatalf("undo: %+v, %v", u, err)
	}
	if op := w.op(id); op.State != dedup.Revoked || op.Effect != dedup.EffectNone || op.AskAt.IsZero() {
		w.t.Fatalf("after the undo: %s, effect %s, asked again at %s", op.State, op.Effect, op.AskAt)
	}
}

func (w *world) ask(rt *Runtime) {
	w.t.Helper()
	if err := rt.AskAgain(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

// TestRule11_landsAfterEveryWait: the supplier said that nothing happened, the undo found nothing, and minutes later the call lands.
// It is asked again after 1, 10 and 60 minutes, and what landed is undone exactly once.
func TestRule11_landsAfterEveryWait(t *testing.T) {
	t.Parallel()
	for landsBefore, name := range []string{"1 minute", "10 minutes", "60 minutes", "never"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newSupplier()
			rt := w.runtime(w.slowBoat(s), fast())
			w.revokedUnseen(rt, "late")
			asks := s.counts("late").asks
			for n, wait := range []time.Duration{time.Minute, 9 * time.Minute, 50 * time.Minute} {
				if n == landsBefore {
					s.land("late")
				}
				w.ask(rt) // not due
				w.advance(wait + time.Second)
				w.ask(rt)
				w.ask(rt)
			}
			for range 3 { // nothing more is asked, nothing more is undone
				w.advance(24 * time.Hour)
				w.ask(rt)
			}
			c, op := s.counts("late"), w.op("late")
			wantAsks, wantUndone := min(landsBefore+1, 3), 1
			if landsBefore == 3 {
				wantUndone = 0
			}
			if c.asks-asks != wantAsks || c.undone != wantUndone || c.calls != 1 || !op.AskAt.IsZero() || op.UndoneAt.IsZero() != (wantUndone == 0) {
				t.Errorf("asked %d times more and undid %d, want %d and %d; operation asked again at %s, undone at %s", c.asks-asks, c.undone, wantAsks, wantUndone, op.AskAt, op.UndoneAt)
			}
		})
	}
}

// TestRule11_killedBeforeTheLateUndo: the process dies at each point between finding a late effect and having undone it. Another one
// comes for it, and the effect is undone exactly once, also when the dead one turns out to be only slow.
func TestRule11_killedBeforeTheLateUndo(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"worker.late.found", "worker.late.stored", "worker.late.undone"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newSupplier()
			dying, other := w.runtime(w.slowBoat(s), fast()), w.runtime(w.slowBoat(s), fast())
			id := "late-" + point
			w.revokedUnseen(dying, id)
			s.land(id)
			w.advance(time.Minute + time.Second)
			reached, release := stopAt(t, point, id)
			done := make(chan error, 1)
			go func() { done <- dying.AskAgain(w.ctx) }()
			reach(t, point, reached)
			w.ask(other) // its lease is not over
			for range 3 {
				w.advance(time.Minute)
				w.ask(other)
			}
			if c := s.counts(id); c.undone != 1 || w.op(id).UndoneAt.IsZero() {
				t.Errorf("after the death: %+v, undone at %s", c, w.op(id).UndoneAt)
			}
			release()
			<-done
			w.advance(24 * time.Hour)
			w.ask(other)
			if c := s.counts(id); c.undone != 1 || !w.op(id).AskAt.IsZero() {
				t.Errorf("after the dead one came back: %+v, asked again at %s", c, w.op(id).AskAt)
			}
		})
	}
}

// TestRule11_killedAfterTheCallLandedLate: the caller itself comes back after the undo has looked, stores what happened and dies
// before it has undone it. The sweep undoes it once.
func TestRule11_killedAfterTheCallLandedLate(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.late = make(chan struct{})
	cfg := fast()
	cfg.Lease, cfg.CallTimeout = 900*time.Millisecond, 600*time.Millisecond
	rt := w.runtime(s.mux(), cfg)
	done := make(chan result, 1)
	a := w.jobTask(rt, "hotel.reserve", job("landed", offer))
	go func() { done <- rt.execute(w.ctx, a) }()
	reach(t, "call", s.reached)
	if u, err := rt.Undo(w.ctx, "landed", "timer"); err != nil || !u.Nothing {
		t.Errorf("undo before the call acted: %+v, %v", u, err)
	}
	reached, release := stopAt(t, "worker.late.stored", "landed")
	close(s.late)
	reach(t, "late result stored", reached)
	w.ask(rt)
	if c := s.counts("landed"); c.undone != 0 {
		t.Errorf("undone within the grace: %+v", c)
	}
	w.advance(lateGrace + time.Second)
	w.ask(rt)
	release()
	<-done
	if c, op := s.counts("landed"), w.op("landed"); c.held != 1 || c.undone != 1 || op.UndoneAt.IsZero() || !op.AskAt.IsZero() {
		t.Errorf("supplier saw %+v, want the effect undone once; asked again at %s", c, op.AskAt)
	}
}

// TestAskAgain_nobodyCameBack: the sweep let an operation go because nothing had happened, no job came for it, and then the call
// lands: the operation goes on from there, its job is answered.
func TestAskAgain_nobodyCameBack(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	rt := w.runtime(w.slowBoat(s), fast())
	if r := rt.execute(w.ctx, w.jobTask(rt, "hotel.reserve", job("alone", offer))); r.kind != retry {
		t.Fatalf("the call: %+v", r)
	}
	w.advance(time.Minute)
	if err := rt.SweepLeases(w.ctx); err != nil {
		t.Fatal(err)
	}
	if op := w.op("alone"); op.State != dedup.Claimed || op.AskAt.IsZero() {
		t.Fatalf("after the sweep: %s, asked again at %s", op.State, op.AskAt)
	}
	s.land("alone")
	w.advance(time.Minute + time.Second)
	w.ask(rt)
	w.until("settled", func() bool { return rt.SweepLeases(w.ctx) == nil && w.op("alone").State == dedup.Done })
	if op, c := w.op("alone"), s.counts("alone"); op.Class != outcome.Success || c.settles != 1 || c.calls != 1 || w.rooms("alone") != 1 {
		t.Errorf("operation ended %s, supplier saw %+v, %d rooms", op.Class, c, w.rooms("alone"))
	}
}

// TestAskAgain_leftToAPerson: a late effect whose undo is refused, and a supplier that does not answer for a day, are shown and not
// tried for ever.
func TestAskAgain_leftToAPerson(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	m := NewMux()
	r := s.remote()
	r.Call = func(context.Context, Call[reserve]) (reserved, error) { return reserved{}, Unknown(errBoom) }
	m.Handle("hotel.reserve", External(r, KeyValidFor(time.Hour), Orphan(Undo), CompensatedBy("hotel.cancel", RemoteUndo[reserve, reserved]{
		Call: func(context.Context, string, UndoOf[reserve, reserved]) error { return BusinessError("NO", "too late") },
	})))
	rt := w.runtime(m, fast())
	w.revokedUnseen(rt, "refused")
	w.revokedUnseen(rt, "mute")
	s.land("refused")
	w.advance(time.Minute + time.Second)
	w.ask(rt)
	if op := w.op("refused"); op.Orphan != dedup.OrphanOpen || !op.AskAt.IsZero() {
		t.Errorf("undo refused: orphan %q, asked again at %s", op.Orphan, op.AskAt)
	}
	s.mu.Lock()
	s.mute = true
	s.mu.Unlock()
	n := 0
	for ; n < 200 && w.op("mute").Orphan == ""; n++ {
		w.advance(time.Hour)
		w.ask(rt)
	}
	if op := w.op("mute"); op.Orphan != dedup.OrphanOpen || !op.AskAt.IsZero() || n < 20 || n > 30 {
		t.Errorf("no answer for %d hours: orphan %q, asked again at %s", n, op.Orphan, op.AskAt)
	}
}
