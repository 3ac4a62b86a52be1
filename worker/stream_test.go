package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// front is a gateway that passes calls on to the engine and closes its connections (GOAWAY) when they are a second old.
type front struct {
	pb.UnimplementedGatewayServer
	to    pb.GatewayClient
	opens atomic.Int64
	fail  func(n int64) error // of the n-th stream
}

func (f *front) CompleteJob(ctx context.Context, r *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	return f.to.CompleteJob(ctx, r)
}

func (f *front) FailJob(ctx context.Context, r *pb.FailJobRequest) (*pb.FailJobResponse, error) {
	return f.to.FailJob(ctx, r)
}

func (f *front) ActivateJobs(r *pb.ActivateJobsRequest, out pb.Gateway_ActivateJobsServer) error {
	in, err := f.to.ActivateJobs(out.Context(), r)
	for err == nil {
		var m *pb.ActivateJobsResponse
		if m, err = in.Recv(); err == nil {
			err = out.Send(m)
		}
	}
	if status.Code(err) == codes.Unknown { // io.EOF
		return nil
	}
	return err
}

func (f *front) StreamActivatedJobs(r *pb.StreamActivatedJobsRequest, out pb.Gateway_StreamActivatedJobsServer) error {
	if err := f.fail(f.opens.Add(1)); err != nil {
		return err
	}
	in, err := f.to.StreamActivatedJobs(out.Context(), r)
	for err == nil {
		var m *pb.ActivatedJob
		if m, err = in.Recv(); err == nil {
			err = out.Send(m)
		}
	}
	return err
}

// newFront serves f and gives its address.
func newFront(s *site, f *front) string {
	s.t.Helper()
	cc, err := grpc.NewClient(s.eng.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	f.to = pb.NewGatewayClient(cc)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: time.Second, MaxConnectionAgeGrace: 200 * time.Millisecond}))
	pb.RegisterGatewayServer(srv, f)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(lis) }()
	s.t.Cleanup(func() { srv.Stop(); <-done; _ = cc.Close() })
	return lis.Addr().String()
}

func streamOf(w *worker.Worker, jobType string) worker.TypeHealth {
	for _, t := range w.Health().Types {
		if t.Type == jobType {
			return t
		}
	}
	return worker.TypeHealth{}
}

func quickPolls(c *worker.Config) {
	c.PollBackoff = outcome.Backoff{Min: 50 * time.Millisecond, Max: 300 * time.Millisecond, Factor: 2}
}

func TestStream_pushes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.create("backlog") // a stream brings only what becomes activatable later
	w := s.start(nil, nil)
	s.instanceIs(before, "COMPLETED")
	s.until("stream up", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
	for i := range 10 {
		s.instanceIs(s.create(fmt.Sprint("k", i)), "COMPLETED")
	}
	if h := streamOf(w, "room.hold"); h.Streamed == 0 || h.Polled == 0 || h.Streamed+h.Polled != 11 {
		t.Errorf("streamed %d, polled %d, want both and 11 in all", h.Streamed, h.Polled)
	}
}

func TestStream_unsupported(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.eng.Intercept("StreamActivatedJobs", func(context.Context, any, func(context.Context) (any, error)) (any, error) {
		return nil, status.Error(codes.Unimplemented, "unknown method StreamActivatedJobs")
	})
	w := s.start(nil, nil)
	s.instanceIs(s.create("a"), "COMPLETED")
	s.until("unsupported", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUnsupported })
	s.instanceIs(s.create("b"), "COMPLETED")
	if h := streamOf(w, "room.hold"); h.Streamed != 0 || h.StreamOpens > 1 {
		t.Errorf("health %+v", h)
	}
}

