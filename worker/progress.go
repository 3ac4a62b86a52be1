package worker

import (
	"context"
	"time"
)

// progressEvery bounds how often the progress of one call is written.
const progressEvery = time.Second

// keepProgress gives the function that a call tells its progress by, and one that ends it and waits. Texts are written one at a time,
// on a control connection; of those that came meanwhile the last.
func (r *Runtime) keepProgress(ctx context.Context, t *task, h *hold) (tell func(string), stop func()) {
	texts := make(chan string, 1)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case text := <-texts:
				wctx, end := context.WithTimeout(ctx, r.cfg.Lease/4)
				if err := r.store.Progress(wctx, r.control, t.meta.OperationID, h.fence, clip(text)); err != nil && ctx.Err() == nil {
					r.taskLog(t).Warn().Err(err).Msg("progress not stored")
				}
				end()
			}
			if pause(ctx, progressEvery) != nil {
				return
			}
		}
	}()
	return func(text string) {
		select { // the newest text replaces one that waits
		case <-texts:
		default:
		}
		select {
		case texts <- text:
		default:
		}
	}, func() { cancel(); <-done }
}
