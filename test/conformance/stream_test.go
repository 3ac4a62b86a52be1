package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// streaming opens a stream and returns once it is known to be open: a job arrived on it.
func (z *cluster) streaming(ctx context.Context) pb.Gateway_StreamActivatedJobsClient {
	z.t.Helper()
	s, err := z.StreamActivatedJobs(ctx, &pb.StreamActivatedJobsRequest{Type: "work", Worker: "stream", Timeout: 60_000})
	if err != nil {
		z.t.Fatal(err)
	}
	first := make(chan *pb.ActivatedJob, 1)
	go func() {
		j, err := s.Recv()
		if err != nil {
			z.t.Errorf("stream: %v", err)
		}
		first <- j
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		z.create("one", "")
		select {
		case j := <-first:
			z.complete(j, "")
			return s
		case <-tick.C:
		}
	}
}

func TestStream_SlowClientDoesNotTakeEverything(t *testing.T) {
	t.Parallel()
	z := open(t, "job-streaming: a client that does not read gets no more; the rest stays for polls")
	z.deploy("one.bpmn", oneTask("one"))
	ctx, cancel := context.WithCancel(z.ctx)
	defer cancel()
	z.streaming(ctx)
	const n = 200
	big := `{"x":"` + strings.Repeat("x", 20_000) + `"}`
	for range n {
		z.create("one", big)
	}
	// Nobody receives: what does not fit the connection stays for polls.
	got := 0
	for {
		jobs := z.activate("work", 32, 200*time.Millisecond)
		if len(jobs) == 0 {
			break
		}
		got += len(jobs)
	}
	if got < n/2 {
		t.Errorf("polls got %d of %d jobs, want most of them", got, n)
	}
	z.alive()
}

func TestStream_PushesAgainAfterFailureTimeoutAndResolve(t *testing.T) {
	t.Parallel()
	z := open(t, "job-streaming: a job is pushed again after a failure, a time-out and a resolved incident")
	z.needClock()
	z.deploy("one.bpmn", oneTask("one"))
	ctx, cancel := context.WithCancel(z.ctx)
	defer cancel()
	s := z.streaming(ctx)
	k := z.create("one", "")
	next := func() *pb.ActivatedJob {
		t.Helper()
		for {
			j, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if j.GetProcessInstanceKey() == k {
				return j
			}
		}
	}
	j := next()
	z.fail(j, 2, "again")
	if again := next(); again.GetKey() != j.GetKey() || again.GetRetries() != 2 {
		t.Errorf("after a failure: %v", again)
	}
	z.advance(2 * time.Minute)
	next()
	z.fail(j, 0, "stop")
	if _, err := z.UpdateJobRetries(z.ctx, &pb.UpdateJobRetriesRequest{JobKey: j.GetKey(), Retries: 1}); err != nil {
		t.Fatal(err)
	}
	z.resolve(z.incident(k, "JOB_NO_RETRIES", "stop"))
	z.complete(next(), "")
	z.state(k, "COMPLETED")
}

func TestStream_ClosedStreamGetsNothingMore(t *testing.T) {
	t.Parallel()
	z := open(t, "job-streaming: a closed stream gets no more jobs")
	z.deploy("one.bpmn", oneTask("one"))
	ctx, cancel := context.WithCancel(z.ctx)
	s := z.streaming(ctx)
	cancel()
	for {
		if _, err := s.Recv(); err != nil {
			break
		}
	}
	// The engine hears of the cancel a moment later; from then on new jobs are for polls.
	z.eventually(func() bool {
		k := z.create("one", "")
		for _, j := range z.activate("work", 100, -time.Millisecond) {
			if j.GetProcessInstanceKey() == k {
				return true
			}
		}
		return false
	}, func() string { return "new jobs still go to the closed stream" })
	k := z.create("one", "")
	z.work("work", "")
	z.state(k, "COMPLETED")
}
