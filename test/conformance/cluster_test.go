package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine"
)

// patience is how long a condition may take to come true.
const patience = 10 * time.Second

// cluster is what a test talks to.
type cluster struct {
	pb.GatewayClient
	t      testing.TB
	ctx    context.Context
	rest   string
	http   *http.Client
	engine *engine.Engine // nil against a real cluster
	ns     namespace
	dial   []grpc.DialOption
	addr   string
}

// open starts an engine for the case, or connects to the cluster named by the
// environment. line is what the case pins, see [pins].
func open(tb testing.TB, line string) *cluster {
	tb.Helper()
	pins(tb, line)
	addr, rest := os.Getenv("ZEEBE_TEST_ADDRESS"), strings.TrimSuffix(os.Getenv("ZEEBE_TEST_REST_ADDRESS"), "/")
	z := &cluster{t: tb, ns: newNamespace()}
	if addr != "" && rest == "" {
		tb.Fatal("ZEEBE_TEST_ADDRESS is set, ZEEBE_TEST_REST_ADDRESS is not: want both")
	}
	if addr == "" {
		e, err := engine.Start(engine.Config{})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := e.Close(); err != nil {
				tb.Errorf("close the engine: %v", err)
			}
		})
		z.engine, addr, rest = e, e.Addr(), "http://"+e.RESTAddr()
	}
	z.addr, z.dial = addr, append(z.ns.dialOptions(), secure(z.engine != nil)...)
	conn, err := grpc.NewClient(addr, z.dial...)
	if err != nil {
		tb.Fatal(err)
	}
	transport := &http.Transport{}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := conn.Close(); err != nil {
			tb.Errorf("close the connection: %v", err)
		}
	})
	z.GatewayClient, z.rest, z.http = pb.NewGatewayClient(conn), rest, &http.Client{Transport: namedTransport{transport, z.ns, late(tb)}}
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	tb.Cleanup(cancel)
	z.ctx = ctx
	return z
}

// late reads ZEEBE_TEST_LATE.
func late(tb testing.TB) *lateness {
	tb.Helper()
	text := os.Getenv("ZEEBE_TEST_LATE")
	if text == "" {
		return nil
	}
	by, err := time.ParseDuration(text)
	if err != nil {
		tb.Fatalf("ZEEBE_TEST_LATE: %v", err)
	}
	return &lateness{by: by, first: map[string]time.Time{}}
}

// secure are the options for a cluster's TLS and authorization.
func secure(own bool) []grpc.DialOption {
	if own {
		return []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	creds := insecure.NewCredentials()
	if os.Getenv("ZEEBE_TEST_TLS") == "true" {
		creds = credentials.NewTLS(nil)
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithPerRPCCredentials(authorization(os.Getenv("ZEEBE_TEST_AUTHORIZATION")))}
}

// authorization is the header of every call; empty: none.
type authorization string

func (a authorization) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if a == "" {
		return nil, nil
	}
	return map[string]string{"authorization": string(a)}, nil
}

func (authorization) RequireTransportSecurity() bool { return false }

// advance moves the engine's clock.
func (z *cluster) advance(d time.Duration) {
	z.t.Helper()
	if z.engine == nil {
		z.t.Fatal("the case moves the clock without needClock")
	}
	z.engine.AdvanceClock(d)
}

// needClock leaves the case out where the clock cannot be moved.
func (z *cluster) needClock() {
	z.t.Helper()
	z.engineOnly("moves the clock")
}

func (z *cluster) deploy(name, xml string) *pb.DeployResourceResponse {
	z.t.Helper()
	r, err := z.DeployResource(z.ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: name, Content: []byte(xml)}}})
	if err != nil {
		z.t.Fatalf("deploy %s: %v", name, err)
	}
	return r
}

func (z *cluster) create(id, vars string) int64 {
	z.t.Helper()
	r, err := z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: id, Version: -1, Variables: vars})
	if err != nil {
		z.t.Fatalf("create %s: %v", id, err)
	}
	return r.GetProcessInstanceKey()
}

