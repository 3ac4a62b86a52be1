package worker_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/zeebe"
)

// proxy is a gateway before the engine's: it may change jobs on their way and refuse callers.
type proxy struct {
	pb.UnimplementedGatewayServer
	to    pb.GatewayClient
	edit  func(*pb.ActivatedJob)      // nil = none
	admit func(context.Context) error // nil = everybody
	polls atomic.Int64
	opens atomic.Int64
}

// behind puts a proxy before the engine and gives a connection to it.
func (s *site) behind(p *proxy, cfg zeebe.Config) *zeebe.Conn {
	s.t.Helper()
	cc, err := grpc.NewClient(s.eng.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	p.to = pb.NewGatewayClient(cc)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	check := func(ctx context.Context) error {
		if p.admit == nil {
			return nil
		}
		return p.admit(ctx)
	}
	srv := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := check(ctx); err != nil {
				return nil, err
			}
			return next(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if strings.HasSuffix(info.FullMethod, "/ActivateJobs") {
				p.polls.Add(1)
			} else {
				p.opens.Add(1)
			}
			if err := check(ss.Context()); err != nil {
				return err
			}
			return next(srv, ss)
		}),
	)
	pb.RegisterGatewayServer(srv, p)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(lis) }()
	s.t.Cleanup(func() { srv.Stop(); <-done; _ = cc.Close() })
	cfg.Address, cfg.Plaintext, cfg.Cluster = lis.Addr().String(), true, s.conn.Cluster()
	conn, err := zeebe.Dial(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	s.conn2 = conn
	return conn
}

func (p *proxy) change(j *pb.ActivatedJob) *pb.ActivatedJob {
	if p.edit != nil {
		p.edit(j)
	}
	return j
}

func (p *proxy) ActivateJobs(r *pb.ActivateJobsRequest, out pb.Gateway_ActivateJobsServer) error {
	in, err := p.to.ActivateJobs(out.Context(), r)
	for err == nil {
		var m *pb.ActivateJobsResponse
		if m, err = in.Recv(); err == nil {
			for _, j := range m.GetJobs() {
				p.change(j)
			}
			err = out.Send(m)
		}
	}
	if status.Code(err) == codes.Unknown { // io.EOF
		return nil
	}
	return err
}

func (p *proxy) StreamActivatedJobs(r *pb.StreamActivatedJobsRequest, out pb.Gateway_StreamActivatedJobsServer) error {
	in, err := p.to.StreamActivatedJobs(out.Context(), r)
	for err == nil {
		var j *pb.ActivatedJob
		if j, err = in.Recv(); err == nil {
			err = out.Send(p.change(j))
		}
	}
	return err
}

func (p *proxy) CompleteJob(ctx context.Context, r *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	return p.to.CompleteJob(ctx, r)
}

func (p *proxy) FailJob(ctx context.Context, r *pb.FailJobRequest) (*pb.FailJobResponse, error) {
	return p.to.FailJob(ctx, r)
}

func (p *proxy) ThrowError(ctx context.Context, r *pb.ThrowErrorRequest) (*pb.ThrowErrorResponse, error) {
	return p.to.ThrowError(ctx, r)
}

func (p *proxy) UpdateJobTimeout(ctx context.Context, r *pb.UpdateJobTimeoutRequest) (*pb.UpdateJobTimeoutResponse, error) {
	return p.to.UpdateJobTimeout(ctx, r)
}

func (p *proxy) Topology(ctx context.Context, r *pb.TopologyRequest) (*pb.TopologyResponse, error) {
	return p.to.Topology(ctx, r)
}
