package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/zeebe"
)

// Why an untouched job is handed back; the text is shown with the job by the engine.
const (
	backStopping = "handed back: the worker stops"
	backSlowed   = "handed back: jobs of the type fail in masses here"
	backFull     = "handed back: more jobs were pushed than the worker gets through"
)

// backLanes is how many jobs are handed back at once, backFor how long one is tried.
const (
	backLanes = 32
	backFor   = 5 * time.Second
)

// handBack gives an untouched job back with its retries unchanged (spec W11).
func (w *Worker) handBack(ctx context.Context, h *held) {
	defer w.closeAttempt(ctx, h)
	b := w.breaker(h.job.Type)
	why := backStopping
	if slowed, _, _ := b.state(); slowed && b.drain.Err() == nil {
		why = backSlowed
	}
	i := slices.IndexFunc(w.intakes, func(in *intake) bool { return in.jobType == h.job.Type })
	w.intakes[i].ended(ctx, why == backStopping)
	if w.handBackJob(ctx, h, why) {
		w.intakes[i].count(&w.intakes[i].back, 1)
	}
}

// giveBack hands jobs back that were received and never looked at; jobs waits for it, and done is closed at its end. Each job holds a
// place of MaxJobsActive.
func (w *Worker) giveBack(ctx context.Context, in *intake, left []pushed, why string, jobs *sync.WaitGroup) (done <-chan struct{}) {
	over := make(chan struct{})
	if len(left) == 0 {
		close(over)
		return over
	}
	w.cfg.Log.Info().Str("job_type", in.jobType).Int("jobs", len(left)).Str("why", why).Msg("handing jobs back")
	jobs.Go(func() {
		defer close(over)
		if why == backStopping {
			in.ended(ctx, true)
		}
		var g errgroup.Group
		g.SetLimit(backLanes)
		for _, p := range left {
			g.Go(func() error {
				defer w.release(1)
				if w.handBackJob(ctx, &held{job: p.Job, received: p.at, since: p.at, until: p.at.Add(w.cfg.JobTimeout)}, why) {
					in.count(&in.back, 1)
				}
				return nil
			})
		}
		_ = g.Wait() // each is logged
	})
	return over
}

// handBackJob makes the job activatable for others, its retries unchanged, and reports whether the engine has taken it. Once the
// job's time-out may have passed it is left alone: it may run elsewhere (path rule 6).
func (w *Worker) handBackJob(ctx context.Context, h *held, why string) bool {
	hctx, cancel := context.WithTimeout(ctx, backFor)
	defer cancel()
	for n := 1; h.ours(); n++ {
		var err error
		if h.job.Retries > 0 {
			err = w.conn.Fail(hctx, zeebe.FailRequest{JobKey: h.job.Key, Retries: h.job.Retries, Message: why})
		} else { // failing it would raise an incident; its time-out is over at once instead
			err = w.conn.UpdateJobTimeout(hctx, h.job.Key, time.Millisecond)
		}
		if err == nil {
			w.logJob(h).Debug().Str("why", why).Msg("job handed back")
			return true
		}
		if !zeebe.IsTransient(err) || pause(hctx, w.cfg.PollBackoff.Wait(n)) != nil {
			w.logJob(h).Warn().Err(err).Str("why", why).Msg("job not handed back; it comes back by its time-out")
			return false
		}
	}
	return false
}
