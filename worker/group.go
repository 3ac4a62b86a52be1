package worker

import (
	"context"
	"runtime"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/vitrip/journeyman/internal/rule"
)

// waiter is a job that waits for a slot and may be taken along by one that has got one.
type waiter struct {
	h     *held
	leave context.CancelFunc // ends its wait
	taken bool
	done  chan result // what came of it, once taken
}

// mayShare says whether a job may ever share a transaction with others of this one's kind (path rule 26): batch handlers with jobs
// of their type, fast transactional handlers with each other. Whether its type is fast is asked when there is a slot: a backlog that
// arrived before the type was judged goes in groups too.
func (w *Worker) mayShare(h *held) bool {
	s := w.rt.mux.forward[h.job.Type]
	switch {
	case s == nil, s.shape != shapeTx, s.opt.control, h.varsErr != nil, w.cfg.Group == 1 && s.batch == nil:
		return false
	case h.attempts.Deaths > 0 && !rule.Off(7):
		return false
	}
	return true
}

// shares says whether a job of h's type would take others along now.
func (w *Worker) shares(h *held) bool {
	return w.rt.mux.forward[h.job.Type].batch != nil || w.rt.paces[h.job.Type].shares()
}

// lanesOf is how many shared transactions are under way at once: one for each processor, two at least, at most half the slots. Fewer
// are fuller, and the statements of a handler wait less behind the long last round trips of the others.
func lanesOf(concurrency int) int {
	return min(concurrency, max(2, min(concurrency/2, runtime.GOMAXPROCS(0))))
}

// takeSlot waits for a job's slots, and before that for a lane when it may share and would take others along. release gives them back.
func (w *Worker) takeSlot(ctx context.Context, h *held, share bool, slots int64) (release func(), err error) {
	lanes := int64(0)
	if share && w.shares(h) {
		if err := w.lanes.Acquire(ctx, 1); err != nil {
			return func() {}, err
		}
		lanes = 1
	}
	if err := w.slots.Acquire(ctx, slots); err != nil {
		w.lanes.Release(lanes)
		return func() {}, err
	}
	return func() {
		w.slots.Release(slots)
		w.lanes.Release(lanes)
	}, nil
}

// queue makes a job known as one that waits. The context ends when it is taken.
func (w *Worker) queue(drain context.Context, h *held) (context.Context, *waiter) {
	ctx, leave := context.WithCancel(drain)
	wt := &waiter{h: h, leave: leave, done: make(chan result, 1)}
	w.mu.Lock()
	w.waiting = append(w.waiting, wt)
	w.mu.Unlock()
	return ctx, wt
}

// board ends a job's wait. When it was not taken and got its slot, it takes others along.
func (w *Worker) board(wt *waiter, slot bool) (taken bool, mates []*waiter) {
	defer wt.leave()
	w.mu.Lock()
	defer w.mu.Unlock()
	if wt.taken {
		return true, nil
	}
	if i := slices.Index(w.waiting, wt); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	if !slot {
		return false, nil
	}
	s := w.rt.mux.forward[wt.h.job.Type]
	most := w.cfg.Group - 1
	if s.batch != nil {
		most = s.most - 1
	} else {
		p := w.rt.paces[wt.h.job.Type]
		if !p.shares() {
			return false, nil
		}
		if e := p.expect(); e > 0 {
			most = min(most, int(w.cfg.groupBudget/e)-1) // more would be claimed for nothing
		}
	}
	if most < 1 {
		return false, nil
	}
	fits := map[string]bool{wt.h.job.Type: true} // by job type
	rest := w.waiting[:0]
	for i, o := range w.waiting {
		if len(mates) == most {
			rest = append(rest, w.waiting[i:]...)
			break
		}
		t := o.h.job.Type
		ok, seen := fits[t]
		if !seen {
			ok = s.batch == nil && w.rt.mux.forward[t].batch == nil && w.rt.paces[t].shares()
			fits[t] = ok
		}
		if !ok {
			rest = append(rest, o)
			continue
		}
		o.taken = true
		o.leave()
		mates = append(mates, o)
	}
	clear(w.waiting[len(rest):])
	w.waiting = rest
	return false, mates
}

// runTogether runs a job that has a slot with those it took along, and gives its result; theirs are delivered.
func (w *Worker) runTogether(ctx context.Context, first *waiter, others []*waiter) result {
	all := append([]*waiter{first}, others...)
	results := make([]result, len(all))
	var mates []*mate
	ends := make([]func(result), len(all))
	at := map[*mate]int{}
	for i, wt := range all {
		results[i] = apartResult
		t, err := w.taskOf(wt.h)
		if err == nil {
			err = w.rt.takeInput(t, wt.h.vars, []byte(wt.h.job.Variables))
		}
		if err != nil {
			continue // said when it runs singly
		}
		m := &mate{t: t}
		var span trace.Span
		m.ctx, span = w.startSpan(ctx, t.meta) //nolint:fatcontext // one context per job, all from the group's own
		ends[i] = func(res result) { endSpan(span, res) }
		mates = append(mates, m)
		at[m] = i
	}
	if len(mates) > 1 || len(mates) == 1 && mates[0].t.spec.batch != nil {
		w.rt.runGroup(ctx, mates)
		for _, m := range mates {
			results[at[m]] = m.res
		}
	}
	for i, wt := range all {
		if ends[i] != nil {
			ends[i](results[i])
		}
		if i > 0 {
			wt.done <- results[i]
		}
	}
	return results[0]
}
