package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/outcome"
)

// TestBreaker: when a type's jobs fail in masses it slows down to probes; the first that ends well opens it again.
func TestBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var up atomic.Bool
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		w.runs.Add(1)
		if !up.Load() {
			return reserved{}, errors.New("connection refused")
		}
		return reserved{}, nil
	}, NoEffect()))
	mux.Handle("hotel.reserve", Transactional(func(context.Context, *Tx, Job[reserve]) (reserved, error) { return reserved{}, nil }, NoEffect()))
	cfg := fast()
	cfg.BreakerBackoff = outcome.Backoff{Min: 300 * time.Millisecond, Max: 300 * time.Millisecond, Factor: 1, Floor: 300 * time.Millisecond}
	wk, _ := w.start(mux, cfg)
	keys := make([]int64, 60)
	for i := range keys {
		keys[i] = w.gw.add("flight.reserve", job(fmt.Sprint("op-", i), offer))
		w.gw.edit(keys[i], func(j *fakeJob) { j.Retries = 1000 })
	}
	slowed := func() bool { return wk.Health().Types[0].Slowed }
	w.until("slowed down", slowed)
	w.until("what was received is done", func() bool { return wk.Active() <= 8 })
	from, at := w.runs.Load(), time.Now()
	w.until("three probes", func() bool { return w.runs.Load() >= from+3 })
	if d := time.Since(at); d < 600*time.Millisecond {
		t.Errorf("three probes within %s, want 300ms between them", d)
	}
	w.wait(w.gw.add("hotel.reserve", job("other", offer)), "completed") // the other type goes on
	if h := wk.Health().Types[1]; h.Slowed || h.Type != "hotel.reserve" {
		t.Errorf("health %+v", h)
	}
	up.Store(true)
	for _, k := range keys {
		w.wait(k, "completed")
	}
	if h := wk.Health().Types[0]; h.Slowed || h.TimesSlowed != 1 {
		t.Errorf("health %+v", h)
	}
}

// TestBreaker_oneJob: one job that fails again and again slows nobody down, and neither do refusals or failures among successes.
func TestBreaker_oneJob(t *testing.T) {
	t.Parallel()
	b := newBreaker(false, outcome.Backoff{})
	for range 100 {
		b.record(1, true)
	}
	if open, _, _ := b.state(); open {
		t.Error("one job opened it")
	}
	for i := range int64(100) {
		b.record(i, i%3 == 0)
	}
	if open, _, _ := b.state(); open {
		t.Error("a third of failures opened it")
	}
	for i := range int64(100) {
		b.record(i, i%3 != 0)
	}
	if _, _, trips := b.state(); trips == 0 {
		t.Error("two thirds of failures did not open it")
	}
}
