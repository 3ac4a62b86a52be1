package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

// retriesTold notes the retries that FailJob leaves each job.
func retriesTold(s *site) func() (n int, burned int) {
	var mu sync.Mutex
	told := map[int64]int32{}
	s.eng.Intercept("FailJob", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		r := req.(*pb.FailJobRequest) //nolint:forcetypeassert // this method's request
		mu.Lock()
		told[r.GetJobKey()] = r.GetRetries()
		mu.Unlock()
		return next(ctx)
	})
	return func() (n, burned int) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range told {
			if r < 3 {
				burned++
			}
		}
		return len(told), burned
	}
}

// gated is a mux whose handler holds its slot until the gate opens.
func (s *site) gated(gate <-chan struct{}, opts ...worker.Option) *worker.Mux {
	mux := worker.NewMux()
	mux.Handle("room.hold", worker.Transactional(func(ctx context.Context, _ *worker.Tx, _ worker.Job[hold]) (map[string]any, error) {
		s.runs.Add(1)
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}, worker.NoEffect()), opts...)
	return mux
}

// TestDrain_underLoad: while jobs keep coming by poll and by stream the worker stops. What runs is finished, everything else is
// free for others at once, with its retries. Only what the gateway sends within the one round trip of the stream's cancel can
// wait for its time-out; the protocol has no way to end a stream without that.
func TestDrain_underLoad(t *testing.T) {
	t.Parallel()
	for _, pollOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("poll only %v", pollOnly), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			told := retriesTold(s)
			gate := make(chan struct{})
			for i := range 60 {
				s.create(fmt.Sprint("before", i))
			}
			w, stop := s.runUntil(s.gated(gate), worker.Config{MaxJobsActive: 20, Concurrency: 3, PollWait: time.Second, PollOnly: pollOnly})
			s.until("full", func() bool { return s.runs.Load() == 3 && w.Active() >= 20 })
			made := 60
			tick := time.NewTicker(3 * time.Millisecond)
			defer tick.Stop()
			halt, over := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(over)
				for {
					select {
					case <-halt:
						return
					case <-tick.C:
						s.create(fmt.Sprint("k", made))
						made++
					}
				}
			}()
			ended := make(chan struct{})
			go func() { defer close(ended); stop() }()
			s.until("17 handed back while three run", func() bool { n, _ := told(); return n >= 17 })
			close(gate)
			<-ended
			close(halt)
			<-over
			free, ran := s.takeAll("room.hold"), int(s.runs.Load())
			n, burned := told()
			t.Logf("%d jobs: %d ran, %d handed back, %d free", made, ran, n, free)
			lost := made - ran - free
			if ran != 3 || burned > 0 || lost > n/10 || pollOnly && lost > 0 {
				t.Errorf("%d jobs: %d ran, want the 3 that had begun; %d free, want all others; %d lost a retry", made, ran, free, burned)
			}
			s.eng.AdvanceClock(time.Minute)
			s.until("what was on its way", func() bool { lost -= s.takeAll("room.hold"); return lost == 0 })
		})
	}
}

// TestBreaker_handsBack: when a type's jobs fail in masses, what was pushed and what waits for a slot is free for others at once;
// only those that ran have lost a retry.
func TestBreaker_handsBack(t *testing.T) {
	t.Parallel()
	const jobs = 300
	s := newSite(t)
	told := retriesTold(s)
	gate := make(chan struct{})
	mux := worker.NewMux()
	mux.Handle("room.hold", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[hold]) (map[string]any, error) {
		s.runs.Add(1)
		<-gate
		return nil, worker.Retryable(errors.New("down"), worker.After(time.Hour))
	}, worker.NoEffect()))
	w := s.run(mux, worker.Config{MaxJobsActive: 40, Concurrency: 2, PollWait: time.Second, BreakerBackoff: outcome.Backoff{Min: time.Hour, Max: time.Hour, Factor: 1, Floor: time.Hour}})
	s.until("stream up", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
	for i := range jobs {
		s.create(fmt.Sprint("k", i))
	}
	s.until("full", func() bool { return s.runs.Load() == 2 && w.Active() >= 40 })
	close(gate)
	s.until("slowed down", func() bool { return streamOf(w, "room.hold").Slowed })
	s.until("nothing held", func() bool { return w.Active() == 0 && streamOf(w, "room.hold").Stream == worker.StreamPaused })
	free, ran := s.takeAll("room.hold"), int(s.runs.Load())
	n, burned := told()
	t.Logf("%d ran, %d told, %d lost a retry, %d free", ran, n, burned, free)
	if ran > 14 { // eight open the breaker, two at a time; more would have waited for their slot all the same
		t.Errorf("%d jobs ran, want those that waited for a slot handed back", ran)
	}
	if burned != ran || free != jobs-ran {
		t.Errorf("%d of %d jobs ran: %d lost a retry, want these; %d are free, want all others", ran, jobs, burned, free)
	}
}

// TestStream_full: a worker that does not get through what is pushed gives it back after a third of the job time-out and polls alone;
// when polls find nothing the stream opens again. No job runs out its time.
func TestStream_full(t *testing.T) {
	t.Parallel()
	const jobs = 200
	s := newSite(t)
	told := retriesTold(s)
	gate := make(chan struct{})
	w := s.run(s.gated(gate), worker.Config{MaxJobsActive: 4, Concurrency: 2, PollWait: 500 * time.Millisecond, JobTimeout: 6 * time.Second, HandlerTimeout: 5 * time.Second, LockTimeout: time.Second})
	s.until("stream up", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
	for i := range jobs {
		s.create(fmt.Sprint("k", i))
	}
	s.until("full", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamFull })
	s.until("given back", func() bool { n, _ := told(); return n >= jobs/2 && w.Active() <= 4 })
	if _, burned := told(); burned > 0 {
		t.Errorf("%d jobs lost a retry", burned)
	}
	close(gate)
	s.until("all done", func() bool { return s.runs.Load() >= jobs })
	s.until("up again", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
	if h := streamOf(w, "room.hold"); int(h.Polled) < jobs-8 {
		t.Errorf("%d of %d jobs came by poll", h.Polled, jobs)
	}
}

// TestHandBack_noRetries: a job without retries is not failed, which would be an incident; its time-out ends instead.
func TestHandBack_noRetries(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := retriesTold(s)
	gate := make(chan struct{})
	s.eng.Intercept("ActivateJobs", func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		r, err := next(ctx)
		all, _ := r.([]any)
		if s.runs.Load() == 0 {
			return r, err
		}
		for _, m := range all {
			for _, j := range m.(*pb.ActivateJobsResponse).GetJobs() { //nolint:forcetypeassert // this method's response
				j.Retries = 0
			}
		}
		return r, err
	})
	w, stop := s.runUntil(s.gated(gate), worker.Config{MaxJobsActive: 4, Concurrency: 1, PollWait: time.Second, PollOnly: true, JobTimeout: time.Hour})
	s.create("a")
	s.until("one runs", func() bool { return s.runs.Load() == 1 })
	s.create("b")
	s.until("the other waits", func() bool { return streamOf(w, "room.hold").Polled == 2 })
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	s.until("handed back", func() bool { return w.Health().Types[0].HandedBack == 1 })
	close(gate)
	<-ended
	if n, _ := told(); n != 0 {
		t.Errorf("FailJob was called for %d jobs", n)
	}
	s.eng.AdvanceClock(2 * time.Second)
	s.until("free", func() bool { return s.takeAll("room.hold") == 1 })
}
