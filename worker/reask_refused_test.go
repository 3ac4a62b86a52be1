package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

var (
	errLost    = Unknown(errors.New("time-out after send"))
	errSoldOut = BusinessError("SOLD_OUT", "no room left")
)

// says is a supplier whose calls are answered with these, in turn, the last one again and again. None acts: a call that is lost lands when
// the test says so.
func (s *supplier) says(answers ...error) Remote[reserve, reserved, reserved] {
	r := s.remote()
	r.Call = func(context.Context, Call[reserve]) (reserved, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls++
		return reserved{}, answers[min(s.calls, len(answers))-1]
	}
	return r
}

func (w *world) reserves(s *supplier, r Remote[reserve, reserved, reserved], opts ...Option) *Runtime {
	w.t.Helper()
	m := NewMux()
	m.Handle("hotel.reserve", External(r, append([]Option{s.undo()}, opts...)...))
	return w.runtime(m, fast())
}

func (w *world) run(rt *Runtime, id string) result {
	w.t.Helper()
	return rt.execute(w.ctx, w.jobTask(rt, "hotel.reserve", job(id, offer)))
}

// refusedUnseen has a call's outcome unknown and its repeat refused, which is what a repeat of the operation is answered from then on.
func (w *world) refusedUnseen(rt *Runtime, id string) {
	w.t.Helper()
	if r := w.run(rt, id); r.kind != retry || r.err.Reason != outcome.ReasonUnknown {
		w.t.Fatalf("the call: %+v", r)
	}
	if r := w.run(rt, id); r.kind != answered || r.left.Code != "SOLD_OUT" {
		w.t.Fatalf("its repeat: %+v", r)
	}
	if op := w.op(id); op.State != dedup.Done || op.Effect != dedup.EffectNone || op.AskAt.IsZero() {
		w.t.Fatalf("after the refusal: %s, effect %s, asked again at %s", op.State, op.Effect, op.AskAt)
	}
}

// stillSoldOut checks that a repeat of the operation is answered with the refusal, byte for byte, and reaches nobody.
func (w *world) stillSoldOut(rt *Runtime, s *supplier, id string) {
	w.t.Helper()
	before := s.counts(id)
	if r := w.run(rt, id); r.kind != answered || r.left.Class != outcome.Business || r.left.Code != "SOLD_OUT" || r.left.Message != "no room left" {
		w.t.Errorf("a repeat: %+v", r)
	}
	if c := s.counts(id); c != before {
		w.t.Errorf("a repeat reached the supplier: %+v, before %+v", c, before)
	}
}

// TestRule11_landsAfterItsRepeatWasRefused: the outcome of a call is unknown, its repeat is refused, the operation ended so — and then the
// first call lands. It is asked about as long as it can land, undone exactly once, and the answer stays the refusal; what never lands is
// listed for people.
func TestRule11_landsAfterItsRepeatWasRefused(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]Option{"key ignored": KeyIgnored(), "key honoured": KeyValidFor(72 * time.Hour)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newSupplier()
			last := map[string]time.Duration{"key ignored": 24 * time.Hour, "key honoured": 72 * time.Hour}[name]
			questions := []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour}
			if last > 32*time.Hour {
				questions = append(questions, 32*time.Hour, 64*time.Hour)
			}
			questions = append(questions, last)
			byID := func(at time.Duration) string { return "before-" + at.String() }
			ids := []string{"never"}
			for _, at := range questions {
				ids = append(ids, byID(at))
			}
			answers := []error{}
			for range ids {
				answers = append(answers, errLost, errSoldOut)
			}
			rt := w.reserves(s, s.says(answers...), opt)
			for _, id := range ids {
				w.refusedUnseen(rt, id)
			}
			age := time.Duration(0)
			for _, at := range questions {
				w.advance(at - age - 20*time.Second)
				w.ask(rt)
				s.land(byID(at))
				w.stillSoldOut(rt, s, byID(at))
				w.advance(40 * time.Second)
				age = at + 20*time.Second
				w.ask(rt)
				w.ask(rt)
				if c, op := s.counts(byID(at)), w.op(byID(at)); c.undone != 1 || op.State != dedup.Done || op.UndoneAt.IsZero() || !op.AskAt.IsZero() || op.Orphan != "" {
					t.Errorf("%s: %+v, %s, undone at %s, asked at %s, orphan %q", byID(at), c, op.State, op.UndoneAt, op.AskAt, op.Orphan)
				}
			}
			for range 5 { // nothing more is asked, nothing more is undone
				w.advance(24 * time.Hour)
				w.ask(rt)
			}
			for _, id := range ids[1:] {
				w.stillSoldOut(rt, s, id)
				if c := s.counts(id); c.undone != 1 {
					t.Errorf("%s: undone %d times", id, c.undone)
				}
			}
			w.stillSoldOut(rt, s, "never")
			op := w.op("never")
			if op.AsksOverAt.IsZero() || !op.AskAt.IsZero() || op.Asked != len(questions) || s.counts("never").undone != 0 || w.lateCounts(rt) != (dedup.LateCounts{Over: 1}) {
				t.Errorf("never seen: asked %d times of %d, next at %s, over at %s, %+v", op.Asked, len(questions), op.AskAt, op.AsksOverAt, w.lateCounts(rt))
			}
		})
	}
}

