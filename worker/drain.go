package worker

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Force ends a drain before its time: handlers that still run are cut off, and Run returns within two seconds. Without a drain
// under way it takes effect when one begins.
func (w *Worker) Force() { w.forced.Do(func() { close(w.force) }) }

// Serve is Run for the main function of a program: the first signal begins the drain, as the end of ctx does, the second one
// forces it (spec W11). Give it a channel of signal.Notify for SIGTERM and os.Interrupt with room for two.
func (w *Worker) Serve(ctx context.Context, signals <-chan os.Signal) error {
	run, stop := context.WithCancel(ctx)
	defer stop()
	over, told := make(chan struct{}), make(chan struct{})
	defer func() { close(over); <-told }()
	go func() {
		defer close(told)
		for first := true; ; first = false {
			select {
			case s, ok := <-signals:
				if !ok {
					return
				}
				if !first {
					w.cfg.Log.Warn().Str("signal", s.String()).Int("active", w.Active()).Msg("second signal: handlers are cut off")
					w.Force()
					return
				}
				w.cfg.Log.Info().Str("signal", s.String()).Int("active", w.Active()).Dur("drain_timeout", w.cfg.DrainTimeout).Msg("draining; a second signal forces the end")
				stop()
			case <-over:
				return
			}
		}
	}()
	return w.Run(run)
}

// drain waits until all is done; an error says that handlers must be cut off.
func (w *Worker) drain(drained <-chan struct{}, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-drained:
		return nil
	case <-timer.C:
		return fmt.Errorf("worker: %d jobs still ran when the drain's %s were over", w.Active(), w.cfg.DrainTimeout)
	case <-w.force:
		return fmt.Errorf("worker: %d jobs still ran when the end was forced", w.Active())
	}
}

// cutGrace is what handlers get to notice that their context is over.
const cutGrace = 2 * time.Second
