package zeebe_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"

	"github.com/vitrip/journeyman/zeebe"
)

// TestConn_sockets: fifty job types, each with a stream and a long poll that are open at the same time, and calls besides, take two
// sockets. By design there is one for calls and one for streams: a stream that nobody reads must not hold up a call (path rule 27).
func TestConn_sockets(t *testing.T) {
	t.Parallel()
	const types = 50
	var streams, polls sync.WaitGroup // until each stream has given a job and each poll has reached the gateway
	streams.Add(types)
	polls.Add(types)
	g := &gateway{
		complete: func(context.Context, *pb.CompleteJobRequest) error { return nil },
		activate: func(_ *pb.ActivateJobsRequest, s pb.Gateway_ActivateJobsServer) error {
			polls.Done()
			<-s.Context().Done()
			return s.Context().Err()
		},
		stream: func(r *pb.StreamActivatedJobsRequest, s pb.Gateway_StreamActivatedJobsServer) error {
			if err := s.Send(&pb.ActivatedJob{Key: 1, Type: r.GetType()}); err != nil {
				return err
			}
			<-s.Context().Done()
			return s.Context().Err()
		},
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	pb.RegisterGatewayServer(srv, g)
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(lis) }()
	t.Cleanup(func() { srv.Stop(); <-served })
	var sockets atomic.Int64
	c, err := zeebe.Dial(zeebe.Config{Address: lis.Addr().String(), Plaintext: true, Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
		sockets.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if n := sockets.Load(); n != 0 {
		t.Errorf("%d sockets before the first call", n)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var open sync.WaitGroup
	for i := range types {
		req := zeebe.ActivateRequest{Type: fmt.Sprint("type-", i), MaxJobs: 1, Timeout: time.Minute, Wait: time.Minute}
		open.Go(func() {
			s, err := c.StreamJobs(ctx, req)
			if err != nil {
				t.Errorf("stream of %s: %v", req.Type, err)
				return
			}
			if j, err := s.Recv(); err != nil || j.Type != req.Type {
				t.Errorf("stream of %s gave a job of %q: %v", req.Type, j.Type, err)
			}
			streams.Done()
			_, _ = s.Recv() // until the end
		})
		open.Go(func() { _, _ = c.Activate(ctx, req) })
	}
	all := make(chan struct{})
	go func() { defer close(all); streams.Wait(); polls.Wait() }()
	select {
	case <-all:
	case <-ctx.Done():
		t.Fatal("not all streams and polls were opened")
	}
	for i := range types {
		if err := c.Complete(ctx, int64(i), ""); err != nil {
			t.Error(err)
		}
	}
	if n := sockets.Load(); n > 2 {
		t.Errorf("%d job types, each streamed and polled, took %d sockets; want at most 2", types, n)
	}
	cancel()
	open.Wait()
}
