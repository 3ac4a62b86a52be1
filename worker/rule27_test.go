package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// TestRule27_streams: 450 jobs are pushed at a worker that takes 8. It holds 8 and receives no more; on drain it reads all that was
// pushed, ends the stream and hands everything back with its retries unchanged: no job waits for its time-out.
func TestRule27_streams(t *testing.T) {
	t.Parallel()
	const jobs, most = 450, 8
	s := newSite(t)
	var mu sync.Mutex
	back := map[int64]int32{}
	s.eng.Intercept("FailJob", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		r := req.(*pb.FailJobRequest) //nolint:forcetypeassert // this method's request
		mu.Lock()
		back[r.GetJobKey()] = r.GetRetries()
		mu.Unlock()
		return next(ctx)
	})
	gate := make(chan struct{})
	mux := worker.NewMux()
	mux.Handle("room.hold", worker.Transactional(func(ctx context.Context, _ *worker.Tx, _ worker.Job[hold]) (map[string]any, error) {
		s.runs.Add(1)
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}, worker.NoEffect()))
	w, stop := s.runUntil(mux, worker.Config{MaxJobsActive: most, Concurrency: 2, PollWait: time.Second, JobTimeout: 30 * time.Second})
	s.until("stream up", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
	highest := 0
	for i := range jobs {
		s.create(fmt.Sprint("k", i))
		highest = max(highest, w.Active())
	}
	s.until("as much as it takes", func() bool { return s.runs.Load() >= 2 && w.Active() >= most })
	if highest > most {
		t.Errorf("%d jobs held, want at most %d", highest, most)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	s.until("untouched jobs handed back", func() bool { mu.Lock(); defer mu.Unlock(); return len(back) >= most-2 })
	close(gate)
	<-ended
	mu.Lock()
	handed := len(back)
	for k, r := range back {
		if r != 3 {
			t.Errorf("job %d handed back with %d retries, want 3", k, r)
		}
	}
	mu.Unlock()
	h := streamOf(w, "room.hold")
	if int(h.Streamed+h.Polled) != handed+int(s.runs.Load()) || int(h.HandedBack) != handed {
		t.Errorf("received %d+%d jobs, %d ran and %d were handed back, health says %d", h.Streamed, h.Polled, s.runs.Load(), handed, h.HandedBack)
	}
	if handed < 100 {
		t.Errorf("%d jobs handed back: the gateway had not pushed past the limit, this test shows nothing", handed)
	}
	want := jobs - int(s.runs.Load())
	free := s.takeAll("room.hold")
	t.Logf("of %d jobs: %d ran, %d were handed back at the drain, %d wait for their time-out", jobs, s.runs.Load(), handed, want-free)
	if free != want {
		t.Errorf("%d jobs are free after the drain, want %d: the others wait for their time-out", free, want)
	}
}

// takeAll activates all jobs that can be activated now.
func (s *site) takeAll(jobType string) (n int) {
	s.t.Helper()
	for {
		got, err := s.conn.Activate(s.ctx, zeebe.ActivateRequest{Type: jobType, Worker: "rest", MaxJobs: 500, Timeout: time.Hour})
		if err != nil {
			s.t.Fatal(err)
		}
		if n += len(got); len(got) == 0 {
			return n
		}
	}
}
