package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

// diary is what middleware saw, in order.
type diary struct {
	mu    sync.Mutex
	pages []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pages = append(d.pages, fmt.Sprintf(format, args...))
}

// tear takes what was written so far.
func (d *diary) tear() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	pages := d.pages
	d.pages = nil
	return pages
}

// keep is middleware that writes down each run and its error.
func (d *diary) keep(name string) Middleware {
	return func(ctx context.Context, run Run, next func(context.Context) error) error {
		what := string(run.Phase)
		if run.Undo {
			what = "undo " + what
		}
		for _, m := range run.Jobs {
			what += " " + m.Type + " " + m.OperationID
		}
		d.write("%s%s tx=%t", name, what, run.Tx != nil)
		err := next(ctx)
		if err != nil {
			d.write("%s%s", name, err)
		}
		return err
	}
}

func (d *diary) want(t *testing.T, when string, pages ...string) {
	t.Helper()
	if got := d.tear(); !slices.Equal(got, pages) {
		t.Errorf("%s: middleware saw\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(pages, "\n"))
	}
}

type visitor struct{}

// TestMiddleware_order: the first is the outermost, whenever the handler was registered; what they put into the context and into the
// transaction arrives; a repeat that is answered from the record runs none of them, and one that comes after the worker is not in it.
func TestMiddleware_order(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &diary{}
	mux := NewMux()
	mux.Use(d.keep("a "))
	mux.Handle("room.hold", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		d.write("handler of %v", ctx.Value(visitor{}))
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	mux.Use(d.keep("b "), func(ctx context.Context, run Run, next func(context.Context) error) error {
		if _, err := run.Tx.Exec(ctx, `INSERT INTO room VALUES ('seen ' || $1, 0)`, run.Jobs[0].OperationID); err != nil {
			return err
		}
		return next(context.WithValue(ctx, visitor{}, run.Jobs[0].BusinessKey))
	})
	_, stop := w.start(mux, fast())
	defer stop()
	mux.Use(d.keep("late "))
	w.wait(w.gw.add("room.hold", job("op-1", offer)), "completed")
	d.want(t, "a job", "a handle room.hold op-1 tx=true", "b handle room.hold op-1 tx=true", "handler of B-1")
	if w.rooms("op-1") != 1 || w.rooms("seen op-1") != 1 {
		t.Errorf("%d rows of the handler, %d of its middleware, want one each", w.rooms("op-1"), w.rooms("seen op-1"))
	}
	w.wait(w.gw.add("room.hold", job("op-1", offer)), "completed")
	d.want(t, "a repeat")
}

// TestMiddleware_errors: what middleware makes of a handler's end is recorded as the handler's own, and only another error is made of an
// error.
func TestMiddleware_errors(t *testing.T) {
	t.Parallel()
	soldOut := BusinessError("SOLD_OUT", "none left")
	instead := func(err error) Middleware {
		return func(ctx context.Context, _ Run, next func(context.Context) error) error { _ = next(ctx); return err }
	}
	for name, c := range map[string]struct {
		handler func() error
		mw      Middleware
		want    outcome.Error
		runs    int64
	}{
		"the handler's own": {func() error { return soldOut }, (&diary{}).keep(""), outcome.Error{Class: outcome.Business, Code: "SOLD_OUT"}, 1},
		"after a success":   {nil, instead(Fatal(errBoom)), outcome.Error{Class: outcome.Fatal}, 1},
		"ordinary":          {nil, instead(errBoom), outcome.Error{Class: outcome.Retryable, Reason: outcome.ReasonError}, 1},
		"translated":        {func() error { return errBoom }, instead(soldOut), outcome.Error{Class: outcome.Business, Code: "SOLD_OUT"}, 1},
		"swallowed":         {func() error { return soldOut }, instead(nil), outcome.Error{Class: outcome.Business, Code: "SOLD_OUT"}, 1},
		"panic":             {nil, func(context.Context, Run, func(context.Context) error) error { panic("boom") }, outcome.Error{Class: outcome.Fatal, Reason: outcome.ReasonPanic}, 0},
		"panic swallowed": {func() error { panic("boom") }, func(ctx context.Context, _ Run, next func(context.Context) error) error {
			defer func() { _ = recover() }()
			return next(ctx)
		}, outcome.Error{Class: outcome.Fatal, Reason: outcome.ReasonPanic}, 1},
		"without next":    {nil, func(context.Context, Run, func(context.Context) error) error { return nil }, outcome.Error{Class: outcome.Fatal, Reason: "middleware"}, 0},
		"instead of next": {nil, func(context.Context, Run, func(context.Context) error) error { return soldOut }, outcome.Error{Class: outcome.Business, Code: "SOLD_OUT"}, 0},
		"next twice": {nil, func(ctx context.Context, _ Run, next func(context.Context) error) error {
			return errors.Join(next(ctx), next(ctx))
		}, outcome.Error{Class: outcome.Fatal, Reason: "middleware"}, 1},
		"deadline of ours": {nil, instead(fmt.Errorf("quota: %w", context.DeadlineExceeded)), outcome.Error{Class: outcome.Retryable, Reason: outcome.ReasonDeadline}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := newWorld(t), &diary{}
			mux := NewMux()
			mux.Use(d.keep(""), c.mw)
			mux.Handle("room.hold", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
				r, err := w.insertRoom(ctx, tx, j)
				if err == nil && c.handler != nil {
					err = c.handler()
				}
				return r, err
			}, NotCompensable("test")))
			rt := w.runtime(mux, fast())
			r := rt.execute(w.ctx, w.jobTask(rt, "room.hold", job("op-1", offer)))
			if r.err == nil || !errors.Is(r.err, &c.want) {
				t.Errorf("ended with %v, want %v", r.err, &c.want)
			}
			if op, recorded := w.op("op-1"), c.want.Class != outcome.Retryable; (op.State == dedup.Done) != recorded || recorded && op.Class != c.want.Class {
				t.Errorf("recorded %s %q", op.State, op.Class)
			}
			if n := w.runs.Load(); n != c.runs || w.rooms("op-1") != 0 {
				t.Errorf("the handler ran %d times, want %d; %d rows left", n, c.runs, w.rooms("op-1"))
			}
			pages := d.tear()
			if name != "panic" && (len(pages) != 2 || !strings.HasPrefix(pages[1], string(c.want.Class)) && c.want.Class != outcome.Retryable) {
				t.Errorf("the outer one saw %q, want the error of the inner", pages)
			}
		})
	}
}

