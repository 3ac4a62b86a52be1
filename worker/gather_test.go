package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestGather: a poll waits for a quarter of the places it wants while jobs wait here anyway, never longer than gatherWait, and not at
// all when the slots would run dry.
func TestGather(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &Worker{cfg: Config{MaxJobsActive: 100, Concurrency: 2}, free: make(chan struct{}, 1)}
		w.active.Store(100) // one of them is the place that was reserved
		began := time.Now()
		if n := w.gather(context.Background(), 1, 40); n != 1 || time.Since(began) < gatherWait {
			t.Errorf("nothing came free: %d places after %s, want the one and the whole wait", n, time.Since(began))
		}
		w.active.Store(88)
		began = time.Now()
		if n := w.gather(context.Background(), 1, 40); n != 13 || time.Since(began) >= gatherWait || w.active.Load() != 100 {
			t.Errorf("twelve were free: %d places after %s, %d active", n, time.Since(began), w.active.Load())
		}
		w.active.Store(5)
		began = time.Now()
		if n := w.gather(context.Background(), 1, 40); n != 1 || time.Since(began) != 0 {
			t.Errorf("few jobs are here: %d places after %s, want no wait", n, time.Since(began))
		}
		w.active.Store(100)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		began = time.Now()
		if n := w.gather(ctx, 1, 40); n != 1 || time.Since(began) != 0 {
			t.Errorf("the worker stops: %d places after %s", n, time.Since(began))
		}
	})
}

// TestFillWait: polls beside an open stream slow down to one a PollWait, and further where there are hundreds of types.
func TestFillWait(t *testing.T) {
	t.Parallel()
	for types, most := range map[int]time.Duration{1: 10 * time.Second, 60: 10 * time.Second, 120: 20 * time.Second, 900: 40 * time.Second} {
		w := &Worker{began: time.Now(), cfg: Config{PollWait: 10 * time.Second}, intakes: make([]*intake, types)}
		for range 50 {
			if first, last := w.fillWait(0), w.fillWait(40); first > 100*time.Millisecond || last < most/2 || last > most+fillTick {
				t.Fatalf("%d types: waits from %s to %s, want up to %s", types, first, last, most)
			}
			if most, polls := w.fillWait(40), 5; types >= 120 && w.fillWait(polls) < most/2 {
				t.Fatalf("%d types: the wait after %d polls is below half of %s: hundreds of types poll often for a minute", types, polls, most)
			}
		}
	}
}

// TestFillWait_together: the polls of a hundred idle types go out in one moment every two seconds, not a hundred moments apart.
func TestFillWait_together(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &Worker{began: time.Now(), cfg: Config{PollWait: 10 * time.Second}, intakes: make([]*intake, 100)}
		var wakes sync.Map
		var types sync.WaitGroup
		for i := range 100 {
			types.Go(func() {
				<-time.After(time.Duration(i) * 7 * time.Millisecond)
				for n := range 20 {
					<-time.After(w.fillWait(n))
					if n > 10 {
						wakes.Store(time.Since(w.began), true)
					}
				}
			})
		}
		types.Wait()
		moments := 0
		wakes.Range(func(at, _ any) bool {
			moments++
			if at.(time.Duration)%fillTick != 0 { //nolint:forcetypeassert // stored above
				t.Errorf("a poll after %s, want a multiple of %s", at, fillTick)
			}
			return true
		})
		if moments == 0 {
			t.Error("no poll was seen")
		}
	})
}