// TestRule11_refusedLaterOn: whatever lies between the lost call and the end of the operation without effect, the lost call is asked about
// and undone once when it lands.
func TestRule11_refusedLaterOn(t *testing.T) {
	t.Parallel()
	nothing := Retryable(errors.New("connection refused"))
	for name, c := range map[string]struct {
		answers []error
		opts    []Option
		then    func(w *world, rt *Runtime, id string) result // after the lost call
		code    string
		class   outcome.Class
	}{
		"an attempt that certainly did nothing": {
			answers: []error{errLost, nothing, errSoldOut},
			then: func(w *world, rt *Runtime, id string) result {
				if r := w.run(rt, id); r.kind != retry || w.op(id).State != dedup.Claimed {
					w.t.Errorf("refused connection: %+v", r)
				}
				return w.run(rt, id)
			},
			code: "SOLD_OUT", class: outcome.Business,
		},
		"let go by the sweep": {
			answers: []error{errLost, errSoldOut},
			then: func(w *world, rt *Runtime, id string) result {
				w.advance(time.Minute)
				if err := rt.SweepLeases(w.ctx); err != nil || w.op(id).State != dedup.Claimed {
					w.t.Errorf("sweep: %v, %s", err, w.op(id).State)
				}
				return w.run(rt, id)
			},
			code: "SOLD_OUT", class: outcome.Business,
		},
		"a failure for good": {
			answers: []error{errLost, Fatal(errors.New("no such hotel"))},
			then:    func(w *world, rt *Runtime, id string) result { return w.run(rt, id) },
			class:   outcome.Fatal,
		},
		"the key is honoured no more": {
			answers: []error{errLost},
			opts:    []Option{KeyValidFor(time.Minute), AskFor(24 * time.Hour)},
			then: func(w *world, rt *Runtime, id string) result {
				w.advance(10 * time.Minute)
				return w.run(rt, id)
			},
			class: outcome.Fatal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newSupplier()
			opts := c.opts
			if opts == nil {
				opts = []Option{KeyIgnored()}
			}
			rt := w.reserves(s, s.says(c.answers...), opts...)
			if r := w.run(rt, "lost"); r.kind != retry {
				t.Fatalf("the call: %+v", r)
			}
			if r := c.then(w, rt, "lost"); r.kind != answered || r.left.Class != c.class || r.left.Code != c.code {
				t.Fatalf("the end: %+v", r)
			}
			if c := s.counts("lost"); c.asks < c.calls-1 {
				t.Errorf("called again without asking first: %+v", c)
			}
			w.advance(3 * time.Hour)
			w.ask(rt)
			s.land("lost")
			w.advance(8 * time.Hour)
			w.ask(rt)
			w.ask(rt)
			if op, c := w.op("lost"), s.counts("lost"); c.undone != 1 || op.UndoneAt.IsZero() || op.State != dedup.Done {
				t.Errorf("landed later: %+v, %s undone at %s", c, op.State, op.UndoneAt)
			}
		})
	}
}

