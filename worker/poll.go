package worker

import (
	"context"
	"strings"
	"sync"
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
	guarded  bool // attempts are known

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

func (h *held) extend(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until, h.since = h.until.Add(at.Sub(h.since)), at
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
func (w *Worker) poll(ctx, hard context.Context, jobType string, jobs *sync.WaitGroup) {
	names := w.fetch(jobType)
	share := max(1, w.cfg.MaxJobsActive/len(w.rt.mux.Types()))
	most := share
	failures := 0
	for ctx.Err() == nil {
		n := w.reserve(ctx, min(share, most))
		if n == 0 {
			return
		}
		got, err := w.conn.Activate(ctx, zeebe.ActivateRequest{
			Type: jobType, Worker: w.cfg.Name, MaxJobs: int32(n), Timeout: w.cfg.JobTimeout, Wait: w.cfg.PollWait, Variables: names, Tenants: w.cfg.Tenants,
		})
		received := time.Now()
		if len(got) > n {
			w.active.Add(int64(len(got) - n)) // a gateway that gives too many: they count all the same
		} else {
			w.release(n - len(got))
		}
		w.accept(ctx, hard, jobType, got, received, jobs)
		if err == nil {
			failures, most = 0, share
			continue
		}
		if ctx.Err() != nil {
			return
		}
		failures++
		if zeebe.Code(err) == zeebe.ResourceExhausted && strings.Contains(err.Error(), "larger than max") {
			most = max(1, most/2) // too much for one message: ask for fewer
		}
		wait := w.cfg.PollBackoff.Wait(failures)
		w.cfg.Log.Warn().Err(err).Str("job_type", jobType).Dur("wait", wait).Msg("activation failed, will poll again")
		if pause(ctx, wait) != nil {
			return
		}
	}
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

func (w *Worker) release(n int) {
	if n > 0 {
		w.active.Add(int64(-n))
		w.poke()
	}
}

func (w *Worker) poke() {
	select {
	case w.free <- struct{}{}:
	default:
	}
}

// accept opens the attempts of a batch and starts its jobs.
func (w *Worker) accept(ctx, hard context.Context, jobType string, got []zeebe.Job, received time.Time, jobs *sync.WaitGroup) {
	if len(got) == 0 {
		return
	}
	batch := make([]*held, len(got))
	keys, ids := make([]int64, len(got)), make([]string, len(got))
	for i, j := range got {
		h := &held{job: j, received: received, since: received, until: received.Add(w.cfg.JobTimeout), sla: slaDefault}
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
