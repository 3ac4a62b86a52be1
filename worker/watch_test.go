package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/vitrip/journeyman/worker"
)

// TestWatch_unserved: jobs of a type that no worker serves are shown after a while, and not any more once somebody does.
func TestWatch_unserved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	mux := worker.NewMux()
	mux.Handle("other", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[hold]) (map[string]any, error) { return nil, nil }, worker.NoEffect()))
	w := s.run(mux, worker.Config{MaxJobsActive: 8, Concurrency: 2, PollWait: time.Second, Elements: s.rest, UnservedAfter: 300 * time.Millisecond})
	k := s.create("a")
	s.until("shown", func() bool {
		u := w.Health().Unserved
		return len(u) == 1 && u[0].Type == "room.hold" && u[0].Jobs == 1 && !u[0].Here && !u[0].Since.IsZero()
	})
	s.start(nil, nil)
	s.instanceIs(k, "COMPLETED")
	s.until("not shown any more", func() bool { return len(w.Health().Unserved) == 0 })
}

// TestWatch_stalled: a handler that ignores its context is reported while it holds its slot.
func TestWatch_stalled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	gate := make(chan struct{})
	w := s.start(func(context.Context, *worker.Tx, worker.Job[hold]) (map[string]any, error) {
		<-gate
		return nil, nil
	}, func(c *worker.Config) { c.StallAfter = 200 * time.Millisecond })
	k := s.create("a")
	s.until("reported", func() bool { return w.Health().Stalled == 1 })
	close(gate)
	s.instanceIs(k, "COMPLETED")
	s.until("not any more", func() bool { return w.Health().Stalled == 0 })
	if i := slices.IndexFunc(w.Health().Types, func(h worker.TypeHealth) bool { return h.Type == "room.hold" }); i < 0 {
		t.Error("the type is not in Health")
	}
}
