package worker_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// TestAnswers_bounded: a job counts until it is answered (spec W10). While the engine takes no answer the worker takes no more jobs than
// it may hold, polled or pushed; when it does, all end.
func TestAnswers_bounded(t *testing.T) {
	t.Parallel()
	const jobs, most = 50, 8
	s := newSite(t)
	conn, err := zeebe.Dial(zeebe.Config{Address: s.eng.Addr(), Plaintext: true, Cluster: s.conn.Cluster(), Timeout: time.Minute}) // an answer waits that long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.conn2 = conn
	gate := make(chan struct{})
	var told atomic.Int64
	s.eng.Intercept("CompleteJob", func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		told.Add(1)
		select {
		case <-gate:
			return next(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	var keys []int64
	add := func(n int) {
		for range n {
			keys = append(keys, s.create(fmt.Sprint("k", len(keys))))
		}
	}
	add(jobs / 2)
	w := s.start(nil, func(c *worker.Config) { c.MaxJobsActive = most })
	top := 0
	look := func(ok bool) bool { top = max(top, w.Active()); return ok }
	s.until("the stream is up", func() bool { return look(streamOf(w, "room.hold").Stream == worker.StreamUp) })
	add(jobs - jobs/2)
	s.until("answers wait", func() bool { return look(told.Load() >= most-1 && s.runs.Load() >= most-1) }) // an open stream may keep a place for what comes next
	since := time.Now()
	s.until("a second has passed", func() bool { return look(time.Since(since) > time.Second) })
	if n := s.runs.Load(); n > most {
		t.Errorf("%d handlers ran while no answer was taken, want at most %d", n, most)
	}
	close(gate)
	for _, k := range keys {
		s.until("completed", func() bool {
			p, err := s.rest.ProcessInstance(s.ctx, k)
			return look(err == nil && p.State == "COMPLETED")
		})
	}
	if top > most {
		t.Errorf("%d jobs active, want at most %d", top, most)
	}
	if n := s.count(`SELECT count(*) FROM room`); n != jobs || s.runs.Load() != jobs {
		t.Errorf("%d rooms after %d runs, want %d of each", n, s.runs.Load(), jobs)
	}
}

// holdAt holds everybody who comes to a crash point for an operation until the test lets them go.
func holdAt(t *testing.T, point, operationID string) (reached <-chan struct{}, release func()) {
	t.Helper()
	r, gate := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	remove := crash.Hook(point, func(id string) {
		if id == operationID {
			first.Do(func() { close(r) })
			<-gate
		}
	})
	release = func() { last.Do(func() { close(gate) }) }
	t.Cleanup(func() { release(); remove() })
	return r, release
}

// TestAnswers_afterTheDeadline: the job's time is over, here and at the engine, before its recorded answer is sent. It is sent all the
// same and the engine takes it (path rule 6): the job need not be given out again.
func TestAnswers_afterTheDeadline(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{"success": nil, "refusal": worker.BusinessError("SOLD_OUT", "none left")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if _, err := s.conn.Deploy(s.ctx, zeebe.Resource{Name: "one.bpmn", Content: []byte(caughtModel)}); err != nil {
				t.Fatal(err)
			}
			s.eng.Intercept("UpdateJobTimeout", func(context.Context, any, func(context.Context) (any, error)) (any, error) {
				return nil, status.Error(codes.Unavailable, "no leader")
			})
			var job atomic.Int64
			var given atomic.Int64
			again := make(chan struct{})
			s.eng.Intercept("ActivateJobs", func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
				if job.Load() != 0 { // no poll gets through while its answer is held
					select {
					case <-again:
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				r, err := next(ctx)
				all, _ := r.([]any)
				for _, m := range all {
					for _, j := range m.(*pb.ActivateJobsResponse).GetJobs() { //nolint:forcetypeassert // this method's response
						given.Add(1)
						job.Store(j.GetKey())
					}
				}
				return r, err
			})
			key := "late-" + name
			reached, release := holdAt(t, "worker.answer.before", key+":reserve")
			var deadline atomic.Pointer[time.Time]
			s.start(func(_ context.Context, _ *worker.Tx, j worker.Job[hold]) (map[string]any, error) {
				deadline.Store(&j.Deadline)
				return nil, end
			}, func(c *worker.Config) {
				c.PollOnly, c.JobTimeout, c.HandlerTimeout, c.LockTimeout = true, shortTime, shortTime/2, shortTime/8
			})
			k := s.create(key)
			s.reached("the answer", reached)
			if err := s.eng.AdvanceClock(shortTime); err != nil {
				t.Fatal(err)
			}
			s.until("the job's time is over", func() bool {
				state, err := s.rest.JobState(s.ctx, job.Load())
				return err == nil && state == "TIMED_OUT" && time.Now().After(*deadline.Load())
			})
			release()
			s.instanceIs(k, "COMPLETED")
			s.until("no answer left", func() bool { return s.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
			close(again)
			s.instanceIs(s.create("next-"+name), "COMPLETED") // polls come through again
			if given.Load() != 2 || s.runs.Load() != 2 {
				t.Errorf("%d activations and %d runs, want one of each for both jobs", given.Load(), s.runs.Load())
			}
			class, rooms := "SUCCESS", 2
			if end != nil {
				class, rooms = "BUSINESS_ERROR", 0
			}
			if n := s.count(`SELECT count(*) FROM journeyman.operation WHERE class = '` + class + `'`); n != 2 || s.count(`SELECT count(*) FROM room`) != rooms {
				t.Errorf("%d operations ended %s, want both; %d rooms, want %d", n, class, s.count(`SELECT count(*) FROM room`), rooms)
			}
		})
	}
}
