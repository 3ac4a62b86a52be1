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

// TestRule27_streams: 400 jobs are pushed at a worker that takes 8. It holds 8 and receives no more; on drain it reads the stream
// to its end and hands everything back with its retries unchanged. What was on its way when the stream was cancelled is lost
// until the job time-out: it is counted here, and comes back by then.
func TestRule27_streams(t *testing.T) {
	t.Parallel()
	const jobs, most = 400, 8
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
	for range 50 { // nothing more may come in while it is full
		s.create(fmt.Sprint("more", highest, time.Now().UnixNano()))
		highest = max(highest, w.Active())
	}
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
	if h := streamOf(w, "room.hold"); int(h.Streamed+h.Polled) != handed+int(s.runs.Load()) {
		t.Errorf("received %d+%d jobs, %d ran and %d were handed back", h.Streamed, h.Polled, s.runs.Load(), handed)
	}
	all := jobs + 50 - int(s.runs.Load())
	take := func() (n int) {
		for {
			got, err := s.conn.Activate(s.ctx, zeebe.ActivateRequest{Type: "room.hold", Worker: "rest", MaxJobs: 500, Timeout: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			if n += len(got); len(got) == 0 {
				return n
			}
		}
	}
	free := take()
	lost := all - free
	t.Logf("of %d jobs: %d ran, %d handed back at the drain, %d were on their way and wait for the job time-out", jobs+50, s.runs.Load(), handed, lost)
	if lost > jobs*3/4 { // 64 KB of our window come back, as much in the gateway's send buffer does not; a job here is about 350 bytes
		t.Errorf("%d jobs lost until their time-out, want at most what the gateway's transport holds", lost)
	}
	s.eng.AdvanceClock(35 * time.Second)
	s.until("the rest after the time-out", func() bool { lost -= take(); return lost == 0 })
}
