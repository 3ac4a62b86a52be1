package zeebe_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/vitrip/journeyman/zeebe"
)

// gateway is the wire's other end.
type gateway struct {
	pb.UnimplementedGatewayServer
	complete func(ctx context.Context, r *pb.CompleteJobRequest) error
	activate func(r *pb.ActivateJobsRequest, s pb.Gateway_ActivateJobsServer) error
	stream   func(r *pb.StreamActivatedJobsRequest, s pb.Gateway_StreamActivatedJobsServer) error
	publish  *pb.PublishMessageRequest
	fail     *pb.FailJobRequest
}

func (g *gateway) CompleteJob(ctx context.Context, r *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	return &pb.CompleteJobResponse{}, g.complete(ctx, r)
}

func (g *gateway) FailJob(_ context.Context, r *pb.FailJobRequest) (*pb.FailJobResponse, error) {
	g.fail = r
	return &pb.FailJobResponse{}, nil
}

func (g *gateway) PublishMessage(_ context.Context, r *pb.PublishMessageRequest) (*pb.PublishMessageResponse, error) {
	g.publish = r
	return &pb.PublishMessageResponse{Key: 4}, nil
}

func (g *gateway) ActivateJobs(r *pb.ActivateJobsRequest, s pb.Gateway_ActivateJobsServer) error {
	return g.activate(r, s)
}

func (g *gateway) StreamActivatedJobs(r *pb.StreamActivatedJobsRequest, s pb.Gateway_StreamActivatedJobsServer) error {
	return g.stream(r, s)
}

func (g *gateway) Topology(context.Context, *pb.TopologyRequest) (*pb.TopologyResponse, error) {
	return &pb.TopologyResponse{GatewayVersion: "8.8.0", ClusterSize: 1, Brokers: []*pb.BrokerInfo{{NodeId: 1, Partitions: []*pb.Partition{{PartitionId: 1, Role: pb.Partition_LEADER}}}}}, nil
}

func serve(t *testing.T, g *gateway, cfg zeebe.Config) *zeebe.Conn {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	s := grpc.NewServer()
	pb.RegisterGatewayServer(s, g)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(lis) }()
	cfg.Plaintext = true
	cfg.Dialer = func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }
	c, err := zeebe.Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); s.Stop(); <-done })
	return c
}

func TestConn_calls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	code := codes.OK
	g := &gateway{complete: func(_ context.Context, r *pb.CompleteJobRequest) error {
		if r.GetVariables() != `{"a":1}` {
			t.Errorf("variables %q", r.GetVariables())
		}
		return status.Error(code, "Command 'COMPLETE' rejected")
	}}
	c := serve(t, g, zeebe.Config{Cluster: "blue"})
	if c.Cluster() != "blue" {
		t.Errorf("cluster %q", c.Cluster())
	}
	for want, in := range map[zeebe.ErrorCode]codes.Code{
		zeebe.OK: codes.OK, zeebe.NotFound: codes.NotFound, zeebe.FailedPrecondition: codes.FailedPrecondition, zeebe.InvalidArgument: codes.InvalidArgument,
		zeebe.AlreadyExists: codes.AlreadyExists, zeebe.ResourceExhausted: codes.ResourceExhausted, zeebe.Unavailable: codes.Unavailable,
		zeebe.DeadlineExceeded: codes.DeadlineExceeded, zeebe.PermissionDenied: codes.PermissionDenied, zeebe.Internal: codes.Internal,
	} {
		code = in
		err := c.Complete(ctx, 1, `{"a":1}`)
		if zeebe.Code(err) != want {
			t.Errorf("%s came out as %v", in, err)
		}
		if err != nil && (status.Code(err) != in || !strings.Contains(err.Error(), "rejected")) {
			t.Errorf("%v hides the gRPC error", err)
		}
	}
	if err := c.Fail(ctx, zeebe.FailRequest{JobKey: 1, Retries: 2, Backoff: 3 * time.Second}); err != nil || g.fail.GetRetryBackOff() != 3000 {
		t.Errorf("fail: %v, back-off %d ms", err, g.fail.GetRetryBackOff())
	}
	if k, err := c.PublishMessage(ctx, zeebe.Message{Name: "n", ID: "m", TTL: time.Hour}); err != nil || k != 4 || g.publish.GetTimeToLive() != 3600_000 {
		t.Errorf("publish: %d, %v, TTL %d ms", k, err, g.publish.GetTimeToLive())
	}
	if top, err := c.Topology(ctx); err != nil || top.GatewayVersion != "8.8.0" || top.Brokers[0].Leads != 1 {
		t.Errorf("topology: %+v, %v", top, err)
	}
	if err := c.CancelInstance(ctx, 1); zeebe.Code(err) != zeebe.Unimplemented {
		t.Errorf("cancel: %v", err)
	}
}

