package worker

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/vitrip/journeyman/outcome"
)

// Middleware runs around the functions of handlers: that of [Transactional] or [Batch], Call, Resolve and Settle of [External], and those of
// compensations. It runs where the function does, once for each run of it: at its savepoint, within its time-out, before anything is
// recorded or committed. An operation that is answered from its record runs nothing, middleware neither.
//
// next runs the function, which gets the context that is passed on: ctx, or one made from it. It is called at most once, in the goroutine
// of the middleware and before that returns. To end the run without it takes an error; with nil it is FATAL.
//
// What middleware returns counts as the function's own error, and its panic as the function's. It can give another error for one, never a
// success: with nil the error of next stands. An error counts as [Unknown] where it would deny an effect that there is or may be: after a
// Call that succeeded, in place of a repeated one or a compensation's, and wherever Resolve itself gave none.
type Middleware func(ctx context.Context, run Run, next func(ctx context.Context) error) error

// Run is one run of a function, as middleware sees it.
type Run struct {
	Phase Phase
	Undo  bool   // of a compensation: its own job type and operation id, "<forward>:undo"
	Jobs  []Meta // one, or all of a batch: an error around these runs each by itself, as the batch function's own does
	Tx    *Tx    // the function's transaction; nil around Call and Resolve
}

// Phase says which function runs.
type Phase string

// The phases.
const (
	PhaseHandle  Phase = "handle" // everything inside the transaction
	PhaseCall    Phase = "call"
	PhaseResolve Phase = "resolve"
	PhaseSettle  Phase = "settle"
)

// Use puts middleware around all handlers of m, those registered before too. The first is the outermost, over further calls. A [Worker]
// or [Runtime] that was made before does not see it.
func (m *Mux) Use(mw ...Middleware) { m.around = append(m.around, mw...) }

// wrapped is m with its middleware around its handlers.
func (m *Mux) wrapped() *Mux {
	if len(m.around) == 0 {
		return m
	}
	c, w := chain(slices.Clone(m.around)), &Mux{forward: make(map[string]*spec, len(m.forward))}
	for t, s := range m.forward {
		w.forward[t] = c.spec(*s)
	}
	return w
}

// chain is middleware, the outermost first.
type chain []Middleware

func (c chain) spec(s spec) *spec {
	run, batch, settle := s.run, s.batch, s.settle
	if run != nil {
		s.run = func(ctx context.Context, tx *Tx, m Meta, input json.RawMessage) (json.RawMessage, error) {
			in := Run{Phase: PhaseHandle, Jobs: []Meta{m}, Tx: tx}
			return through(ctx, c, in, false, func(ctx context.Context) (json.RawMessage, error) { return run(ctx, tx, m, input) })
		}
	}
	if batch != nil {
		s.batch = func(ctx context.Context, tx *Tx, tasks []*task) ([]batchEnd, error) {
			in := Run{Phase: PhaseHandle, Tx: tx}
			for _, t := range tasks {
				in.Jobs = append(in.Jobs, t.meta)
			}
			return through(ctx, c, in, false, func(ctx context.Context) ([]batchEnd, error) { return batch(ctx, tx, tasks) })
		}
	}
	s.call, s.resolve = c.remote(PhaseCall, s.call), c.remote(PhaseResolve, s.resolve)
	if s.settles {
		s.settle = func(ctx context.Context, tx *Tx, m Meta, input, res json.RawMessage) (json.RawMessage, error) {
			in := Run{Phase: PhaseSettle, Jobs: []Meta{m}, Tx: tx}
			return through(ctx, c, in, false, func(ctx context.Context) (json.RawMessage, error) { return settle(ctx, tx, m, input, res) })
		}
	}
	if u := s.opt.undo; u != nil {
		w := *u
		w.run, w.settle = c.undoTx(PhaseHandle, u.run), c.undoTx(PhaseSettle, u.settle)
		w.call, w.resolve = c.undoRemote(PhaseCall, u.call), c.undoRemote(PhaseResolve, u.resolve)
		s.opt.undo = &w
	}
	return &s
}

type remoteFunc = func(ctx context.Context, rc remoteCall) (json.RawMessage, error)

func (c chain) remote(p Phase, f remoteFunc) remoteFunc {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, rc remoteCall) (json.RawMessage, error) {
		in := Run{Phase: p, Jobs: []Meta{rc.meta}}
		return through(ctx, c, in, rc.again, func(ctx context.Context) (json.RawMessage, error) { return f(ctx, rc) })
	}
}

func (c chain) undoTx(p Phase, f func(context.Context, *Tx, undoOf) error) func(context.Context, *Tx, undoOf) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, tx *Tx, u undoOf) error {
		in := Run{Phase: p, Undo: true, Jobs: []Meta{u.meta}, Tx: tx}
		_, err := through(ctx, c, in, false, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx, tx, u) })
		return err
	}
}

func (c chain) undoRemote(p Phase, f func(context.Context, string, undoOf) error) func(context.Context, string, undoOf) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, key string, u undoOf) error {
		in := Run{Phase: p, Undo: true, Jobs: []Meta{u.meta}}
		_, err := through(ctx, c, in, true, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx, key, u) })
		return err
	}
}

// made is how far a run came.
type made int

const (
	notMade made = iota
	begun        // and not come back from, when it panicked
	refused
	succeeded
)

// through runs f inside the chain. again says that an earlier run of unknown result may have acted, or that this cannot be told.
func through[T any](ctx context.Context, c chain, run Run, again bool, f func(context.Context) (T, error)) (T, error) {
	var out, none T
	how := notMade
	next := func(ctx context.Context) (err error) {
		how = begun
		if out, err = f(ctx); err != nil {
			how = refused
			return err
		}
		how = succeeded
		return nil
	}
	for _, mw := range slices.Backward(c) {
		next = mw.around(run, next)
	}
	err := next(ctx)
	if err == nil {
		return out, nil
	}
	if how != refused && (run.Phase == PhaseResolve || run.Phase == PhaseCall && (how != notMade || again)) {
		e := outcome.Classify(err) // its chain is cut: nothing in it is proof that nothing happened
		err = &outcome.Error{Class: outcome.Retryable, Reason: outcome.ReasonUnknown, Message: e.Error(), After: e.After, Backoff: e.Backoff}
	}
	return none, err
}

// around puts one middleware around next.
func (mw Middleware) around(run Run, next func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		called := false
		var own error
		err := mw(ctx, run, func(ctx context.Context) error {
			if called {
				return outcome.Fatalf("middleware", "middleware called next again; want at most once")
			}
			called, own = true, outcome.Fatalf(outcome.ReasonPanic, "middleware recovered a panic and returned no error")
			own = next(ctx)
			return own
		})
		switch {
		case err != nil:
			return err
		case !called:
			return outcome.Fatalf("middleware", "middleware did not call next")
		default:
			return own
		}
	}
}
