package engine_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/vitrip/journeyman/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timed = `<?xml version="1.0"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="a"/>
<bpmn:serviceTask id="a"><bpmn:extensionElements><zeebe:taskDefinition type="work"/></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:boundaryEvent id="b" attachedToRef="a"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>
<bpmn:sequenceFlow id="f2" sourceRef="a" targetRef="e"/><bpmn:sequenceFlow id="f3" sourceRef="b" targetRef="late"/>
<bpmn:serviceTask id="late"><bpmn:extensionElements><zeebe:taskDefinition type="late"/></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:sequenceFlow id="f4" sourceRef="late" targetRef="e"/><bpmn:endEvent id="e"/></bpmn:process></bpmn:definitions>`

func dial(t *testing.T, addr string, opts ...grpc.DialOption) pb.GatewayClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return pb.NewGatewayClient(conn)
}

func begin(t *testing.T) (*engine.Engine, pb.GatewayClient) {
	t.Helper()
	e, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	c := dial(t, e.Addr())
	deploy(t, c)
	return e, c
}

func deploy(t *testing.T, c pb.GatewayClient) {
	t.Helper()
	if _, err := c.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "p.bpmn", Content: []byte(timed)}}}); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, c pb.GatewayClient) int64 {
	t.Helper()
	r, err := c.CreateProcessInstance(t.Context(), &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetProcessInstanceKey()
}

func activate(t *testing.T, c pb.GatewayClient, jobType string, wait int64) ([]*pb.ActivatedJob, error) {
	t.Helper()
	s, err := c.ActivateJobs(t.Context(), &pb.ActivateJobsRequest{Type: jobType, Timeout: 60_000, MaxJobsToActivate: 10, RequestTimeout: wait})
	if err != nil {
		return nil, err
	}
	var jobs []*pb.ActivatedJob
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, m.GetJobs()...)
	}
}