func (z *cluster) activate(jobType string, n int32, wait time.Duration) []*pb.ActivatedJob {
	z.t.Helper()
	s, err := z.ActivateJobs(z.ctx, &pb.ActivateJobsRequest{
		Type: jobType, Worker: "conformance", Timeout: 60_000, MaxJobsToActivate: n, RequestTimeout: wait.Milliseconds(),
	})
	if err != nil {
		z.t.Fatalf("activate %s: %v", jobType, err)
	}
	var jobs []*pb.ActivatedJob
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return jobs
		}
		if err != nil {
			z.t.Fatalf("activate %s: %v", jobType, err)
		}
		jobs = append(jobs, m.GetJobs()...)
	}
}

// job takes one job of the type, which must come.
func (z *cluster) job(jobType string) *pb.ActivatedJob {
	z.t.Helper()
	jobs := z.activate(jobType, 1, patience)
	if len(jobs) != 1 {
		z.t.Fatalf("activate %s: got %d jobs, want 1", jobType, len(jobs))
	}
	return jobs[0]
}

// jobs takes n jobs of the type, which must come, in the order of their keys.
func (z *cluster) jobs(jobType string, n int) []*pb.ActivatedJob {
	z.t.Helper()
	var jobs []*pb.ActivatedJob
	for len(jobs) < n {
		jobs = append(jobs, z.job(jobType))
	}
	slices.SortFunc(jobs, func(a, b *pb.ActivatedJob) int { return cmp.Compare(a.GetKey(), b.GetKey()) })
	return jobs
}

// none asserts that no job of the type can be activated now.
func (z *cluster) none(jobType string) {
	z.t.Helper()
	if jobs := z.activate(jobType, 1, -time.Millisecond); len(jobs) != 0 {
		z.t.Fatalf("activate %s: got job %d of element %s, want none", jobType, jobs[0].GetKey(), jobs[0].GetElementId())
	}
}

func (z *cluster) complete(j *pb.ActivatedJob, vars string) {
	z.t.Helper()
	if _, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey(), Variables: vars}); err != nil {
		z.t.Fatalf("complete %s: %v", j.GetElementId(), err)
	}
}

// work takes and completes one job of the type.
func (z *cluster) work(jobType, vars string) *pb.ActivatedJob {
	z.t.Helper()
	j := z.job(jobType)
	z.complete(j, vars)
	return j
}

func (z *cluster) throw(j *pb.ActivatedJob, code, vars string) {
	z.t.Helper()
	if _, err := z.ThrowError(z.ctx, &pb.ThrowErrorRequest{JobKey: j.GetKey(), ErrorCode: code, Variables: vars}); err != nil {
		z.t.Fatalf("throw %s at %s: %v", code, j.GetElementId(), err)
	}
}

func (z *cluster) fail(j *pb.ActivatedJob, retries int32, message string) {
	z.t.Helper()
	if _, err := z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: j.GetKey(), Retries: retries, ErrorMessage: message}); err != nil {
		z.t.Fatalf("fail %s: %v", j.GetElementId(), err)
	}
}

func (z *cluster) publish(name, key, id string, ttl time.Duration, vars string) {
	z.t.Helper()
	if _, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{
		Name: name, CorrelationKey: key, MessageId: id, TimeToLive: ttl.Milliseconds(), Variables: vars,
	}); err != nil {
		z.t.Fatalf("publish %s: %v", name, err)
	}
}

// refused asserts code and a part of the message of a failed call.
func (z *cluster) refused(err error, code codes.Code, text string) {
	z.t.Helper()
	if status.Code(err) != code {
		z.t.Fatalf("got status %v (%v), want %v", status.Code(err), err, code)
	}
	if !strings.Contains(status.Convert(err).Message(), text) {
		z.t.Fatalf("got message %q, want it to hold %q", status.Convert(err).Message(), text)
	}
}

