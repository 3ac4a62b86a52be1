package sagatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
)

// Script is how one call of a scripted step ends.
type Script struct {
	out    map[string]any
	code   string
	act    bool // the other system did it
	silent bool // and did not say so
	fail   error
	hold   <-chan struct{}
}

// Succeed acts and gives these output variables; nil = none.
func Succeed(out map[string]any) Script { return Script{out: out, act: true} }

// Refuse does nothing and ends with a business error.
func Refuse(code string) Script { return Script{code: code} }

// Fail does nothing, and says so: the step is tried again.
func Fail(message string) Script { return Script{fail: worker.Retryable(errors.New(message))} }

// ActSilently acts, and the answer is lost: who asks later finds out.
func ActSilently(out map[string]any) Script { return Script{out: out, act: true, silent: true} }

// LoseRequest does nothing, and does not say so.
func LoseRequest() Script { return Script{silent: true} }

// Hold waits until release is closed and then goes on like s: for what arrives late.
func Hold(release <-chan struct{}, s Script) Script {
	s.hold = release
	return s
}

// Effect is what a scripted step did at the other system.
type Effect struct {
	JobType     string
	OperationID string
	Step        string // "<elementId>", or "<elementId>:<n>"
	Calls       int    // that reached the other system
	Done        int    // effects: more than one is a double booking
	Undone      int
	out         map[string]any
}

// Stands says whether it is there now.
func (e Effect) Stands() bool { return e.Done > e.Undone }

// others are the other systems: they honour keys and remember what they did.
type others struct {
	mu      sync.Mutex
	scripts map[string][]Script
	effects map[string]*Effect
}

// Script says how the next calls of a step end, in this order; behind them it succeeds without output. The job type must be
// that of a task without a handler of its own.
func (k *Kit) Script(jobType string, next ...Script) {
	k.others.mu.Lock()
	defer k.others.mu.Unlock()
	k.others.scripts[jobType] = append(k.others.scripts[jobType], next...)
}

// Effects lists what scripted steps did, by operation id.
func (k *Kit) Effects() []Effect {
	k.others.mu.Lock()
	defer k.others.mu.Unlock()
	var out []Effect
	for _, id := range slices.Sorted(maps.Keys(k.others.effects)) {
		out = append(out, *k.others.effects[id])
	}
	return out
}

// Balanced wants, for every operation that has ended: each effect once; all of a completed one standing, none of another.
// Effects in keep (step names) are those left to a person.
func (k *Kit) Balanced(keep ...string) {
	k.t.Helper()
	for _, e := range k.Effects() {
		sagaID, _, _ := strings.Cut(e.OperationID, ":")
		d, err := k.Sagas.Show(k.ctx, sagaID)
		if err != nil || d.ClosedAt == nil {
			k.t.Errorf("sagatest: %s of an operation that has not ended: %v", e.Step, err)
			continue
		}
		want := d.Decision == sagas.Completed || slices.Contains(keep, e.Step)
		if e.Done > 1 || e.Undone > e.Done || e.Stands() != want && e.Done > 0 {
			k.t.Errorf("operation %s ended %s: effect of %s was done %d times and undone %d times, it should stand: %v", sagaID, d.State, e.Step, e.Done, e.Undone, want)
		}
	}
}

type in struct{}

// fakes registers scripted handlers for the tasks that have none.
func (k *Kit) fakes(mux *worker.Mux, models []*bpmn.Definitions) {
	have := map[string]bool{}
	for _, typ := range mux.Types() {
		have[typ] = true
	}
	var walk func(s *bpmn.Scope)
	walk = func(s *bpmn.Scope) {
		for _, e := range s.Elements {
			if e.Scope != nil {
				walk(e.Scope)
			}
			if e.Task == nil || e.ForCompensation || e.Machinery() || have[e.Task.Type] {
				continue
			}
			have[e.Task.Type] = true
			k.fake(mux, e)
		}
	}
	for _, m := range models {
		for _, p := range m.Processes {
			walk(&p.Scope)
		}
	}
}

