package worker

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/zeebe"
)

// held is a received job.
type held struct {
	job      zeebe.Job
	received time.Time // monotonic: deadlines never ask the broker's clock (path rule 6)
	sla      time.Duration
	attempts dedup.Attempts
	guarded  bool         // attempts are known
	probe    bool         // taken while its type was slowed down
	slotAt   atomic.Int64 // since when it has its slot, Unix ns; 0 = it waits

	vars    map[string]any
	varsErr error

	mu    sync.Mutex
	until time.Time
	since time.Time // of the last extension
}

func (h *held) extended() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since
}

// last is when the job's time-out may end at the latest: it is never extended past the SLA (spec W10).
func (h *held) last() time.Time { return h.received.Add(h.sla) }

// extensible reports whether the time-out ends before the last moment that it may.
func (h *held) extensible(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until.Before(h.last()) && now.Before(h.last())
}

func (h *held) extend(at time.Time, timeout time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until, h.since = at.Add(timeout), at
}

// margin is what must be left before the deadline for a FailJob to arrive in time.
const margin = 500 * time.Millisecond

// ours reports whether the job's time-out has certainly not passed yet.
func (h *held) ours() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until) > margin
}

func (h *held) deadline() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// poll activates jobs of one type until ctx ends. Every way out of a request, errors of any kind included, leads to the next.
// Beside an open stream it only fills back what a stream does not bring: the backlog from before it opened, and what the gateway
// passed by while we were full. It asks then without waiting at the gateway, at once after a change, seldom when there is nothing.
func (w *Worker) poll(ctx, hard context.Context, in *intake, jobs *sync.WaitGroup) {
	jobType := in.jobType
	names := w.fetch(jobType)
	share := max(1, w.cfg.MaxJobsActive/len(w.rt.mux.Types()))
	most := share
	failures, empty := 0, 0
	if in.is(StreamDown) {
		in.quiet(ctx, time.Second) // the first stream is being opened: a long poll now would hold places that it needs
	}
	for ctx.Err() == nil {
		want := min(share, most)
		probe := w.breaker(jobType).probe(ctx)
		if probe {
			want = 1
		}
		n := w.reserve(ctx, want)
		if n == 0 {
			return
		}
		n = w.gather(ctx, n, want)
		fill := in.is(StreamUp)
		wait := w.cfg.PollWait
		if fill {
			wait = 0
		}
		actx, done := untilAnswered(ctx, hard)
		got, err := w.conn.Activate(actx, zeebe.ActivateRequest{
			Type: jobType, Worker: w.cfg.Name, MaxJobs: int32(n), Timeout: w.cfg.JobTimeout, Wait: wait, Variables: names, Tenants: w.cfg.Tenants,
		})
		received := time.Now()
		done()
		if len(got) > n {
			w.active.Add(int64(len(got) - n)) // a gateway that gives too many: they count all the same
		} else {
			w.release(n - len(got))
		}
		in.count(&in.polled, len(got))
		w.accept(ctx, hard, in, got, received, probe, jobs)
		if err == nil {
			failures, most = 0, share
			if len(got) > 0 {
				empty = 0
				continue
			}
			poke(in.empty)
			if fill && in.is(StreamUp) {
				empty++
				if in.quiet(ctx, w.fillWait(empty)) {
					empty = 0
				}
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		failures++
		if zeebe.Code(err) == zeebe.ResourceExhausted && strings.Contains(err.Error(), "larger than max") {
			most = max(1, most/2) // too much for one message: ask for fewer
		}
		pausing := w.cfg.PollBackoff.Wait(failures)
		w.cfg.Log.Warn().Err(err).Str("job_type", jobType).Dur("wait", pausing).Msg("activation failed, will poll again")
		if pause(ctx, pausing) != nil {
			return
		}
	}
}

// pollGrace is how long a poll that was just sent may still be answered after the worker stops: cancelled, it would leave jobs
// that are on their way to the job time-out.
const pollGrace = 250 * time.Millisecond

// untilAnswered gives the context of one poll: it ends when ctx is over and the poll is pollGrace old, or with hard.
func untilAnswered(ctx, hard context.Context) (context.Context, func()) {
	actx, cancel := context.WithCancel(hard)
	sent := time.Now()
	stop := context.AfterFunc(ctx, func() {
		if pause(actx, pollGrace-time.Since(sent)) == nil {
			cancel()
		}
	})
	return actx, func() { stop(); cancel() }
}

// fillWait is the pause between polls that find nothing beside an open stream: doubling up to a PollWait, jittered. Beyond fifty job
// types it grows up to four times as long, from a hundred on in steps of four, so that hundreds of idle types cost next to nothing,
// and soon after the start. Long pauses of many types end together, once a fillTick: what costs then is that the process wakes, not what
// it asks for.
func (w *Worker) fillWait(empty int) time.Duration {
	many := min(max(len(w.intakes)/50, 1), 4)
	most := max(w.cfg.PollWait, 200*time.Millisecond) * time.Duration(many)
	d := min(100*time.Millisecond<<min(empty*min(many, 2), 12), most)
	d = d/2 + rand.N(d/2+1) //nolint:gosec // jitter
	if many > 1 && d > 4*fillTick {
		since := time.Since(w.began)
		d = (since + d).Truncate(fillTick) + fillTick - since
	}
	return d
}

const fillTick = 2 * time.Second

// quiet waits for d or a nudge, and reports whether it was nudged.
func (in *intake) quiet(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-in.nudge:
		return true
	}
	return false
}

// fetch lists the variables to ask for: what the handler declares, the correlation variables, and for a compensation its forward operation.
func (w *Worker) fetch(jobType string) []string {
	names := correlationNames()
	if p := w.rt.plans[jobType]; p != nil {
		names = append(names, p.names...)
	}
	if w.rt.undo[jobType] {
		names = append(names, varForward)
	}
	return names
}

// reserve takes up to n of the free places of MaxJobsActive, waiting for the first one; 0 = ctx is over.
func (w *Worker) reserve(ctx context.Context, n int) int {
	for {
		cur := w.active.Load()
		if room := int64(w.cfg.MaxJobsActive) - cur; room > 0 {
			take := min(room, int64(n))
			if w.active.CompareAndSwap(cur, cur+take) {
				if room > take {
					w.poke() // there is more for another poller
				}
				return int(take)
			}
			continue
		}
		select {
		case <-ctx.Done():
			return 0
		case <-w.free:
		}
	}
}

// gather adds to n reserved places until they are worth a poll, a quarter of what is wanted, as long as enough jobs are here that no
// slot will want for one; at most gatherWait.
func (w *Worker) gather(ctx context.Context, n, want int) int {
	for end := time.Now().Add(gatherWait); n < want/4 && int(w.active.Load())-n > 2*w.cfg.Concurrency && time.Now().Before(end); {
		if pause(ctx, gatherWait/10) != nil {
			break
		}
		n += w.tryReserve(want - n)
	}
	return n
}

const gatherWait = 20 * time.Millisecond

// tryReserve takes up to n of the free places at once; 0 = there is none.
func (w *Worker) tryReserve(n int) int {
	for {
		cur := w.active.Load()
		room := int64(w.cfg.MaxJobsActive) - cur
		if room <= 0 {
			return 0
		}
		take := min(room, int64(n))
		if w.active.CompareAndSwap(cur, cur+take) {
			return int(take)
		}
	}
}

func (w *Worker) release(n int) {
	if n > 0 {
		w.active.Add(int64(-n))
		w.poke()
	}
}

func (w *Worker) poke() { poke(w.free) }

// accept opens the attempts of a batch and starts its jobs; when the worker stops it hands them back.
func (w *Worker) accept(ctx, hard context.Context, in *intake, got []zeebe.Job, received time.Time, probe bool, jobs *sync.WaitGroup) {
	if len(got) == 0 {
		return
	}
	if ctx.Err() != nil {
		left := make([]pushed, len(got))
		for i, j := range got {
			left[i] = pushed{j, received}
		}
		w.giveBack(hard, in, left, backStopping, jobs)
		return
	}
	jobType := in.jobType
	batch := make([]*held, len(got))
	keys, ids := make([]int64, len(got)), make([]string, len(got))
	for i, j := range got {
		h := &held{job: j, received: received, since: received, until: received.Add(w.cfg.JobTimeout), sla: slaDefault, probe: probe}
		if s := w.rt.mux.forward[jobType]; s != nil && s.opt.sla > 0 {
			h.sla = s.opt.sla
		}
		h.vars, h.varsErr = parseVariables(j.Variables)
		keys[i] = j.Key
		if id, ok := h.vars[varOperationID].(string); ok && len(id) <= maxID {
			ids[i] = id
		}
		crash.Point("worker.received", ids[i])
		batch[i] = h
	}
	actx, cancel := context.WithTimeout(hard, w.cfg.LockTimeout)
	attempts, err := w.rt.store.OpenAttempts(actx, w.rt.control, w.rt.process, w.rt.cluster, keys, ids, deadAfter)
	cancel()
	if err != nil {
		w.cfg.Log.Warn().Err(err).Str("job_type", jobType).Msg("attempts not opened; the crash-loop guard does not see this batch")
	}
	w.mu.Lock()
	for _, h := range batch {
		h.attempts, h.guarded = attempts[h.job.Key], err == nil
		w.held[h] = struct{}{}
	}
	w.mu.Unlock()
	for _, h := range batch {
		jobs.Go(func() {
			defer func() {
				w.mu.Lock()
				delete(w.held, h)
				w.mu.Unlock()
				w.release(1)
			}()
			w.work(ctx, hard, h)
		})
	}
}