// call runs one REST call and decodes the answer into out, unless nil; it returns the status.
func (z *cluster) call(method, path string, body, out any) int {
	z.t.Helper()
	var r io.Reader
	if body != nil {
		if text, ok := body.(string); ok {
			r = strings.NewReader(text)
		} else {
			b, err := json.Marshal(body)
			if err != nil {
				z.t.Fatal(err)
			}
			r = bytes.NewReader(b)
		}
	}
	req, err := http.NewRequestWithContext(z.ctx, method, z.rest+"/v2"+path, r)
	if err != nil {
		z.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	status, data := z.roundTrip(req)
	if out != nil && len(data) > 0 {
		if err := json.Unmarshal(data, out); err != nil {
			z.t.Fatalf("%s %s: answer %q: %v", method, path, data, err)
		}
	}
	return status
}

// do sends a request with the cluster's authorization.
func (z *cluster) do(req *http.Request) *http.Response {
	z.t.Helper()
	if a := os.Getenv("ZEEBE_TEST_AUTHORIZATION"); a != "" && z.engine == nil {
		req.Header.Set("Authorization", a)
	}
	res, err := z.http.Do(req)
	if err != nil {
		z.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return res
}

func (z *cluster) roundTrip(req *http.Request) (int, []byte) {
	z.t.Helper()
	res := z.do(req)
	defer res.Body.Close() //nolint:errcheck // read to the end below
	data, err := io.ReadAll(res.Body)
	if err != nil {
		z.t.Fatal(err)
	}
	return res.StatusCode, data
}

// send runs a prepared request and decodes the answer.
func (z *cluster) send(req *http.Request) (int, item) {
	z.t.Helper()
	status, data := z.roundTrip(req)
	var out item
	if err := json.Unmarshal(data, &out); err != nil {
		z.t.Fatalf("%s %s: answer %q: %v", req.Method, req.URL, data, err)
	}
	return status, out
}

type item = map[string]any

// search runs a REST search and returns the items.
func (z *cluster) search(what string, filter item) []item {
	z.t.Helper()
	var out struct{ Items []item }
	if got := z.call("POST", "/"+what+"/search", item{"filter": filter}, &out); got != 200 {
		z.t.Fatalf("search %s: status %d", what, got)
	}
	return out.Items
}

func str(key int64) string { return fmt.Sprint(key) }

// state is the instance's state; it waits until it is want or patience ends.
func (z *cluster) state(instance int64, want string) {
	z.t.Helper()
	var got any
	z.eventually(func() bool {
		var out item
		z.call("GET", "/process-instances/"+str(instance), nil, &out)
		got = out["state"]
		return got == want
	}, func() string { return fmt.Sprintf("instance %d: state %v, want %s", instance, got, want) })
}

// element waits until the newest instance of the element is in the state.
func (z *cluster) element(instance int64, id, want string) item {
	z.t.Helper()
	var last item
	z.eventually(func() bool {
		items := z.search("element-instances", item{"processInstanceKey": str(instance), "elementId": id})
		if len(items) == 0 {
			return false
		}
		last = slices.MaxFunc(items, func(a, b item) int {
			return cmp.Compare(keyOf(a, "elementInstanceKey"), keyOf(b, "elementInstanceKey"))
		})
		return last["state"] == want
	}, func() string { return fmt.Sprintf("element %s: %v, want state %s", id, last, want) })
	return last
}

// absent asserts that the element was never entered.
func (z *cluster) absent(instance int64, id string) {
	z.t.Helper()
	if items := z.search("element-instances", item{"processInstanceKey": str(instance), "elementId": id}); len(items) != 0 {
		z.t.Fatalf("element %s: got %v, want it never entered", id, items)
	}
}

// variable waits until the variable of the scope has the JSON value; "" means it must not exist.
func (z *cluster) variable(scope int64, name, want string) {
	z.t.Helper()
	got := ""
	z.eventually(func() bool {
		items := z.search("variables", item{"scopeKey": str(scope), "name": name})
		got = ""
		if len(items) > 0 {
			got = fmt.Sprint(items[0]["value"])
		}
		return got == want
	}, func() string { return fmt.Sprintf("variable %s of scope %d: got %q, want %q", name, scope, got, want) })
}

// incident waits for exactly one active incident of the instance, of the type and
// with the text in its message, and returns it.
func (z *cluster) incident(instance int64, errorType, text string) item {
	z.t.Helper()
	var items []item
	z.eventually(func() bool {
		items = z.search("incidents", item{"processInstanceKey": str(instance), "state": "ACTIVE"})
		return len(items) == 1 && items[0]["errorType"] == errorType && strings.Contains(fmt.Sprint(items[0]["errorMessage"]), text)
	}, func() string { return fmt.Sprintf("incidents: %v, want one %s with %q", items, errorType, text) })
	return items[0]
}

// nextIncident waits for the incident that follows one that was resolved: with a key of its own.
func (z *cluster) nextIncident(instance int64, before item, errorType, text string) item {
	z.t.Helper()
	var last item
	z.eventually(func() bool {
		last = z.incident(instance, errorType, text)
		return last["incidentKey"] != before["incidentKey"]
	}, func() string { return fmt.Sprintf("incident %v again, want one with a new key", last) })
	return last
}

// found searches until exactly n items come.
func (z *cluster) found(what string, filter item, n int) []item {
	z.t.Helper()
	var items []item
	z.eventually(func() bool {
		items = z.search(what, filter)
		return len(items) == n
	}, func() string { return fmt.Sprintf("search %s %v: got %v, want %d", what, filter, items, n) })
	return items
}

func (z *cluster) noIncident(instance int64) {
	z.t.Helper()
	var items []item
	z.eventually(func() bool {
		items = z.search("incidents", item{"processInstanceKey": str(instance), "state": "ACTIVE"})
		return len(items) == 0
	}, func() string { return fmt.Sprintf("incidents: %v, want none", items) })
}

func keyOf(i item, name string) int64 {
	var n int64
	if _, err := fmt.Sscan(fmt.Sprint(i[name]), &n); err != nil {
		return 0
	}
	return n
}

// resolve resolves an incident over gRPC.
func (z *cluster) resolve(inc item) {
	z.t.Helper()
	if _, err := z.ResolveIncident(z.ctx, &pb.ResolveIncidentRequest{IncidentKey: keyOf(inc, "incidentKey")}); err != nil {
		z.t.Fatalf("resolve: %v", err)
	}
}

// eventually polls until ok or patience ends; a real cluster answers searches late.
func (z *cluster) eventually(ok func() bool, describe func() string) {
	z.t.Helper()
	deadline := time.Now().Add(patience)
	if z.engine != nil {
		deadline = time.Now().Add(4 * time.Second)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			z.t.Fatal(describe())
		}
		<-tick.C
	}
}

const hour = time.Hour

func (z *cluster) setVariables(scope int64, vars string) {
	z.t.Helper()
	if _, err := z.SetVariables(z.ctx, &pb.SetVariablesRequest{ElementInstanceKey: scope, Variables: vars}); err != nil {
		z.t.Fatalf("set variables: %v", err)
	}
}

func (z *cluster) cancel(instance int64) {
	z.t.Helper()
	if _, err := z.CancelProcessInstance(z.ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: instance}); err != nil {
		z.t.Fatalf("cancel: %v", err)
	}
}