func TestConfig_AllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	lis := bufconn.Listen(1)
	_, err := engine.Start(engine.Config{Addr: "x", Listener: lis, RESTAddr: "y", RESTListener: lis, Compat: "7"})
	for _, want := range []string{"Addr and Listener", "RESTAddr and RESTListener", `Compat is "7"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
	if _, err := engine.Start(engine.Config{Addr: "256.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "listen for gRPC") {
		t.Errorf("got %v", err)
	}
}

func TestIncarnationsDiffer(t *testing.T) {
	t.Parallel()
	a, ca := begin(t)
	b, cb := begin(t)
	if a.Incarnation() == b.Incarnation() || a.Incarnation() == "" {
		t.Errorf("incarnations %q and %q, want two different ones", a.Incarnation(), b.Incarnation())
	}
	if create(t, ca) == create(t, cb) {
		t.Error("two states gave the same key")
	}
}

func TestAdvanceClock(t *testing.T) {
	t.Parallel()
	e, c := begin(t)
	create(t, c)
	before := e.Now()
	if err := e.AdvanceClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	if d := e.Now().Sub(before); d < time.Hour || d > time.Hour+time.Minute {
		t.Errorf("the clock moved by %v", d)
	}
	jobs, err := activate(t, c, "late", -1)
	if err != nil || len(jobs) != 1 {
		t.Errorf("got %v, %v, want the job behind the timer", jobs, err)
	}
}

func TestIntercept_FailBeforeExecution(t *testing.T) {
	t.Parallel()
	e, c := begin(t)
	remove := e.Intercept("CreateProcessInstance", func(context.Context, any, func(context.Context) (any, error)) (any, error) {
		return nil, status.Error(codes.Unavailable, "cut")
	})
	_, err := c.CreateProcessInstance(t.Context(), &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1})
	if status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	if jobs, err := activate(t, c, "work", -1); err != nil || len(jobs) != 0 {
		t.Errorf("got %v, %v, want nothing executed", jobs, err)
	}
	remove()
	create(t, c)
}

func TestIntercept_AnswerLost(t *testing.T) {
	t.Parallel()
	e, c := begin(t)
	create(t, c)
	jobs, err := activate(t, c, "work", 1000)
	if err != nil {
		t.Fatal(err)
	}
	lost := make(chan any, 1)
	remove := e.Intercept("CompleteJob", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		if _, err := next(ctx); err != nil {
			return nil, err
		}
		lost <- req
		return nil, status.Error(codes.Unavailable, "answer lost")
	})
	if _, err := c.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: jobs[0].GetKey()}); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	if req, ok := (<-lost).(*pb.CompleteJobRequest); !ok || req.GetJobKey() != jobs[0].GetKey() {
		t.Errorf("the interceptor saw %v", req)
	}
	remove()
	if _, err := c.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: jobs[0].GetKey()}); status.Code(err) != codes.NotFound {
		t.Errorf("got %v, want NOT_FOUND: the first call was executed", err)
	}
}

func TestIntercept_Duplicate(t *testing.T) {
	t.Parallel()
	e, c := begin(t)
	e.Intercept("CreateProcessInstance", func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		if _, err := next(ctx); err != nil {
			return nil, err
		}
		return next(ctx)
	})
	create(t, c)
	if jobs, err := activate(t, c, "work", -1); err != nil || len(jobs) != 2 {
		t.Errorf("got %d jobs, %v, want 2", len(jobs), err)
	}
}

func TestIntercept_ActivatedJobsLost(t *testing.T) {
	t.Parallel()
	e, c := begin(t)
	create(t, c)
	remove := e.Intercept("ActivateJobs", func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		if _, err := next(ctx); err != nil {
			return nil, err
		}
		return nil, status.Error(codes.Unavailable, "answer lost")
	})
	if _, err := activate(t, c, "work", -1); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
	remove()
	if jobs, err := activate(t, c, "work", -1); err != nil || len(jobs) != 0 {
		t.Errorf("got %v, %v: the lost job must stay locked", jobs, err)
	}
	if err := e.AdvanceClock(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if jobs, err := activate(t, c, "work", -1); err != nil || len(jobs) != 1 {
		t.Errorf("got %v, %v, want the job after its time-out", jobs, err)
	}
}

func TestIntercept_PassThroughAndOrder(t *testing.T) {
	t.Parallel()
	e, c := begin(t)
	var order []string
	note := func(name string) engine.Interceptor {
		return func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
			order = append(order, name)
			return next(ctx)
		}
	}
	e.Intercept("*", note("first"))
	e.Intercept("ActivateJobs", note("second"))
	create(t, c)
	if jobs, err := activate(t, c, "work", -1); err != nil || len(jobs) != 1 {
		t.Errorf("got %v, %v", jobs, err)
	}
	if got, want := strings.Join(order, " "), "first second first"; got != want {
		t.Errorf("order: got %q, want %q", got, want)
	}
}

func TestIntercept_PanicIsInternal(t *testing.T) {
	t.Parallel()
	e, c := begin(t)
	remove := e.Intercept("*", func(context.Context, any, func(context.Context) (any, error)) (any, error) { panic("oh") })
	if _, err := c.Topology(t.Context(), &pb.TopologyRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("unary: got %v, want INTERNAL", err)
	}
	if _, err := activate(t, c, "work", -1); status.Code(err) != codes.Internal {
		t.Errorf("stream: got %v, want INTERNAL", err)
	}
	remove()
	create(t, c)
}

func TestClose_EndsPollsAndStreams(t *testing.T) {
	t.Parallel()
	e, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, e.Addr())
	s, err := c.StreamActivatedJobs(t.Context(), &pb.StreamActivatedJobsRequest{Type: "work", Timeout: 1000})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.ActivateJobs(t.Context(), &pb.ActivateJobsRequest{Type: "work", Timeout: 1000, MaxJobsToActivate: 1, RequestTimeout: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err == nil {
		t.Error("the stream goes on after Close")
	}
	if _, err := p.Recv(); err == nil {
		t.Error("the poll got jobs after Close")
	}
	if err := e.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// A whole hour passes inside a synctest bubble, over an in-memory listener.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1 << 16)
		e, err := engine.Start(engine.Config{Listener: lis})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := grpc.NewClient("passthrough:engine", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		c := pb.NewGatewayClient(conn)
		deploy(t, c)
		create(t, c)
		start := time.Now()
		jobs, err := activate(t, c, "late", (2 * time.Hour).Milliseconds())
		if err != nil || len(jobs) != 1 {
			t.Errorf("got %v, %v, want the job behind the timer", jobs, err)
		}
		if d := time.Since(start); d < time.Hour || d > time.Hour+time.Second {
			t.Errorf("waited %v of bubble time, want an hour", d)
		}
		if err := errors.Join(conn.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestCompat85_RefusesWhatIsNewer(t *testing.T) {
	t.Parallel()
	const join = `<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" id="d" targetNamespace="x"><bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="s"/>
<bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="fork"/><bpmn:parallelGateway id="fork"/><bpmn:sequenceFlow id="f2" sourceRef="fork" targetRef="j"/><bpmn:sequenceFlow id="f3" sourceRef="fork" targetRef="j"/>
<bpmn:inclusiveGateway id="j"/><bpmn:sequenceFlow id="f4" sourceRef="j" targetRef="e"/><bpmn:endEvent id="e"/></bpmn:process></bpmn:definitions>`
	for compat, want := range map[engine.Compat]codes.Code{engine.Compat85: codes.InvalidArgument, engine.Compat88: codes.OK} {
		e, err := engine.Start(engine.Config{Compat: compat})
		if err != nil {
			t.Fatal(err)
		}
		_, err = dial(t, e.Addr()).DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "p.bpmn", Content: []byte(join)}}})
		if status.Code(err) != want {
			t.Errorf("compat %s: got %v, want %v", compat, err, want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCompressedRequests(t *testing.T) {
	t.Parallel()
	_, c := begin(t)
	if _, err := c.Topology(t.Context(), &pb.TopologyRequest{}, grpc.UseCompressor("gzip")); err != nil {
		t.Errorf("gzip: %v", err)
	}
}
