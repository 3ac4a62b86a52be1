package worker

import (
	"context"
	"sync"
	"time"

	"github.com/vitrip/journeyman/outcome"
)

// What opens a breaker: of the last breakerWindow ends of a type's jobs at least half were failures, of at least breakerJobs
// different jobs. One job that fails again and again does not.
const (
	breakerWindow = 20
	breakerJobs   = 8
)

// breaker slows one job type down when its jobs fail in masses: retried, fatal or of unknown result, whatever the cause. While it
// is open the type's stream is closed and single jobs are polled as probes, with growing waits; the first job that ends well
// closes it. Jobs that run go on, those that wait for a slot are handed back. Refusals (BUSINESS_ERROR) are no failures.
type breaker struct {
	off  bool
	wait outcome.Backoff

	mu      sync.Mutex
	ends    [breakerWindow]breakerEnd
	n       int // ends recorded since it was closed
	open    bool
	since   time.Time
	trips   int64
	probes  int
	closing chan struct{} // closed when the breaker closes; nil while it is closed
	opened  map[*func()]struct{}
	drain   context.Context    //nolint:containedctx // the worker's; nil before it runs
	calm    context.Context    //nolint:containedctx // ends when the breaker opens, or with drain
	trip    context.CancelFunc // ends calm
}

type breakerEnd struct {
	job    int64
	failed bool
}

func newBreaker(off bool, wait outcome.Backoff) *breaker {
	return &breaker{off: off, wait: wait, opened: map[*func()]struct{}{}}
}

// begin ties the breaker to a worker's run.
func (b *breaker) begin(drain context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drain = drain
	b.calm, b.trip = context.WithCancel(drain) //nolint:gosec // ended by record, or with drain
}

// waits gives the context of a job that waits for a slot: it ends with the worker's run, and for one that is no probe when the
// breaker opens.
func (b *breaker) waits(drain context.Context, probe bool) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe || b.calm == nil {
		return drain
	}
	return b.calm
}

// record takes the end of a job and reports whether it opened or closed the breaker.
func (b *breaker) record(job int64, failed bool) (opened, closed bool) {
	if b.off {
		return false, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		if failed {
			return false, false
		}
		b.open, b.n, b.probes = false, 0, 0
		close(b.closing)
		if b.drain != nil {
			b.calm, b.trip = context.WithCancel(b.drain)
		}
		return false, true
	}
	b.ends[b.n%breakerWindow] = breakerEnd{job, failed}
	b.n++
	if !failed {
		return false, false
	}
	bad := 0
	jobs := map[int64]bool{}
	have := min(b.n, breakerWindow)
	for _, e := range b.ends[:have] {
		if e.failed {
			bad++
			jobs[e.job] = true
		}
	}
	if len(jobs) < breakerJobs || 2*bad < have {
		return false, false
	}
	b.open, b.since, b.closing = true, time.Now(), make(chan struct{})
	b.trips++
	if b.trip != nil {
		b.trip()
	}
	for f := range b.opened {
		(*f)()
	}
	return true, false
}

// onOpen calls f when the breaker opens, until the function it gives is called. f must not block.
func (b *breaker) onOpen(f func()) (remove func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened[&f] = struct{}{}
	if b.open {
		f()
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.opened, &f)
	}
}

// closed waits until the breaker is closed; it calls paused when that is not at once. An error is ctx's.
func (b *breaker) closed(ctx context.Context, paused func()) error {
	b.mu.Lock()
	open, c := b.open, b.closing
	b.mu.Unlock()
	if !open {
		return nil
	}
	paused()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// probe waits for the turn of the next probe while the breaker is open, and reports whether it is one.
func (b *breaker) probe(ctx context.Context) bool {
	b.mu.Lock()
	open, c := b.open, b.closing
	var wait time.Duration
	if open {
		b.probes++
		wait = b.wait.Wait(b.probes)
	}
	b.mu.Unlock()
	if !open {
		return false
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c:
	case <-ctx.Done():
	}
	return false
}

func (b *breaker) state() (open bool, since time.Time, trips int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open, b.since, b.trips
}

// breaker gives the breaker of a type.
func (w *Worker) breaker(jobType string) *breaker { return w.breakers[jobType] }

// ended tells the breaker how a job ended.
func (w *Worker) ended(h *held, res result) {
	failed := res.kind == retry || res.kind == answered && res.err != nil && res.err.Class == outcome.Fatal
	if res.kind != answered && res.kind != retry {
		return
	}
	opened, closed := w.breaker(h.job.Type).record(h.job.Key, failed)
	switch {
	case opened:
		w.cfg.Log.Error().Str("job_type", h.job.Type).Str("reason", res.err.Reason).Msg("jobs of the type fail in masses: slowed down to single probes")
	case closed:
		w.cfg.Log.Info().Str("job_type", h.job.Type).Msg("a probe ended well: the type runs at full speed again")
	}
}
