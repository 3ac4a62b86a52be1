package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

var errLost = errors.New("enginetest: the answer is lost")

// LoseAnswers runs the next n gRPC calls of a method, such as "CompleteJob",
// and loses their answers: the worker sees an error although the engine did it.
func (e *Env) LoseAnswers(method string, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	e.engine.Intercept(method, func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		out, err := next(ctx)
		if left.Add(-1) >= 0 && err == nil {
			return nil, errLost
		}
		return out, err
	})
}

// Duplicate runs the next n gRPC calls of a method twice, as a network that repeats does; the first answer counts.
func (e *Env) Duplicate(method string, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	e.engine.Intercept(method, func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		out, err := next(ctx)
		if left.Add(-1) >= 0 {
			_, _ = next(ctx)
		}
		return out, err
	})
}

// record keeps the messages that workers publish over gRPC.
func (e *Env) record() {
	e.engine.Intercept("PublishMessage", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		out, err := next(ctx)
		if r, ok := req.(*pb.PublishMessageRequest); ok && err == nil {
			m := Message{Name: r.GetName(), CorrelationKey: r.GetCorrelationKey(), ID: r.GetMessageId(), TTL: time.Duration(r.GetTimeToLive()) * time.Millisecond}
			if r.GetVariables() != "" {
				m.Variables = json.RawMessage(r.GetVariables())
			}
			e.mu.Lock()
			e.published = append(e.published, m)
			e.mu.Unlock()
		}
		return out, err
	})
}