// TestMiddleware_batch: middleware runs once around all jobs of a batch; its error takes the batch back, and then it runs around each job.
func TestMiddleware_batch(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &diary{}
	var refuse error
	mux := NewMux()
	mux.Use(d.keep(""), func(ctx context.Context, run Run, next func(context.Context) error) error {
		if err := next(ctx); err != nil || len(run.Jobs) == 1 {
			return err
		}
		return refuse
	})
	mux.Handle("flight.reserve", Batch(50, func(ctx context.Context, tx *Tx, jobs []Job[reserve]) ([]BatchEnd[reserved], error) {
		ends := make([]BatchEnd[reserved], len(jobs))
		for i, j := range jobs {
			ends[i].Out, ends[i].Err = w.insertRoom(ctx, tx, j)
		}
		return ends, nil
	}, NotCompensable("test")))
	rt := w.runtime(mux, fast())
	pair := func(a, b string) []*mate {
		return []*mate{{t: w.jobTask(rt, "flight.reserve", job(a, offer)), ctx: w.ctx}, {t: w.jobTask(rt, "flight.reserve", job(b, offer)), ctx: w.ctx}}
	}
	rt.runGroup(w.ctx, pair("op-1", "op-2"))
	d.want(t, "a batch", "handle flight.reserve op-1 flight.reserve op-2 tx=true")
	if w.op("op-1").Class != outcome.Success || w.op("op-2").Class != outcome.Success {
		t.Error("the batch is not recorded")
	}
	refuse = errBoom
	mates := pair("op-3", "op-4")
	rt.runGroup(w.ctx, mates)
	d.want(t, "a batch that is taken back", "handle flight.reserve op-3 flight.reserve op-4 tx=true", "boom")
	for _, m := range mates {
		if m.res.kind != apart || w.rooms(m.t.meta.OperationID) != 0 {
			t.Fatalf("%s: end %d, %d rooms; want it apart", m.t.meta.OperationID, m.res.kind, w.rooms(m.t.meta.OperationID))
		}
		if r := rt.execute(w.ctx, m.t); r.kind != answered || r.err != nil {
			t.Errorf("%s by itself: %+v", m.t.meta.OperationID, r)
		}
	}
	d.want(t, "each by itself", "handle flight.reserve op-3 tx=true", "handle flight.reserve op-4 tx=true")
}

