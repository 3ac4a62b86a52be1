package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// BatchEnd is how one job of a batch ended. A nil Err is SUCCESS with Out; other errors mean what they mean in a [Func]. What was
// written for a job that is refused is not rolled back by itself: decide first, then write for those that succeed.
type BatchEnd[Out any] struct {
	Out    Out
	Err    error
	Events []events.Message // staged with SUCCESS; a refusal's are attached to its error
}

// BatchFunc is a set-based handler: it does the work of many jobs with few statements and gives one end per job, in the jobs'
// order. An error of its own, a panic, a failed statement or another number of ends rolls everything back, and each job is then
// run by itself in a batch of one: a bad job does not take the others down.
type BatchFunc[In, Out any] func(ctx context.Context, tx *Tx, jobs []Job[In]) ([]BatchEnd[Out], error)

// Batch makes a handler from a function that takes up to most waiting jobs of its type in one transaction, each with its own
// outcome, dedup record and events. It never waits for a batch to fill: a job that finds nobody waiting beside it is a batch
// of one. Events belong to [BatchEnd]; tx.Emit is refused as FATAL.
func Batch[In, Out any](most int, f BatchFunc[In, Out], opts ...Option) Handler {
	s := newSpec[In](shapeTx, opts)
	s.res = reflect.TypeFor[Out]()
	s.most = most
	if f == nil {
		s.missing = append(s.missing, "function")
		return s
	}
	if most < 1 {
		s.missing = append(s.missing, "number of jobs in a batch")
	}
	s.batch = func(ctx context.Context, tx *Tx, tasks []*task) ([]batchEnd, error) {
		jobs := make([]Job[In], len(tasks))
		for i, t := range tasks {
			in, err := decode[In](t.input)
			if err != nil {
				return nil, err
			}
			jobs[i] = Job[In]{Meta: t.meta, In: in}
		}
		ends, err := f(ctx, tx, jobs)
		if err != nil {
			return nil, err
		}
		if len(ends) != len(jobs) {
			return nil, outcome.Fatalf("batch", "the handler gave %d ends for %d jobs", len(ends), len(jobs))
		}
		if len(tx.Messages()) > 0 {
			return nil, outcome.Fatalf("batch", "a batch handler emitted %d messages by tx.Emit; want them in the BatchEnd of their job", len(tx.Messages()))
		}
		out := make([]batchEnd, len(ends))
		for i, e := range ends {
			out[i] = batchEnd{err: e.Err, events: e.Events, success: e.Err == nil}
			if e.Err == nil {
				out[i].doc, out[i].err = encode(e.Out)
			}
		}
		return out, nil
	}
	s.run = func(ctx context.Context, tx *Tx, m Meta, input json.RawMessage) (json.RawMessage, error) {
		ends, err := s.batch(ctx, tx, []*task{{meta: m, input: input}})
		if err != nil {
			return nil, err
		}
		if ends[0].err == nil {
			tx.Emit(ends[0].events...)
		}
		return ends[0].doc, ends[0].err
	}
	return s
}

// batchEnd is BatchEnd with its types erased.
type batchEnd struct {
	doc     json.RawMessage
	err     error
	events  []events.Message
	success bool // in the handler's view, which wrote for it
}

func (g *group) runBatch(ctx context.Context, run func(context.Context, *Tx, []*task) ([]batchEnd, error)) error {
	var in []*mate
	var tasks []*task
	for _, m := range g.all {
		end, ok := g.admit(m)
		switch {
		case !ok:
		case end != nil: // refused by the saga's gate: it is not given to the handler
			m.tx = outbox.NewTx(g.gc)
			m.err = end
			if err := g.settleMember(m, end, false); err != nil {
				return err
			}
		default:
			in, tasks = append(in, m), append(tasks, m.t)
		}
	}
	if len(in) == 0 {
		return nil
	}
	for _, t := range tasks {
		crash.Point("worker.claimed", t.meta.OperationID)
	}
	hctx, cancel := context.WithTimeout(ctx, g.r.limitOf(tasks[0]))
	defer cancel()
	tx := outbox.NewTx(g.gc)
	ends, err := guarded(func() *zerolog.Logger { return &g.r.log }, func() ([]batchEnd, error) { return run(hctx, tx, tasks) })
	if err == nil {
		err = tx.Refused()
	}
	if bad := g.broken(nil); bad != nil {
		err = errors.Join(bad, err)
	}
	if err != nil {
		err = fmt.Errorf("batch of %d: %w", len(tasks), err)
		g.split(nil, err)
		return err
	}
	for i, m := range in {
		m.tx = outbox.NewTx(g.gc)
		m.doc, m.err = ends[i].doc, ends[i].err
		if m.err == nil {
			m.tx.Emit(ends[i].events...)
		}
		if err := g.settleMember(m, classify(hctx, m.err), ends[i].success); err != nil {
			return err
		}
	}
	return nil
}

// settleMember records the end of one job of a batch. There is one savepoint for all: what the handler wrote stays. So when it took the
// job for a success whose output or events cannot be sent, nothing of the batch stays, and each job runs by itself.
func (g *group) settleMember(m *mate, end *outcome.Error, success bool) error {
	w, end := g.r.judge(m.t, g.conn, m.tx, m.doc, end, g.used[m.t.meta.ProcessInstanceKey])
	if success && end != nil {
		g.split(m, end)
		return errSplit
	}
	w.effect, w.attached = dedup.EffectNone, eventsOf(m.err)
	if end != nil && end.Class == outcome.Retryable {
		m.res = result{kind: retry, err: end, wait: end.After}
		return nil
	}
	if end != nil && !end.Keep {
		m.tx.Truncate(0)
	}
	if !g.write(m, w, end) && success {
		g.split(m, m.res.err)
		return errSplit
	}
	return nil
}
