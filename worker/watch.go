package worker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Waiting tells which jobs wait to be activated, by type; [rest.Client] does.
//
// [rest.Client]: https://pkg.go.dev/github.com/vitrip/journeyman/zeebe/rest#Client
type Waiting interface {
	WaitingJobs(ctx context.Context) (map[string][]int64, error)
}

// Unserved is a job type with jobs that have waited longer than Config.UnservedAfter while nobody activated them.
type Unserved struct {
	Type  string
	Jobs  int       // seen waiting that long
	Since time.Time // since when, as far as this worker has looked
	Here  bool      // this worker serves the type: it is full, slowed down or cut off; otherwise no worker of the type may be running at all
}

// watch is what the watchdog knows.
type watch struct {
	mu       sync.Mutex
	unserved []Unserved
	seen     map[int64]time.Time // waiting jobs, since when
}

// stalled lists jobs that have held a slot for longer than a handler may take: it ignores its context, or the machine stands.
func (w *Worker) stalled() (late []*held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for h := range w.held {
		if at := h.slotAt.Load(); at != 0 && time.Since(time.Unix(0, at)) > w.cfg.StallAfter {
			late = append(late, h)
		}
	}
	return late
}

// guard logs slots that are held without progress, each once.
func (w *Worker) guard(ctx context.Context) {
	told := map[*held]bool{}
	for pause(ctx, w.cfg.StallAfter/4) == nil {
		late := w.stalled()
		maps.DeleteFunc(told, func(h *held, _ bool) bool { return !slices.Contains(late, h) })
		for _, h := range late {
			if !told[h] {
				told[h] = true
				w.logJob(h).Error().Dur("stall_after", w.cfg.StallAfter).Int("stalled", len(late)).Int("concurrency", w.cfg.Concurrency).Msg("a handler holds its slot without an end; see its stack with SIGQUIT")
			}
		}
	}
}

// lookout looks for jobs that wait and that nobody serves.
func (w *Worker) lookout(ctx context.Context) {
	src := w.cfg.Waiting
	if src == nil {
		src, _ = w.cfg.Elements.(Waiting)
	}
	if src == nil {
		return
	}
	told := map[string]bool{}
	for failures := 0; pause(ctx, w.cfg.UnservedAfter/3) == nil; {
		rctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		jobs, err := src.WaitingJobs(rctx)
		cancel()
		if err != nil {
			if failures++; failures == 1 && ctx.Err() == nil {
				w.cfg.Log.Warn().Err(err).Msg("cannot see waiting jobs; will look again")
			}
			continue
		}
		failures = 0
		now := w.waitingNow(jobs)
		for _, u := range now {
			if !told[u.Type] {
				told[u.Type] = true
				w.cfg.Log.Warn().Str("job_type", u.Type).Int("jobs", u.Jobs).Time("since", u.Since).Bool("served_here", u.Here).Msg("jobs wait and nobody activates them")
			}
		}
		for t := range told {
			if !slices.ContainsFunc(now, func(u Unserved) bool { return u.Type == t }) {
				delete(told, t)
				w.cfg.Log.Info().Str("job_type", t).Msg("jobs of the type are being served again")
			}
		}
	}
}

// waitingNow takes one look and gives the types whose jobs have waited too long.
func (w *Worker) waitingNow(jobs map[string][]int64) []Unserved {
	now := time.Now()
	seen := map[int64]time.Time{}
	var out []Unserved
	types := w.rt.mux.Types()
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	for t, keys := range jobs {
		u := Unserved{Type: t, Here: slices.Contains(types, t)}
		for _, k := range keys {
			at, ok := w.watch.seen[k]
			if !ok {
				at = now
			}
			seen[k] = at
			if now.Sub(at) >= w.cfg.UnservedAfter {
				u.Jobs++
				if u.Since.IsZero() || at.Before(u.Since) {
					u.Since = at
				}
			}
		}
		if u.Jobs > 0 {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b Unserved) int { return cmp.Compare(a.Type, b.Type) })
	w.watch.seen, w.watch.unserved = seen, out
	return out
}