// TestMiddleware_external: an external handler's functions and its compensation's are one run each; where there is no function nothing runs.
func TestMiddleware_external(t *testing.T) {
	t.Parallel()
	w, s, d := newWorld(t), newSupplier(), &diary{}
	mux := NewMux()
	mux.Handle("hotel.reserve", External(s.remote(), KeyValidFor(time.Hour), CompensatedBy("hotel.cancel", RemoteUndo[reserve, reserved]{
		Call:   s.cancel,
		Settle: func(context.Context, *Tx, UndoOf[reserve, reserved]) error { return nil },
	})))
	mux.Handle("hotel.hold", External(Remote[reserve, reserved, reserved]{Call: s.call}, KeyValidFor(time.Hour), s.undo()))
	mux.Handle("room.hold", Transactional(w.insertRoom, CompensatedByTx("room.free", func(context.Context, *Tx, UndoOf[reserve, reserved]) error { return nil })))
	mux.Use(d.keep(""))
	rt := w.runtime(mux, fast())
	do := func(jobType, id string) result { return rt.execute(w.ctx, w.jobTask(rt, jobType, job(id, offer))) }
	undo := func(id string) {
		t.Helper()
		if u, err := rt.Undo(w.ctx, id, "test"); err != nil || u.Nothing || u.Outcome != outcome.Success {
			t.Errorf("undo of %s: %+v, %v", id, u, err)
		}
	}
	s.deaf = true
	if r := do("hotel.reserve", "op-1"); r.kind != retry || r.err.Reason != outcome.ReasonUnknown {
		t.Fatalf("call without an answer: %+v", r)
	}
	d.want(t, "a call", "call hotel.reserve op-1 tx=false", "RETRYABLE_ERROR (unknown): time-out after send")
	s.deaf = false
	if r := do("hotel.reserve", "op-1"); r.kind != answered || r.err != nil {
		t.Fatalf("its repeat: %+v", r)
	}
	d.want(t, "its repeat", "resolve hotel.reserve op-1 tx=false", "settle hotel.reserve op-1 tx=true")
	undo("op-1")
	d.want(t, "an undo", "undo call hotel.cancel op-1:undo tx=false", "undo settle hotel.cancel op-1:undo tx=true")
	undo("op-1")
	do("hotel.reserve", "op-1")
	d.want(t, "repeats")

	do("hotel.hold", "op-2")
	undo("op-2")
	d.want(t, "without Settle", "call hotel.hold op-2 tx=false", "undo call hotel.cancel op-2:undo tx=false")
	do("room.hold", "op-3")
	undo("op-3")
	d.want(t, "transactional", "handle room.hold op-3 tx=true", "undo handle room.free op-3:undo tx=true")
}

