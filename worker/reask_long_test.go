package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
)

// longBoat is slowBoat whose calls may land for as long as opts say.
func (w *world) longBoat(s *supplier, opts ...Option) *Mux {
	r := s.remote()
	r.Call = func(context.Context, Call[reserve]) (reserved, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls++
		return reserved{}, Unknown(errors.New("time-out after send"))
	}
	m := NewMux()
	m.Handle("hotel.reserve", External(r, append([]Option{s.undo(), Orphan(Undo)}, opts...)...))
	return m
}

// past are the distances from the undo's question of the questions that follow the first three, of a call that may land for 72 hours
// and was made an hour before the undo.
func past() []time.Duration {
	return []time.Duration{2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour, 32 * time.Hour, 64 * time.Hour, 71 * time.Hour}
}

// TestRule11_landsWhileItsKeyIsHonoured: a call lands hours after the third question, up to the end of the time in which the other
// system honours its key. It is found by the next question and undone exactly once.
func TestRule11_landsWhileItsKeyIsHonoured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts []Option
		cfg  time.Duration // Config.AskFor
	}{
		"by KeyValidFor":   {opts: []Option{KeyValidFor(72 * time.Hour)}},
		"by AskFor":        {opts: []Option{KeyValidFor(time.Hour), AskFor(72 * time.Hour)}},
		"by Config.AskFor": {opts: []Option{KeyIgnored()}, cfg: 72 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newSupplier()
			cfg := fast()
			cfg.AskFor = c.cfg
			rt := w.runtime(w.longBoat(s, c.opts...), cfg)
			ids := []string{"never"}
			for _, at := range past() {
				ids = append(ids, "before-"+at.String())
			}
			for _, id := range ids {
				if r := rt.execute(w.ctx, w.jobTask(rt, "hotel.reserve", job(id, offer))); r.kind != retry {
					t.Fatalf("the call: %+v", r)
				}
			}
			w.advance(time.Hour)
			for _, id := range ids {
				if u, err := rt.Undo(w.ctx, id, "timer"); err != nil || !u.Nothing {
					t.Fatalf("undo: %+v, %v", u, err)
				}
			}
			age := time.Duration(0)
			for _, at := range append(askAfter(), past()...) {
				s.land("before-" + at.String()) // those of the first three are not asked about
				w.advance(at - age - 10*time.Second)
				w.ask(rt)
				if id := "before-" + at.String(); s.counts(id).undone != 0 {
					t.Errorf("%s: undone before it was due", id)
				}
				w.advance(20 * time.Second)
				age = at + 10*time.Second
				w.ask(rt)
				w.ask(rt)
				if id := "before-" + at.String(); at > time.Hour && (s.counts(id).undone != 1 || w.op(id).UndoneAt.IsZero() || !w.op(id).AsksOverAt.IsZero()) {
					t.Errorf("%s: not found by the question %s after the undo: %+v", id, at, s.counts(id))
				}
			}
			asks := s.counts("never").asks
			for range 10 {
				w.advance(24 * time.Hour)
				w.ask(rt)
			}
			for _, id := range ids[1:] {
				if s.counts(id).undone != 1 {
					t.Errorf("%s: undone %d times", id, s.counts(id).undone)
				}
			}
			op := w.op("never")
			if s.counts("never").asks != asks || !op.AskAt.IsZero() || op.AsksOverAt.IsZero() || op.Asked != len(askAfter())+len(past()) || op.Orphan != "" {
				t.Errorf("never seen: asked %d times, next at %s, over at %s, orphan %q", op.Asked, op.AskAt, op.AsksOverAt, op.Orphan)
			}
		})
	}
}