// TestRule11_certainRefusalIsNotAskedAbout: a refusal of the only call, and of one after calls that certainly did nothing, leaves nothing to
// ask about.
func TestRule11_certainRefusalIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	rt := w.reserves(s, s.says(Retryable(errors.New("connection refused")), errSoldOut), KeyIgnored())
	if r := w.run(rt, "sure"); r.kind != retry {
		t.Fatalf("first attempt: %+v", r)
	}
	for _, id := range []string{"sure", "first"} {
		if r := w.run(rt, id); r.left.Code != "SOLD_OUT" {
			t.Fatalf("refusal: %+v", r)
		}
		if op := w.op(id); !op.AskAt.IsZero() || !op.AskFrom.IsZero() || s.counts(id).asks != 0 {
			t.Errorf("%s: asked at %s, %+v", id, op.AskAt, s.counts(id))
		}
	}
}

// TestRule11_callerComesBackAfterTheRefusal: the caller itself comes back with the effect after another process had the repeat refused. It
// undoes it at once; when it dies before, the sweep does.
func TestRule11_callerComesBackAfterTheRefusal(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		w, s := newWorld(t), newSupplier()
		s.late = make(chan struct{})
		slow, other := w.reserves(s, s.remote(), KeyIgnored()), w.reserves(s, s.says(errSoldOut), KeyIgnored())
		done := make(chan result, 1)
		a := w.jobTask(slow, "hotel.reserve", job("slow", offer))
		go func() { done <- slow.execute(w.ctx, a) }()
		reach(t, "call", s.reached)
		w.advance(time.Minute) // its lease runs out
		if r := w.run(other, "slow"); r.kind != answered || r.left.Code != "SOLD_OUT" {
			t.Fatalf("the repeat: %+v", r)
		}
		stored, release := stopAt(t, "worker.late.stored", "slow")
		close(s.late)
		reach(t, "late result stored", stored)
		w.stillSoldOut(other, s, "slow")
		if dies {
			w.advance(lateGrace + time.Second)
			w.ask(other)
		} else {
			w.ask(other)
			if c := s.counts("slow"); c.undone != 0 {
				t.Errorf("undone within the grace: %+v", c)
			}
		}
		release()
		if r := <-done; r.kind != dropped {
			t.Errorf("the caller that came back: %+v", r)
		}
		w.advance(24 * time.Hour)
		w.ask(other)
		if c, op := s.counts("slow"), w.op("slow"); c.held != 1 || c.undone != 1 || op.UndoneAt.IsZero() || !op.AskAt.IsZero() {
			t.Errorf("dies %t: %+v, undone at %s, asked at %s", dies, c, op.UndoneAt, op.AskAt)
		}
		w.stillSoldOut(other, s, "slow")
	}
}

// TestRule11_killedBeforeTheUndoAfterARefusal: the process dies at each point between finding what landed after the refusal and having
// undone it.
func TestRule11_killedBeforeTheUndoAfterARefusal(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"worker.late.found", "worker.late.stored", "worker.late.undone"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newSupplier()
			dying, other := w.reserves(s, s.says(errLost, errSoldOut), KeyIgnored()), w.reserves(s, s.says(errSoldOut), KeyIgnored())
			id := "refused-" + point
			w.refusedUnseen(dying, id)
			s.land(id)
			w.advance(time.Minute + time.Second)
			reached, release := stopAt(t, point, id)
			done := make(chan error, 1)
			go func() { done <- dying.AskAgain(w.ctx) }()
			reach(t, point, reached)
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
			if c, op := s.counts(id), w.op(id); c.undone != 1 || !op.AskAt.IsZero() || op.State != dedup.Done {
				t.Errorf("after the dead one came back: %+v, %s, asked again at %s", c, op.State, op.AskAt)
			}
		})
	}
}