func TestStream_pollOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var opens atomic.Int64
	s.eng.Intercept("StreamActivatedJobs", func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		opens.Add(1)
		return next(ctx)
	})
	mux := worker.NewMux()
	for _, jt := range []string{"room.hold", "other"} {
		f := func(context.Context, *worker.Tx, worker.Job[hold]) (map[string]any, error) { return nil, nil }
		if jt == "room.hold" {
			mux.Handle(jt, worker.Transactional(f, worker.NoEffect()), worker.PollOnly())
		} else {
			mux.Handle(jt, worker.Transactional(f, worker.NoEffect()))
		}
	}
	w := s.run(mux, worker.Config{MaxJobsActive: 8, Concurrency: 2, PollWait: time.Second})
	s.until("the other type streams", func() bool { return streamOf(w, "other").Stream == worker.StreamUp && opens.Load() == 1 })
	s.instanceIs(s.create("a"), "COMPLETED")
	if h := streamOf(w, "room.hold"); h.Stream != worker.StreamOff || h.Polled != 1 || opens.Load() != 1 {
		t.Errorf("health %+v, %d streams opened", h, opens.Load())
	}
}

// TestStream_reopens: GOAWAY once a second, streams refused as UNAVAILABLE and UNAUTHENTICATED, and credentials that fail before
// anything is sent. Every way out leads to the next try, visibly, and no job waits for it.
func TestStream_reopens(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	f := &front{fail: func(n int64) error {
		switch n {
		case 2:
			return status.Error(codes.Unavailable, "test")
		case 3:
			return status.Error(codes.Unauthenticated, "test")
		}
		return nil
	}}
	addr := newFront(s, f)
	var broken atomic.Int64
	conn, err := zeebe.Dial(zeebe.Config{
		Address: addr, Plaintext: true, TokenInClear: true, Cluster: s.conn.Cluster(),
		Token: func(context.Context) (string, error) {
			if f.opens.Load() == 3 && broken.Add(1) <= 3 {
				return "", errors.New("the credentials provider failed")
			}
			return "t", nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.conn2 = conn
	w := s.start(nil, func(c *worker.Config) {
		quickPolls(c)
		c.JobTimeout, c.HandlerTimeout, c.LockTimeout = 4*time.Second, 3*time.Second, time.Second // for what a closing connection swallows
	})
	down := make(chan struct{})
	var once sync.Once
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if len(w.Health().StreamsDown()) > 0 && streamOf(w, "room.hold").StreamOpens > 0 {
					once.Do(func() { close(down) })
				}
			case <-stop:
				return
			}
		}
	}()
	for i := 0; f.opens.Load() < 6; i++ {
		s.instanceIs(s.create(fmt.Sprint("k", i)), "COMPLETED")
	}
	select {
	case <-down:
	default:
		t.Error("health never showed the stream down")
	}
	s.until("up again", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
	if h := streamOf(w, "room.hold"); h.StreamError == "" || broken.Load() == 0 {
		t.Errorf("health %+v, credentials failed %d times", h, broken.Load())
	}
}

// TestStream_silent: the peer goes silent without closing anything. Keep-alive finds it.
func TestStream_silent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var mute atomic.Bool
	var conns atomic.Int64
	conn, err := zeebe.Dial(zeebe.Config{
		Address: s.eng.Addr(), Plaintext: true, Cluster: s.conn.Cluster(), KeepAlive: 10 * time.Second, KeepAliveTimeout: time.Second,
		Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			conns.Add(1)
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return &muteConn{Conn: c, mute: &mute, gone: make(chan struct{})}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.conn2 = conn
	w := s.start(nil, quickPolls)
	s.until("stream up", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
	s.instanceIs(s.create("a"), "COMPLETED")
	before := conns.Load()
	mute.Store(true)
	since := time.Now()
	s.within(25*time.Second, "noticed", func() bool { return conns.Load() > before && streamOf(w, "room.hold").Stream != worker.StreamUp })
	t.Logf("a silent peer was noticed after %s", time.Since(since).Round(time.Second))
	mute.Store(false)
	s.within(25*time.Second, "up again", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
	s.instanceIs(s.create("b"), "COMPLETED")
}

// muteConn is a connection whose peer falls silent: what comes is held back for ever once mute was seen.
type muteConn struct {
	net.Conn
	mute *atomic.Bool
	once sync.Once
	gone chan struct{}
}

func (c *muteConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.mute.Load() {
		<-c.gone
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *muteConn) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}