// TestAsksOver: a call that was never seen is on a list and counted until its retention is over; while it is asked about its row is not
// purged, whatever its retention.
func TestAsksOver(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	cfg := fast()
	cfg.Retain = 2 * time.Hour
	rt := w.runtime(w.longBoat(s, KeyValidFor(24*time.Hour)), cfg)
	w.revokedUnseen(rt, "unseen")
	counts := func() dedup.LateCounts {
		t.Helper()
		c, err := rt.store.LateCounts(w.ctx, w.pool)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	list := func(filter string) int {
		t.Helper()
		ops, err := rt.store.List(w.ctx, w.pool, filter, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(ops)
	}
	purge := func() {
		t.Helper()
		if _, err := rt.Purge(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(3 * time.Hour) // past its retention
	purge()
	if c := counts(); c != (dedup.LateCounts{Asked: 1}) || list(dedup.ListAsked) != 1 || list(dedup.ListAsksOver) != 0 {
		t.Errorf("while it is asked about: %+v, %d on the list of those asked", c, list(dedup.ListAsked))
	}
	for range 30 {
		w.advance(time.Hour)
		w.ask(rt)
		if !w.op("unseen").AsksOverAt.IsZero() {
			break
		}
	}
	purge()
	if c := counts(); c != (dedup.LateCounts{Over: 1}) || list(dedup.ListAsked) != 0 || list(dedup.ListAsksOver) != 1 {
		t.Errorf("after the last question: %+v, %d on the list of those that nothing can rule out", c, list(dedup.ListAsksOver))
	}
	w.advance(3 * time.Hour)
	purge()
	if c := counts(); c != (dedup.LateCounts{}) {
		t.Errorf("after its retention: %+v", c)
	}
}

// TestAsksOver_stillLands: what lands after the last question and comes back by itself is undone all the same, and leaves the list.
func TestAsksOver_stillLands(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	rt := w.runtime(w.slowBoat(s), fast())
	w.revokedUnseen(rt, "back")
	for _, wait := range []time.Duration{time.Minute, 9 * time.Minute, 50 * time.Minute} {
		w.advance(wait + time.Second)
		w.ask(rt)
	}
	if op := w.op("back"); op.AsksOverAt.IsZero() {
		t.Fatalf("after the last question: over at %s", op.AsksOverAt)
	}
	if late, err := rt.store.StoreLate(w.ctx, w.pool, "back", []byte(`{"ID":"R-back"}`), lateGrace); err != nil || late != dedup.LateUndo {
		t.Fatalf("late result: %d, %v", late, err)
	}
	w.advance(lateGrace + time.Second)
	w.ask(rt)
	if op := w.op("back"); s.counts("back").undone != 1 || op.UndoneAt.IsZero() || !op.AsksOverAt.IsZero() || !op.AskAt.IsZero() {
		t.Errorf("landed after the last question: %+v, undone at %s, over at %s", s.counts("back"), op.UndoneAt, op.AsksOverAt)
	}
}

// TestNextAsk: however long a call may land, it is asked about a bounded number of times, last when it can land no more.
func TestNextAsk(t *testing.T) {
	t.Parallel()
	for end, want := range map[time.Duration]int{-time.Hour: 3, time.Hour: 3, 61 * time.Minute: 4, 24 * time.Hour: 8, 90 * 24 * time.Hour: 15} {
		age, n := time.Duration(0), 0
		for next := nextAsk(age, end); next != nil; next = nextAsk(age, end) {
			if *next <= 0 || n > 100 {
				t.Fatalf("end %s: question %d after %s", end, n, *next)
			}
			age, n = age+*next, n+1
		}
		if n != want || age != max(end, time.Hour) {
			t.Errorf("end %s: %d questions, the last after %s; want %d", end, n, age, want)
		}
	}
}

// TestAskFor_refused: mistakes are told when the mux is checked.
func TestAskFor_refused(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	r := s.remote()
	r.Resolve = nil
	m := NewMux()
	m.Handle("no.resolve", External(r, s.undo(), KeyValidFor(time.Hour), AskFor(time.Hour)))
	m.Handle("negative", External(s.remote(), NoEffect(), KeyValidFor(time.Hour), AskFor(-time.Hour)))
	m.Handle("tx", Transactional(func(context.Context, *Tx, Job[reserve]) (reserved, error) { return reserved{}, nil }, NoEffect(), AskFor(time.Hour)))
	_, err := NewRuntime(w.pool, m, Config{AskFor: -time.Second}, "")
	for _, want := range []string{`"no.resolve": AskFor without Resolve`, `"negative": AskFor -1h0m0s: want above 0`, `"tx": KeyValidFor, KeyIgnored and AskFor are for external handlers`, "ask for -1s: want above 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want %q", err, want)
		}
	}
}
