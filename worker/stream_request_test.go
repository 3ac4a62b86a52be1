package worker_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

type party struct {
	Adults int `json:"adults"`
}

// wide has a field of each kind that says something about which variables are fetched.
type wide struct {
	party                                 // its fields are variables
	Room    string                        `json:"room"`
	Guests  []party                       `json:"guests"`
	Address struct{ Street, City string } `json:"address"` // one variable, whatever is in it
	Note    *string                       `json:"note,omitempty"`
	Plain   bool                          // by its Go name
	Derived string                        `json:"-"`
	secret  string                        //nolint:unused // not exported, not fetched
}

// TestRequests: a poll and a stream ask for the variables that the handler's input type declares and for the correlation variables, a
// compensation's for the operation that it undoes; both name the configured tenants.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	type asked struct {
		polled, streamed *pb.StreamActivatedJobsRequest // what the two requests have in common
	}
	var mu sync.Mutex
	seen := map[string]*asked{}
	note := func(jobType string, f func(a *asked)) {
		mu.Lock()
		defer mu.Unlock()
		if seen[jobType] == nil {
			seen[jobType] = &asked{}
		}
		f(seen[jobType])
	}
	s.eng.Intercept("ActivateJobs", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		r, _ := req.(*pb.ActivateJobsRequest)
		note(r.GetType(), func(a *asked) {
			a.polled = &pb.StreamActivatedJobsRequest{Type: r.GetType(), Worker: r.GetWorker(), Timeout: r.GetTimeout(), FetchVariable: r.GetFetchVariable(), TenantIds: r.GetTenantIds()}
		})
		r.TenantIds = nil // the engine has one tenant and refuses others
		return next(ctx)
	})
	s.eng.Intercept("StreamActivatedJobs", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		r, _ := req.(*pb.StreamActivatedJobsRequest)
		note(r.GetType(), func(a *asked) {
			a.streamed = &pb.StreamActivatedJobsRequest{Type: r.GetType(), Worker: r.GetWorker(), Timeout: r.GetTimeout(), FetchVariable: r.GetFetchVariable(), TenantIds: r.GetTenantIds()}
		})
		r.TenantIds = nil
		return next(ctx)
	})

	mux := worker.NewMux()
	mux.Handle("tx", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[wide]) (map[string]any, error) { return nil, nil },
		worker.CompensatedByTx("tx.undo", func(context.Context, *worker.Tx, worker.UndoOf[wide, map[string]any]) error { return nil })))
	mux.Handle("batch", worker.Batch(10, func(_ context.Context, _ *worker.Tx, jobs []worker.Job[stay]) ([]worker.BatchEnd[map[string]any], error) {
		return make([]worker.BatchEnd[map[string]any], len(jobs)), nil
	}, worker.NoEffect()))
	mux.Handle("external", worker.External(worker.Remote[hold, map[string]any, map[string]any]{
		Call: func(context.Context, worker.Call[hold]) (map[string]any, error) { return nil, nil },
	}, worker.NoEffect(), worker.KeyValidFor(time.Hour)))
	mux.Handle("nothing", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[struct{}]) (map[string]any, error) { return nil, nil }, worker.NoEffect()))
	tenants := []string{"blue", "<default>"}
	s.run(mux, worker.Config{MaxJobsActive: 16, Concurrency: 2, PollWait: time.Second, Name: "desk", JobTimeout: 40 * time.Second, Tenants: tenants})

	correlation := []string{"businessKey", "operationId", "correlationId", "traceparent", "traceId", "tenant", "sagaId", "actor", "httpIdempotencyKey", "processInstanceKey"}
	for jobType, names := range map[string][]string{
		"tx": {"adults", "room", "guests", "address", "note", "Plain"}, "tx.undo": {"forwardOperationId"}, "batch": {"room", "nights", "note"}, "external": {"room"}, "nothing": nil,
	} {
		var a asked
		s.until("a poll and a stream of "+jobType, func() bool {
			note(jobType, func(now *asked) { a = *now })
			return a.polled != nil && a.streamed != nil
		})
		want := slices.Sorted(slices.Values(append(slices.Clone(correlation), names...)))
		for how, r := range map[string]*pb.StreamActivatedJobsRequest{"poll": a.polled, "stream": a.streamed} {
			if got := slices.Sorted(slices.Values(r.GetFetchVariable())); !slices.Equal(got, want) {
				t.Errorf("%s of %s fetches %q\nwant %q", how, jobType, got, want)
			}
			if !slices.Equal(r.GetTenantIds(), tenants) || r.GetWorker() != "desk" || r.GetTimeout() != 40_000 {
				t.Errorf("%s of %s: tenants %q, worker %q, time-out %d ms; want %q, desk, 40000", how, jobType, r.GetTenantIds(), r.GetWorker(), r.GetTimeout(), tenants)
			}
		}
	}
}

// TestWorker_sockets: a worker of fifty job types, each streamed and polled, has two sockets: one for calls and one for streams
// (path rule 27).
func TestWorker_sockets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var sockets atomic.Int64
	conn, err := zeebe.Dial(zeebe.Config{
		Address: s.eng.Addr(), Plaintext: true, Cluster: s.conn.Cluster(),
		Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			sockets.Add(1)
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.conn2 = conn
	const types = 50
	mux := worker.NewMux()
	for i := range types {
		jobType := "room.hold"
		if i > 0 {
			jobType = fmt.Sprint("type-", i)
		}
		mux.Handle(jobType, (&clerk{shape: "transactional"}).handler())
	}
	w := s.run(mux, worker.Config{MaxJobsActive: 2 * types, Concurrency: 2, PollWait: time.Second})
	s.until("fifty streams", func() bool {
		up := 0
		for _, h := range w.Health().Types {
			if h.Stream == worker.StreamUp {
				up++
			}
		}
		return up == types
	})
	s.instanceIs(s.createOf("one", "a", stayVars), "COMPLETED")
	if n := sockets.Load(); n > 2 {
		t.Errorf("%d sockets for %d job types, want at most 2", n, types)
	}
}
