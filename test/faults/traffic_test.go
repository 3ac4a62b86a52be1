package faults

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine"
)

// traffic stands between workers and engine: it counts what moves, knows the operation of every job, and puts faults in.
type traffic struct {
	moved atomic.Int64
	// told is asked before an answer reaches the engine, nil = nobody (INV16).
	told atomic.Pointer[func(operation string)]

	mu     sync.Mutex
	jobs   map[int64]string // operation id by job key
	faults []*wire
}

// wire is a fault of the line between worker and engine, for the calls about one operation.
type wire struct {
	method    string // "ActivateJobs" means: of the batch, this operation's job
	operation string
	times     int // how many calls it holds for; -1 = all
	do        func(ctx context.Context, next func(context.Context) (any, error)) (any, error)
	drop      bool          // ActivateJobs: the job is lost on its way
	twice     bool          // ActivateJobs: the job is handed out twice
	hit       chan struct{} // closed at the first
	once      sync.Once
}

// put installs a fault. Its hit channel is closed when it first holds.
func (t *traffic) put(w *wire) *wire {
	w.hit = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, w)
	return w
}

// lift ends a fault, nil for none.
func (t *traffic) lift(w *wire) {
	if w == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w.times = 0
}

// take gives the fault for a call, if there is one, and uses it up.
func (t *traffic) take(method, operation string) *wire {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.faults {
		if w.method != method || w.operation != operation || w.times == 0 {
			continue
		}
		if w.times > 0 {
			w.times--
		}
		w.once.Do(func() { close(w.hit) })
		return w
	}
	return nil
}

// watch puts itself on the line. Jobs that are pushed cannot be looked at: without streams the engine has none to offer, and
// workers poll.
func watch(e *engine.Engine, streams bool) *traffic {
	t := &traffic{jobs: map[int64]string{}}
	if !streams {
		e.Intercept("StreamActivatedJobs", func(context.Context, any, func(context.Context) (any, error)) (any, error) {
			return nil, status.Error(codes.Unimplemented, "unknown method StreamActivatedJobs")
		})
	}
	e.Intercept("ActivateJobs", func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		res, err := next(ctx)
		if err != nil {
			return res, err
		}
		return t.activated(res), nil
	})
	for _, method := range []string{"CompleteJob", "FailJob", "ThrowError", "UpdateJobTimeout"} {
		e.Intercept(method, func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
			if method != "UpdateJobTimeout" {
				t.moved.Add(1)
			}
			key := req.(interface{ GetJobKey() int64 }).GetJobKey()
			t.mu.Lock()
			operation := t.jobs[key]
			t.mu.Unlock()
			if told := t.told.Load(); told != nil && method == "CompleteJob" && operation != "" {
				(*told)(operation)
			}
			if w := t.take(method, operation); w != nil {
				return w.do(ctx, next)
			}
			return next(ctx)
		})
	}
	e.Intercept("PublishMessage", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		t.moved.Add(1)
		if w := t.take("PublishMessage", req.(*pb.PublishMessageRequest).GetMessageId()); w != nil {
			return w.do(ctx, next)
		}
		return next(ctx)
	})
	return t
}

// activated learns jobs and loses or doubles those that a fault names.
func (t *traffic) activated(res any) any {
	messages, _ := res.([]any)
	for _, m := range messages {
		r, ok := m.(*pb.ActivateJobsResponse)
		if !ok || len(r.GetJobs()) == 0 {
			continue
		}
		t.moved.Add(int64(len(r.GetJobs())))
		var kept []*pb.ActivatedJob
		for _, j := range r.GetJobs() {
			var v struct {
				OperationID string `json:"operationId"`
			}
			_ = json.Unmarshal([]byte(j.GetVariables()), &v) // a job without one is nobody's here
			t.mu.Lock()
			t.jobs[j.GetKey()] = v.OperationID
			t.mu.Unlock()
			w := t.take("ActivateJobs", v.OperationID)
			switch {
			case w == nil:
				kept = append(kept, j)
			case w.twice:
				kept = append(kept, j, j)
			}
		}
		r.Jobs = kept
	}
	return messages
}