// refuseDeploy asserts that a model is refused with INVALID_ARGUMENT and that the text names what is wrong.
func (z *cluster) refuseDeploy(xml string, texts ...string) {
	z.t.Helper()
	_, err := z.DeployResource(z.ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "p.bpmn", Content: []byte(xml)}}})
	z.refused(err, codes.InvalidArgument, "Command 'CREATE' rejected with code 'INVALID_ARGUMENT': Expected to deploy new resources, but encountered the following errors:")
	for _, text := range texts {
		z.refused(err, codes.InvalidArgument, text)
	}
}

// with is the same cluster for a subtest.
func (z *cluster) with(tb testing.TB) *cluster {
	tb.Helper()
	sub := *z
	sub.t = tb
	return &sub
}

// problem runs a REST call that must answer a problem document with the status and a part of the detail.
func (z *cluster) problem(method, path string, body any, status int, detail string) {
	z.t.Helper()
	var p item
	if got := z.call(method, path, body, &p); got != status {
		z.t.Fatalf("%s %s: status %d (%v), want %d", method, path, got, p, status)
	}
	if text, _ := p["detail"].(string); !strings.Contains(text, detail) {
		z.t.Fatalf("%s %s: detail %q, want it to hold %q", method, path, text, detail)
	}
	if p["status"] != float64(status) || p["type"] != "about:blank" || p["title"] == "" || p["instance"] != "/v2"+path {
		z.t.Errorf("%s %s: problem document %v", method, path, p)
	}
}