// TestMiddleware_deniesNoEffect: an error that would say that nothing happened does not hide a call that acted, nor one that may have.
func TestMiddleware_deniesNoEffect(t *testing.T) {
	t.Parallel()
	unasked := func(ctx context.Context, run Run, next func(context.Context) error) error {
		if run.Phase == PhaseResolve {
			return ErrNotHappened
		}
		return next(ctx)
	}
	after := func(err error) Middleware {
		return func(ctx context.Context, _ Run, next func(context.Context) error) error {
			return errors.Join(next(ctx), err)
		}
	}
	recovers := func(ctx context.Context, _ Run, next func(context.Context) error) (err error) {
		defer func() { _ = recover(); err = Fatal(errBoom) }()
		return next(ctx)
	}
	for name, c := range map[string]struct {
		first, second Middleware // around the first attempt and around the one after it; nil = it passes
		panics        bool
		asked         int
	}{
		"FATAL after a call that acted":         {first: after(Fatal(errBoom)), asked: 1},
		"FATAL after a call that panicked":      {first: recovers, panics: true, asked: 1},
		"ErrNotHappened after Resolve found it": {first: after(errBoom), second: after(ErrNotHappened), asked: 2},
		"ErrNotHappened in place of Resolve":    {first: after(errBoom), second: unasked, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), newSupplier()
			now := c.first
			mux := NewMux()
			remote := s.remote()
			remote.Call = func(ctx context.Context, call Call[reserve]) (reserved, error) {
				r, err := s.call(ctx, call)
				if c.panics {
					panic("boom")
				}
				return r, err
			}
			mux.Handle("hotel.reserve", External(remote, KeyValidFor(time.Hour), s.undo()))
			mux.Use(func(ctx context.Context, run Run, next func(context.Context) error) error {
				if now == nil {
					return next(ctx)
				}
				return now(ctx, run, next)
			})
			rt := w.runtime(mux, fast())
			unknown := func(when string) {
				t.Helper()
				if r := w.run(rt, "op-1"); r.kind != retry || r.err.Reason != outcome.ReasonUnknown {
					t.Fatalf("%s: %+v, want its result unknown", when, r)
				}
			}
			unknown("the first attempt")
			if now = c.second; now != nil {
				unknown("the second")
			}
			now = nil
			if r := w.run(rt, "op-1"); r.kind != answered || r.err != nil {
				t.Fatalf("in the end: %+v", r)
			}
			if got := s.counts("op-1"); got.calls != 1 || got.held != 1 || got.asks != c.asked {
				t.Errorf("supplier saw %+v, want one call and %d questions", got, c.asked)
			}
		})
	}
}

// TestMiddleware_quotaBeforeRepeat: nobody can be asked, the repeat of an unknown call is put off, and an undo still knows of the effect.
func TestMiddleware_quotaBeforeRepeat(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.deaf = true
	var quota error
	mux := NewMux()
	mux.Handle("hotel.reserve", External(Remote[reserve, reserved, reserved]{Call: s.call, Settle: s.settle}, KeyValidFor(time.Hour), s.undo()))
	mux.Use(func(ctx context.Context, run Run, next func(context.Context) error) error {
		if run.Phase == PhaseCall && quota != nil {
			return quota
		}
		return next(ctx)
	})
	rt := w.runtime(mux, fast())
	quota = Retryable(errors.New("quota used up"))
	if r := w.run(rt, "op-1"); r.kind != retry || r.err.Reason != outcome.ReasonError || w.op("op-1").State != dedup.Claimed {
		t.Errorf("before any call: %+v, state %s; want certainty that nothing happened", r, w.op("op-1").State)
	}
	quota = nil
	if r := w.run(rt, "op-1"); r.kind != retry || r.err.Reason != outcome.ReasonUnknown {
		t.Fatalf("call without an answer: %+v", r)
	}
	quota = BusinessError("QUOTA", "used up")
	if r := w.run(rt, "op-1"); r.kind != retry || r.err.Reason != outcome.ReasonUnknown {
		t.Errorf("a repeat that was put off: %+v, want its result unknown", r)
	}
	quota, s.deaf = nil, false
	if u, err := rt.Undo(w.ctx, "op-1", "test"); err != nil || u.Nothing || s.counts("op-1").undone != 1 {
		t.Errorf("undo: %+v, %v; supplier saw %+v", u, err, s.counts("op-1"))
	}
}

func TestMiddleware_declaration(t *testing.T) {
	t.Parallel()
	mux := NewMux()
	mux.Handle("a", Transactional(func(context.Context, *Tx, Job[reserve]) (reserved, error) { return reserved{}, nil }, NoEffect()))
	mux.Use((&diary{}).keep(""), nil)
	if err := mux.check(fast().HandlerTimeout); err == nil || !strings.Contains(err.Error(), "middleware 2 of Use is nil") {
		t.Errorf("a nil middleware: %v", err)
	}
}