func TestConn_activate(t *testing.T) {
	t.Parallel()
	g := &gateway{activate: func(r *pb.ActivateJobsRequest, s pb.Gateway_ActivateJobsServer) error {
		switch r.GetType() {
		case "none":
			if r.GetRequestTimeout() != -1 {
				t.Errorf("request time-out %d, want -1: 0 would be the gateway's long poll", r.GetRequestTimeout())
			}
			return nil
		case "some":
			_ = s.Send(&pb.ActivateJobsResponse{Jobs: []*pb.ActivatedJob{{Key: 1, Variables: "{}"}, {Key: 2}}})
			return status.Error(codes.Unavailable, "then the broker went")
		default:
			<-s.Context().Done()
			return s.Context().Err()
		}
	}}
	c := serve(t, g, zeebe.Config{})
	if jobs, err := c.Activate(context.Background(), zeebe.ActivateRequest{Type: "none"}); err != nil || len(jobs) != 0 {
		t.Errorf("none: %v, %v", jobs, err)
	}
	if jobs, err := c.Activate(context.Background(), zeebe.ActivateRequest{Type: "some", Wait: time.Second}); zeebe.Code(err) != zeebe.Unavailable || len(jobs) != 2 {
		t.Errorf("some: %v, %v; the jobs are ours although the stream broke", jobs, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := c.Activate(ctx, zeebe.ActivateRequest{Type: "wait", Wait: time.Minute})
		done <- err
	}()
	cancel()
	select {
	case err := <-done:
		if zeebe.Code(err) != zeebe.Canceled {
			t.Errorf("cancelled: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a long poll outlives its context")
	}
}

// TestConn_jobRequests: a poll and a stream ask for the same variables, tenants, worker and time-out; none named is none on the wire,
// which means all variables and the default tenant to a gateway.
func TestConn_jobRequests(t *testing.T) {
	t.Parallel()
	var got proto.Message
	g := &gateway{
		activate: func(r *pb.ActivateJobsRequest, _ pb.Gateway_ActivateJobsServer) error { got = r; return nil },
		stream: func(r *pb.StreamActivatedJobsRequest, _ pb.Gateway_StreamActivatedJobsServer) error {
			got = r
			return nil
		},
	}
	c := serve(t, g, zeebe.Config{})
	names, tenants := []string{"businessKey", "room"}, []string{"blue", "<default>"}
	for _, tt := range []struct {
		req    zeebe.ActivateRequest
		poll   *pb.ActivateJobsRequest
		stream *pb.StreamActivatedJobsRequest
	}{{
		zeebe.ActivateRequest{Type: "room.hold", Worker: "w", MaxJobs: 7, Timeout: 30 * time.Second, Wait: time.Second, Variables: names, Tenants: tenants},
		&pb.ActivateJobsRequest{Type: "room.hold", Worker: "w", MaxJobsToActivate: 7, Timeout: 30_000, RequestTimeout: 1000, FetchVariable: names, TenantIds: tenants},
		&pb.StreamActivatedJobsRequest{Type: "room.hold", Worker: "w", Timeout: 30_000, FetchVariable: names, TenantIds: tenants},
	}, {
		zeebe.ActivateRequest{Type: "all", MaxJobs: 1, Timeout: time.Second, Wait: time.Second},
		&pb.ActivateJobsRequest{Type: "all", MaxJobsToActivate: 1, Timeout: 1000, RequestTimeout: 1000},
		&pb.StreamActivatedJobsRequest{Type: "all", Timeout: 1000},
	}} {
		if _, err := c.Activate(t.Context(), tt.req); err != nil || !proto.Equal(got, tt.poll) {
			t.Errorf("poll: %v\nasked for %v\nwant      %v", err, got, tt.poll)
		}
		s, err := c.StreamJobs(t.Context(), tt.req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) || !proto.Equal(got, tt.stream) {
			t.Errorf("stream: %v\nasked for %v\nwant      %v", err, got, tt.stream)
		}
	}
}

// TestOAuth: callers that need a token at once share one request; a refused token is replaced once.
func TestOAuth(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	hold := make(chan struct{})
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		<-hold
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "audience=zeebe") || !strings.Contains(string(body), "grant_type=client_credentials") {
			t.Errorf("token request %s", body)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "T" + string(rune('0'+n)), "expires_in": 300})
	}))
	defer idp.Close()
	src, err := zeebe.OAuth(zeebe.OAuthConfig{URL: idp.URL, ClientID: "id", ClientSecret: "s3cret", Audience: "zeebe"})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{complete: func(ctx context.Context, _ *pb.CompleteJobRequest) error {
		md, _ := metadata.FromIncomingContext(ctx)
		if a := md.Get("authorization"); len(a) != 1 || a[0] != "Bearer T2" {
			return status.Error(codes.Unauthenticated, "expired")
		}
		return nil
	}}
	c := serve(t, g, zeebe.Config{Token: src.Token, Rejected: src.Rejected, TokenInClear: true})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := c.Complete(context.Background(), 1, ""); err != nil {
				t.Error(err)
			}
		})
	}
	close(hold)
	wg.Wait()
	if n := asked.Load(); n != 2 {
		t.Errorf("%d token requests for 16 callers and one refused token, want 2", n)
	}

	down, err := zeebe.OAuth(zeebe.OAuthConfig{URL: idp.URL + "/%zz", ClientID: "id"})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a bad configuration is taken: %v, %v", down, err)
	}
}

func TestDial_refuses(t *testing.T) {
	t.Parallel()
	_, err := zeebe.Dial(zeebe.Config{Plaintext: true, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Token: func(context.Context) (string, error) { return "", nil }, KeepAlive: time.Second})
	for _, want := range []string{"address", "plaintext", "token", "keep-alive 1s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
