package workertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
)

// TestHealth_throughput: what a handler declares stands beside what was measured (spec W10).
func TestHealth_throughput(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	mux := worker.NewMux()
	mux.Handle("room.reserve", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[first]) (held, error) {
		return held{ID: "R"}, nil
	}, worker.NoEffect(), worker.Expect(50, 20*time.Millisecond)))
	w, err := worker.New(h.conn, h.pool, mux, worker.Config{MaxJobsActive: 4, Concurrency: 2, PollWait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	const jobs = 5
	for n := range jobs {
		h.create(map[string]any{"businessKey": fmt.Sprintf("%s-%d", workertest.AfterClaim, n)}).WantActive("wait")
	}
	h.until("the jobs are counted", func() bool {
		s := w.Health().Types[0]
		return s.JobsPerSecond > 0 && s.JobCost > 0
	})
	if s := w.Health().Types[0]; s.Type != "room.reserve" || s.ExpectedPerSecond != 50 || s.ExpectedCost != 20*time.Millisecond || s.JobsPerSecond > jobs {
		t.Errorf("got %+v", s)
	}
}