func (k *Kit) fake(mux *worker.Mux, e *bpmn.Element) {
	typ := e.Task.Type
	if _, pivot := e.Property(bpmn.PropertyPivot); pivot {
		mux.Handle(typ, worker.Transactional(func(ctx context.Context, tx *worker.Tx, job worker.Job[in]) (map[string]any, error) {
			s := k.others.next(typ)
			if s.code != "" {
				return nil, worker.BusinessError(s.code, "as scripted")
			}
			out := map[string]any{"sagaDecision": string(sagas.Completed)}
			maps.Copy(out, s.out)
			return out, k.Sagas.Decide(ctx, tx, job.SagaID, sagas.Completed)
		}), worker.Pivot(), worker.NotCompensable("the pivot"))
		return
	}
	undo, named := e.Property(bpmn.PropertyUndo)
	if e.CompensationHandler != nil && e.CompensationHandler.Task != nil {
		undo, named = e.CompensationHandler.Task.Type, true
	}
	policy := worker.NotCompensable("the model says so")
	effect, _ := e.Property(bpmn.PropertyEffect)
	switch {
	case named:
		policy = worker.CompensatedBy(undo, worker.RemoteUndo[in, map[string]any]{
			Call: func(_ context.Context, _ string, u worker.UndoOf[in, map[string]any]) error {
				k.others.undo(u.OperationID)
				return nil
			},
		})
	case effect == "none":
		policy = worker.NoEffect()
	}
	opts := []worker.Option{worker.KeyValidFor(24 * time.Hour), policy}
	if named {
		opts = append(opts, worker.Orphan(worker.Undo))
	}
	mux.Handle(typ, worker.External(worker.Remote[in, map[string]any, map[string]any]{
		Call: func(ctx context.Context, c worker.Call[in]) (map[string]any, error) {
			return k.others.call(ctx, typ, c.SagaID, c.Key)
		},
		Resolve: func(_ context.Context, c worker.Call[in]) (map[string]any, error) {
			return k.others.find(c.Key)
		},
		Settle: func(_ context.Context, _ *worker.Tx, _ worker.Job[in], res map[string]any) (map[string]any, error) {
			return res, nil
		},
	}), opts...)
}

func (o *others) next(typ string) Script {
	o.mu.Lock()
	defer o.mu.Unlock()
	if left := o.scripts[typ]; len(left) > 0 {
		o.scripts[typ] = left[1:]
		return left[0]
	}
	return Succeed(nil)
}

func (o *others) call(ctx context.Context, typ, sagaID, key string) (map[string]any, error) {
	s := o.next(typ)
	if s.hold != nil {
		<-s.hold
	}
	o.mu.Lock()
	e := o.effects[key]
	if e == nil {
		e = &Effect{JobType: typ, OperationID: key, Step: strings.TrimPrefix(key, sagaID+":")}
		o.effects[key] = e
	}
	e.Calls++
	if s.act && e.Done == 0 { // it honours keys
		e.Done++
		e.out = s.out
	}
	out := e.out
	o.mu.Unlock()
	switch {
	case s.silent:
		<-ctx.Done()
		return nil, fmt.Errorf("no answer: %w", ctx.Err())
	case s.code != "":
		return nil, worker.BusinessError(s.code, "as scripted")
	case s.fail != nil:
		return nil, s.fail
	}
	return orEmpty(out), nil
}

func (o *others) find(key string) (map[string]any, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.effects[key]; e != nil && e.Stands() {
		return orEmpty(e.out), nil
	}
	return nil, worker.ErrNotHappened
}

func (o *others) undo(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.effects[key]; e != nil && e.Stands() {
		e.Undone++
	}
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// advance moves the clocks of the domain tables and of the record store.
func advance(ctx context.Context, pool *pgxpool.Pool, by time.Duration) error {
	return errors.Join(postgres.AdvanceClock(ctx, pool, postgres.DefaultSchema, by), postgres.AdvanceClock(ctx, pool, sagas.DefaultRecordSchema, by))
}
