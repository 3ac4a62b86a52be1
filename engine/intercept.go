package engine

import (
	"context"
	"path"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Interceptor stands between a client and one gRPC method. req is the request
// message of package pb of the Zeebe client. next runs the call: not calling it
// fails the call, calling it and returning an error loses the answer, calling
// it twice duplicates the call. The result of next is the response message; for
// ActivateJobs it is the []any of response messages, which are sent when the
// interceptor returns them. For StreamActivatedJobs next blocks until the
// stream ends and returns nil.
type Interceptor func(ctx context.Context, req any, next func(ctx context.Context) (any, error)) (any, error)

type intercepted struct {
	method string
	fn     Interceptor
}

// faults holds the installed interceptors.
type faults struct {
	log    zerolog.Logger
	mu     sync.RWMutex
	list   []*intercepted
	routes []*interceptedRoute
}

// Intercept installs fn for a gRPC method such as "CompleteJob", or for all
// with "*". The newest interceptor runs outermost. remove takes it out again;
// calls that are already inside it finish there.
func (e *Engine) Intercept(method string, fn Interceptor) (remove func()) {
	in := &intercepted{method, fn}
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	e.faults.list = append(e.faults.list, in)
	return func() {
		e.faults.mu.Lock()
		defer e.faults.mu.Unlock()
		if i := slices.Index(e.faults.list, in); i >= 0 {
			e.faults.list = slices.Delete(slices.Clone(e.faults.list), i, i+1)
		}
	}
}

func (f *faults) of(fullMethod string) []*intercepted {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if len(f.list) == 0 {
		return nil
	}
	name := path.Base(fullMethod)
	var out []*intercepted
	for _, in := range f.list {
		if in.method == "*" || in.method == name {
			out = append(out, in)
		}
	}
	return out
}

// wrap builds the chain around call, the last installed outermost.
func wrap(chain []*intercepted, req any, call func(ctx context.Context) (any, error)) func(ctx context.Context) (any, error) {
	for _, in := range chain {
		next := call
		call = func(ctx context.Context) (any, error) { return in.fn(ctx, req, next) }
	}
	return call
}

// recovered turns a panic of a call, which is a fault of the engine or of an
// interceptor, into INTERNAL: other callers go on.
func (f *faults) recovered(method string, err *error) {
	if r := recover(); r != nil {
		f.log.Error().Str("method", method).Bytes("stack", debug.Stack()).Msgf("engine: panic: %v", r)
		*err = status.Errorf(codes.Internal, "panic in %s: %v", method, r)
	}
}

func (f *faults) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	defer f.recovered(info.FullMethod, &err)
	chain := f.of(info.FullMethod)
	return wrap(chain, req, func(ctx context.Context) (any, error) { return handler(ctx, req) })(ctx)
}

// stream reads the one request of a server stream first, so that an interceptor
// sees it and can run the call again.
func (f *faults) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer f.recovered(info.FullMethod, &err)
	chain := f.of(info.FullMethod)
	if len(chain) == 0 {
		return handler(srv, ss)
	}
	var req proto.Message = &pb.StreamActivatedJobsRequest{}
	finite := path.Base(info.FullMethod) == "ActivateJobs"
	if finite {
		req = &pb.ActivateJobsRequest{}
	}
	if err := ss.RecvMsg(req); err != nil {
		return err
	}
	answer, err := wrap(chain, req, func(ctx context.Context) (any, error) {
		r := &replay{ServerStream: ss, ctx: ctx, req: req, collect: finite}
		if err := handler(srv, r); err != nil {
			return nil, err
		}
		return r.sent, nil
	})(ss.Context())
	if err != nil {
		return err
	}
	messages, _ := answer.([]any)
	for _, m := range messages {
		if err := ss.SendMsg(m); err != nil {
			return err
		}
	}
	return nil
}

// replay is a server stream whose request was already read.
type replay struct {
	grpc.ServerStream
	ctx     context.Context // a stream's context cannot be passed in another way
	req     proto.Message
	collect bool
	sent    []any
}

// Context implements grpc.ServerStream.
func (r *replay) Context() context.Context { return r.ctx }

// RecvMsg implements grpc.ServerStream.
func (r *replay) RecvMsg(m any) error {
	proto.Merge(m.(proto.Message), r.req)
	return nil
}

// SendMsg implements grpc.ServerStream.
func (r *replay) SendMsg(m any) error {
	if r.collect {
		r.sent = append(r.sent, m)
		return nil
	}
	return r.ServerStream.SendMsg(m)
}
