package worker

import (
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
)

// neverSeen lets a call be asked about until it can land no more, and gives its row.
func (w *world) neverSeen(rt *Runtime, id string) dedup.Operation {
	w.t.Helper()
	w.revokedUnseen(rt, id)
	for range 4 {
		w.advance(time.Hour)
		w.ask(rt)
	}
	op := w.op(id)
	if op.AsksOverAt.IsZero() || !op.AskAt.IsZero() {
		w.t.Fatalf("after the last question: next at %s, over at %s", op.AskAt, op.AsksOverAt)
	}
	return op
}

func (w *world) lateCounts(rt *Runtime) dedup.LateCounts {
	w.t.Helper()
	c, err := rt.store.LateCounts(w.ctx, w.pool)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// TestAskFurther: a person has a call asked about again that was never seen. It is asked at once, then at the distances of any other,
// last when the stated time is over; what lands meanwhile is undone once, and what does not is on the list again.
func TestAskFurther(t *testing.T) {
	t.Parallel()
	const further = 30 * time.Hour
	for name, landsAfter := range map[string]time.Duration{"before the first question": 0, "before the last": 20 * time.Hour, "never": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newSupplier()
			rt := w.runtime(w.slowBoat(s), fast())
			op := w.neverSeen(rt, "call")
			before, asks := op.Asked, s.counts("call").asks
			until, ok, err := rt.store.AskFurther(w.ctx, w.pool, "call", op.AsksOverAt, further)
			if err != nil || !ok || w.lateCounts(rt) != (dedup.LateCounts{Asked: 1}) {
				t.Fatalf("ask further: until %s, %t, %v; counts %+v", until, ok, err, w.lateCounts(rt))
			}
			if op = w.op("call"); !op.AskUntil.Equal(until) || !op.AsksOverAt.IsZero() || until.Sub(op.AskFrom) != further {
				t.Fatalf("asked until %s from %s, want %s", op.AskUntil, op.AskFrom, further)
			}
			for hour := time.Duration(0); hour < further+10*time.Hour; hour += time.Hour {
				if hour == landsAfter {
					s.land("call")
				}
				w.ask(rt)
				if hour == 0 && s.counts("call").asks == asks {
					t.Error("not asked at once")
				}
				w.advance(time.Hour)
			}
			op = w.op("call")
			if landsAfter >= 0 {
				if s.counts("call").undone != 1 || op.UndoneAt.IsZero() || !op.AskUntil.IsZero() || w.lateCounts(rt) != (dedup.LateCounts{}) {
					t.Errorf("landed after %s: %+v, undone at %s, %+v", landsAfter, s.counts("call"), op.UndoneAt, w.lateCounts(rt))
				}
				return
			}
			if w.lateCounts(rt) != (dedup.LateCounts{Over: 1}) || !op.AskUntil.IsZero() || op.AsksOverAt.Before(until) || op.Asked-before != s.counts("call").asks-asks {
				t.Errorf("never seen: %+v, asked %d times more, over at %s, want after %s", w.lateCounts(rt), op.Asked-before, op.AsksOverAt, until)
			}
			if n := op.Asked - before; n < 6 || n > 9 { // at once, after 1, 10 and 60 minutes, then at doubling distances
				t.Errorf("asked %d times in %s", n, further)
			}
		})
	}
}

// TestAskFurther_unanswered: while a person's time lasts, a question that is not answered does not become an orphan.
func TestAskFurther_unanswered(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	rt := w.runtime(w.slowBoat(s), fast())
	op := w.neverSeen(rt, "call")
	if _, ok, err := rt.store.AskFurther(w.ctx, w.pool, "call", op.AsksOverAt, 72*time.Hour); err != nil || !ok {
		t.Fatalf("ask further: %t, %v", ok, err)
	}
	s.mu.Lock()
	s.mute = true
	s.mu.Unlock()
	for range 70 {
		w.ask(rt)
		w.advance(time.Hour)
	}
	if op = w.op("call"); op.Orphan != "" || op.AskAt.IsZero() {
		t.Errorf("unanswered after 70 of 72 hours: orphan %q, next at %s", op.Orphan, op.AskAt)
	}
	for range 6 {
		w.advance(time.Hour)
		w.ask(rt)
	}
	if op = w.op("call"); op.Orphan != dedup.OrphanOpen {
		t.Errorf("unanswered after 76 of 72 hours: orphan %q, next at %s", op.Orphan, op.AskAt)
	}
}

// TestDismiss: a dismissed call is on no list and in no count, its row stays; it may be asked about again; and what lands all the same
// and comes back by itself is undone.
func TestDismiss(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	rt := w.runtime(w.slowBoat(s), fast())
	over := w.neverSeen(rt, "call").AsksOverAt
	dismiss := func(seen time.Time) bool {
		t.Helper()
		_, ok, err := rt.store.Dismiss(w.ctx, w.pool, "call", seen)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if dismiss(over.Add(time.Second)) || dismiss(time.Time{}) {
		t.Error("dismissed what nobody saw")
	}
	if !dismiss(over) || dismiss(over) {
		t.Error("want it dismissed once")
	}
	list, err := rt.store.List(w.ctx, w.pool, dedup.ListAsksOver, "", 10)
	op := w.op("call")
	if err != nil || len(list) != 0 || w.lateCounts(rt) != (dedup.LateCounts{}) || op.DismissedAt.IsZero() || !op.AsksOverAt.Equal(over) {
		t.Errorf("dismissed: %d on the list, %v, %+v, row %s, over at %s", len(list), err, w.lateCounts(rt), op.DismissedAt, op.AsksOverAt)
	}

	if _, ok, err := rt.store.AskFurther(w.ctx, w.pool, "call", over, time.Hour); err != nil || !ok {
		t.Fatalf("ask about a dismissed call: %t, %v", ok, err)
	}
	if _, ok, err := rt.store.AskFurther(w.ctx, w.pool, "call", over, time.Hour); err != nil || ok || dismiss(over) {
		t.Errorf("what is asked about already: asked further %t, %v; or dismissed", ok, err)
	}
	for range 4 {
		w.ask(rt)
		w.advance(time.Hour)
	}
	if op = w.op("call"); w.lateCounts(rt) != (dedup.LateCounts{Over: 1}) || !op.DismissedAt.IsZero() {
		t.Errorf("never seen again: %+v, dismissed at %s", w.lateCounts(rt), op.DismissedAt)
	}
	if !dismiss(op.AsksOverAt) {
		t.Fatal("not dismissed a second time")
	}
	if late, err := rt.store.StoreLate(w.ctx, w.pool, "call", []byte(`{"ID":"R-call"}`), lateGrace); err != nil || late != dedup.LateUndo {
		t.Fatalf("late result: %d, %v", late, err)
	}
	w.advance(lateGrace + time.Second)
	w.ask(rt)
	if op = w.op("call"); s.counts("call").undone != 1 || op.UndoneAt.IsZero() || w.lateCounts(rt) != (dedup.LateCounts{}) {
		t.Errorf("landed after it was dismissed: %+v, undone at %s, %+v", s.counts("call"), op.UndoneAt, w.lateCounts(rt))
	}
}