// TestRule11_personRetriesBesideALateEffect: a person has a refused operation run again. While what landed late is being undone it does not
// run, and does not run on from an effect that is about to go; before it landed, the retry asks first and goes on from what it finds.
func TestRule11_personRetriesBesideALateEffect(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	rt := w.reserves(s, s.says(errLost, errSoldOut, errLost, errSoldOut), KeyIgnored())
	retried := func(id string) result {
		t.Helper()
		k := w.op(id).JobKey
		w.until("acknowledgement recorded", func() bool { return !w.op(id).AnsweredAt.IsZero() })
		w.gw.resolve(k)
		w.gw.edit(k, func(j *fakeJob) { j.state, j.until = "activated", time.Now().Add(time.Minute) })
		return rt.execute(w.ctx, w.taskOf(rt, k))
	}
	w.refusedUnseen(rt, "undone")
	w.refusedUnseen(rt, "found")
	if late, err := rt.store.StoreLate(w.ctx, w.pool, "undone", []byte(`{"id":"R-undone"}`), lateGrace); err != nil || late != dedup.LateRefused {
		t.Fatalf("late result: %d, %v", late, err)
	}
	if r := retried("undone"); r.kind != busy || s.counts("undone").settles != 0 {
		t.Errorf("retried while its effect is to be undone: %+v", r)
	}
	s.land("found")
	if r := retried("found"); r.kind != answered || r.left.Class != outcome.Success || s.counts("found").calls != 4 {
		t.Errorf("retried after it landed: %+v, %+v", r, s.counts("found"))
	}
	for range 30 {
		w.advance(time.Hour)
		w.ask(rt)
	}
	if c, op := s.counts("undone"), w.op("undone"); c.undone != 1 || op.UndoneAt.IsZero() {
		t.Errorf("undone: %+v at %s", c, op.UndoneAt)
	}
	if c, op := s.counts("found"), w.op("found"); c.undone != 0 || op.Class != outcome.Success || !op.AskAt.IsZero() {
		t.Errorf("found by the retry: %+v, %s, asked at %s", c, op.Class, op.AskAt)
	}
}

// TestRule11_refusedAndNothingUndoesIt: what landed after the refusal and nothing compensates is shown to people; a refused operation that
// is undone meanwhile, by its saga, is asked about all the same.
func TestRule11_refusedAndNothingUndoesIt(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	m := NewMux()
	m.Handle("hotel.reserve", External(s.says(errLost, errSoldOut), KeyIgnored(), NotCompensable("it is paid")))
	rt := w.runtime(m, fast())
	w.refusedUnseen(rt, "paid")
	s.land("paid")
	w.advance(time.Minute + time.Second)
	w.ask(rt)
	if op := w.op("paid"); op.Orphan != dedup.OrphanOpen || !op.AskAt.IsZero() || op.State != dedup.Done {
		t.Errorf("landed: %s, orphan %q, asked at %s", op.State, op.Orphan, op.AskAt)
	}
	w.stillSoldOut(rt, s, "paid")

	s = newSupplier()
	rt = w.reserves(s, s.says(errLost, errSoldOut), KeyIgnored())
	w.refusedUnseen(rt, "given-up")
	if u, err := rt.Undo(w.ctx, "given-up", "saga"); err != nil || !u.Nothing {
		t.Fatalf("undo: %+v, %v", u, err)
	}
	s.land("given-up")
	w.advance(time.Minute + time.Second)
	w.ask(rt)
	if c, op := s.counts("given-up"), w.op("given-up"); c.undone != 1 || op.UndoneAt.IsZero() {
		t.Errorf("landed after refusal and undo: %+v, %s", c, op.State)
	}
}
