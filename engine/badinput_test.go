package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine"
)

// bounded runs fn and asserts that all it allocated, the client's side included,
// is at most total MB, and that at most 16 MB of it stay. Then the engine must still work.
func (s *site) bounded(total uint64, fn func()) {
	s.t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	fn()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > total {
		s.t.Errorf("allocated %d MB, want at most %d", got, total)
	}
	if after.HeapAlloc > before.HeapAlloc+16<<20 {
		s.t.Errorf("%d MB more than before are kept, want at most 16", (after.HeapAlloc-before.HeapAlloc)>>20)
	}
	s.deploy("alive.bpmn", bpmnModel(chain("alive", service("living", "alive"))))
	k := s.start("alive")
	s.work("alive")
	s.state(k, "COMPLETED")
}

func (s *site) code(err error, want codes.Code, text string) {
	s.t.Helper()
	if got := status.Code(err); got != want || !strings.Contains(status.Convert(err).Message(), text) {
		s.t.Errorf("got %v, want %v and %q", clipped(err), want, text)
	}
}

func clipped(err error) string {
	const most = 300
	if text := fmt.Sprint(err); len(text) > most {
		return text[:most] + "..."
	} else {
		return text
	}
}

// upload deploys over REST.
func (s *site) upload(content string) (int, string) {
	s.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("resources", "m.bpmn")
	if err == nil {
		_, err = io.WriteString(part, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.e.RESTAddr()+"/v2/deployments", &body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// bomb is a model whose entities would grow tenfold in each of its levels.
func bomb(levels int) string {
	b := `<?xml version="1.0"?><!DOCTYPE z [<!ENTITY e0 "aaaaaaaaaa">`
	for i := 1; i <= levels; i++ {
		b += fmt.Sprintf(`<!ENTITY e%d %q>`, i, strings.Repeat(fmt.Sprintf("&e%d;", i-1), 10))
	}
	return b + fmt.Sprintf(`]><bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" id="d" targetNamespace="x"><bpmn:process id="p" name="&e%d;" isExecutable="true"><bpmn:startEvent id="s"/></bpmn:process></bpmn:definitions>`, levels)
}

func TestBadInput_Models(t *testing.T) {
	s := open(t, engine.Config{})
	deep := strings.Repeat(`<bpmn:subProcess id="x">`, 50_000)
	for name, c := range map[string]struct {
		model string
		total uint64 // MB
	}{
		"XML bomb":                  {bomb(9), 32},
		"quadratic XML bomb":        {strings.Replace(bomb(0), "&e0;", strings.Repeat("&e0;", 50_000), 1), 64},
		"deep nesting":              {bpmnModel(deep), 256},
		"deep nesting, closed":      {bpmnModel(deep + strings.Repeat(`</bpmn:subProcess>`, 50_000)), 256},
		"declared UTF-16":           {`<?xml version="1.0" encoding="UTF-16"?>` + bpmnModel()[21:], 32},
		"declared ISO-8859-1":       {`<?xml version="1.0" encoding="ISO-8859-1"?>` + bpmnModel()[21:], 32},
		"UTF-16 with its mark":      {"\xff\xfe<\x00?\x00x\x00m\x00l\x00", 32},
		"bytes that are no UTF-8":   {bpmnModel(chain("p", service("\xff\xfe", "a"))), 32},
		"nothing":                   {"", 32},
		"expression of parentheses": {bpmnModel(chain("p", service("a", "="+strings.Repeat("(", 200_000)+"1"))), 64},
		"too many attributes":       {bpmnModel(`<bpmn:process id="p" ` + strings.Repeat(`a="1" `, 100_000) + `/>`), 256},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			s.bounded(c.total, func() {
				_, err := s.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "m.bpmn", Content: []byte(c.model)}}})
				if s.code(err, codes.InvalidArgument, ""); len(clipped(err)) < 20 {
					t.Errorf("the refusal says nothing: %v", err)
				}
				if got, text := s.upload(c.model); got != 400 || len(text) > 200_000 {
					t.Errorf("REST: %d with %d bytes, want 400 and a short text", got, len(text))
				}
			})
		})
	}
	t.Run("20 MB", func(t *testing.T) {
		s.t = t
		huge := bpmnModel("<!--" + strings.Repeat("x", 20<<20) + "-->")
		s.bounded(512, func() {
			_, err := s.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "m.bpmn", Content: []byte(huge)}}})
			s.code(err, codes.ResourceExhausted, "")
			if got, _ := s.upload(huge); got != 413 {
				t.Errorf("REST: %d, want 413", got)
			}
		})
	})
}

// A process that calls itself ends in an incident at a documented depth; so do two that call each other.
func TestBadInput_CyclicCalls(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("self", callOf("c", "self"))), bpmnModel(chain("ping", callOf("c", "pong"))), bpmnModel(chain("pong", callOf("c", "ping"))))
	for _, p := range []string{"self", "ping"} {
		s.bounded(256, func() {
			k := s.start(p)
			items, _ := s.ok("POST", "/incidents/search", object{"filter": object{"state": "ACTIVE"}})["items"].([]any)
			if len(items) != 1 {
				t.Fatalf("%s: %d incidents, want 1", p, len(items))
			}
			inc, _ := items[0].(object)
			if inc["errorType"] != "CALLED_ELEMENT_ERROR" || !strings.Contains(fmt.Sprint(inc["errorMessage"]), "maximum depth of 1000") {
				t.Errorf("%s: incident %v", p, inc)
			}
			if s.instance(k)["hasIncident"] != true {
				t.Errorf("%s: the first instance does not show the incident of the last", p)
			}
			s.ok("POST", fmt.Sprintf("/process-instances/%d/cancellation", k), "")
			s.state(k, "TERMINATED")
			s.instances(object{"state": "ACTIVE", "processDefinitionId": p})
		})
	}
}

// FEEL that recurses or runs for long is an incident.
func TestBadInput_FEEL(t *testing.T) {
	for name, source := range map[string]string{
		"recursion":      `={f: function(n) f(n + 1), r: f(1)}.r`,
		"runs long":      `=count(for a in 1..10000, b in 1..10000, c in 1..10000 return a+b+c)`,
		"grows":          `={s: &quot;xxxxxxxxxxxxxxxx&quot;, t: for i in 1..1000000 return s + string(i)}.t`,
		"endless range":  `=count(for i in 1..100000000000 return i)`,
		"nested product": `=(for a in (for b in 1..100000 return b) return (for c in 1..100000 return c))`,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, engine.Config{}, bpmnModel(chain("p", strings.Replace(service("a", "a"), `</bpmn:extensionElements>`, `<zeebe:ioMapping><zeebe:input source="`+source+`" target="x"/></zeebe:ioMapping></bpmn:extensionElements>`, 1))))
			s.bounded(1024, func() {
				k := s.start("p")
				if got := s.find("incidents", object{"processInstanceKey": fmt.Sprint(k)}, "errorType"); fmt.Sprint(got) != "[IO_MAPPING_ERROR]" {
					jobs, _ := activate(t, s.GatewayClient, "a", -1)
					t.Errorf("incidents %v and %d jobs, want IO_MAPPING_ERROR", got, len(jobs))
				}
				s.ok("POST", fmt.Sprintf("/process-instances/%d/cancellation", k), "")
			})
		})
	}
}

// Variables beyond a message, and such as are no object, are refused wherever variables go in.
func TestBadInput_Variables(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"))))
	k := s.start("p")
	j := s.job("a").GetKey()
	ctx := t.Context()
	calls := map[string]func(vars string) error{
		"create": func(v string) error {
			_, err := s.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, Variables: v})
			return err
		},
		"create with result": func(v string) error {
			_, err := s.CreateProcessInstanceWithResult(ctx, &pb.CreateProcessInstanceWithResultRequest{Request: &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, Variables: v}, RequestTimeout: 1})
			return err
		},
		"set": func(v string) error {
			_, err := s.SetVariables(ctx, &pb.SetVariablesRequest{ElementInstanceKey: k, Variables: v})
			return err
		},
		"publish": func(v string) error {
			_, err := s.PublishMessage(ctx, &pb.PublishMessageRequest{Name: "m", Variables: v})
			return err
		},
		"signal": func(v string) error {
			_, err := s.BroadcastSignal(ctx, &pb.BroadcastSignalRequest{SignalName: "m", Variables: v})
			return err
		},
		"complete": func(v string) error {
			_, err := s.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j, Variables: v})
			return err
		},
		"fail": func(v string) error {
			_, err := s.FailJob(ctx, &pb.FailJobRequest{JobKey: j, Retries: 1, Variables: v})
			return err
		},
		"throw": func(v string) error {
			_, err := s.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: j, ErrorCode: "E", Variables: v})
			return err
		},
		"modify": func(v string) error {
			_, err := s.ModifyProcessInstance(ctx, &pb.ModifyProcessInstanceRequest{ProcessInstanceKey: k, ActivateInstructions: []*pb.ModifyProcessInstanceRequest_ActivateInstruction{
				{ElementId: "a", VariableInstructions: []*pb.ModifyProcessInstanceRequest_VariableInstruction{{Variables: v}}}}})
			return err
		},
	}
	rest := map[string]string{
		"/process-instances": `{"processDefinitionId":"p","variables":%s}`, "/messages/publication": `{"name":"m","variables":%s}`, "/messages/correlation": `{"name":"m","variables":%s}`,
		"/signals/broadcast": `{"signalName":"m","variables":%s}`, fmt.Sprintf("/jobs/%d/completion", j): `{"variables":%s}`, fmt.Sprintf("/jobs/%d/failure", j): `{"retries":1,"variables":%s}`,
		fmt.Sprintf("/jobs/%d/error", j): `{"errorCode":"E","variables":%s}`, fmt.Sprintf("/process-instances/%d/modification", k): `{"activateInstructions":[{"elementId":"a","variableInstructions":[{"variables":%s}]}]}`,
	}
	s.bounded(1024, func() {
		for name, call := range calls {
			for _, bad := range []string{"[]", "1", `"x"`, "null", "true", "{", `{"a":}`, `{"a":1} {}`, "x", "{'a':1}", `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`} {
				if got := status.Code(call(bad)); got != codes.InvalidArgument {
					t.Errorf("%s with %.20s: %v, want INVALID_ARGUMENT", name, bad, got)
				}
			}
			s.code(call(`{"x":"`+strings.Repeat("x", 5<<20)+`"}`), codes.ResourceExhausted, "")
		}
		for path, body := range rest {
			for _, bad := range []string{"[]", "1", `"x"`, "true", "{", "{'a':1}"} {
				s.refused("POST", path, fmt.Sprintf(body, bad), 400, "")
			}
			s.refused("POST", path, fmt.Sprintf(body, `{"x":"`+strings.Repeat("x", 5<<20)+`"}`), 413, "")
		}
	})
	if got := s.find("element-instances", object{"processInstanceKey": fmt.Sprint(k), "elementId": "a"}, "state"); fmt.Sprint(got) != "[ACTIVE]" {
		t.Errorf("task %v: something that was refused has happened", got)
	}
}

// Keys that name nothing are NOT_FOUND; what is no 64 bit number is refused by name.
func TestBadInput_Keys(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"))))
	ctx := t.Context()
	s.bounded(256, func() {
		for _, k := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 51} {
			for name, call := range map[string]func() error{
				"complete": func() error { _, err := s.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: k}); return err },
				"fail":     func() error { _, err := s.FailJob(ctx, &pb.FailJobRequest{JobKey: k}); return err },
				"throw":    func() error { _, err := s.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: k}); return err },
				"retries": func() error {
					_, err := s.UpdateJobRetries(ctx, &pb.UpdateJobRetriesRequest{JobKey: k, Retries: 1})
					return err
				},
				"timeout": func() error {
					_, err := s.UpdateJobTimeout(ctx, &pb.UpdateJobTimeoutRequest{JobKey: k, Timeout: 1})
					return err
				},
				"resolve": func() error { _, err := s.ResolveIncident(ctx, &pb.ResolveIncidentRequest{IncidentKey: k}); return err },
				"cancel": func() error {
					_, err := s.CancelProcessInstance(ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: k})
					return err
				},
				"set": func() error {
					_, err := s.SetVariables(ctx, &pb.SetVariablesRequest{ElementInstanceKey: k})
					return err
				},
				"modify": func() error {
					_, err := s.ModifyProcessInstance(ctx, &pb.ModifyProcessInstanceRequest{ProcessInstanceKey: k})
					return err
				},
				"migrate": func() error {
					_, err := s.MigrateProcessInstance(ctx, &pb.MigrateProcessInstanceRequest{ProcessInstanceKey: k, MigrationPlan: &pb.MigrateProcessInstanceRequest_MigrationPlan{TargetProcessDefinitionKey: k}})
					return err
				},
				"delete": func() error { _, err := s.DeleteResource(ctx, &pb.DeleteResourceRequest{ResourceKey: k}); return err },
			} {
				if got := status.Code(call()); got != codes.NotFound {
					t.Errorf("%s of %d: %v, want NOT_FOUND", name, k, got)
				}
			}
		}
		for path, body := range map[string]string{
			"POST /jobs/K/completion": "", "POST /jobs/K/failure": "", "POST /jobs/K/error": `{"errorCode":"E"}`, "PATCH /jobs/K": `{"changeset":{"retries":1}}`, "POST /incidents/K/resolution": "", "GET /incidents/K": "",
			"GET /process-instances/K": "", "POST /process-instances/K/cancellation": "", "POST /process-instances/K/modification": "{}", "POST /process-instances/K/incidents/search": "{}",
			"POST /process-instances/K/migration": `{"targetProcessDefinitionKey":"1","mappingInstructions":[]}`, "GET /element-instances/K": "", "PUT /element-instances/K/variables": `{"variables":{}}`,
			"GET /variables/K": "", "GET /process-definitions/K": "", "GET /process-definitions/K/xml": "", "GET /user-tasks/K": "", "POST /user-tasks/K/completion": "", "POST /user-tasks/K/assignment": `{"assignee":"a"}`,
			"DELETE /user-tasks/K/assignee": "", "POST /resources/K/deletion": "",
		} {
			method, path, _ := strings.Cut(path, " ")
			for _, k := range []string{"0", "-1", "9223372036854775807", "2251799813685248"} {
				s.refused(method, strings.Replace(path, "K", k, 1), body, 404, "")
			}
			for _, k := range []string{"9223372036854775808", "-9223372036854775809", "1e3", "0x10", "meow", strings.Repeat("9", 5000)} {
				s.refused(method, strings.Replace(path, "K", k, 1), body, 400, "Failed to convert")
			}
		}
		for _, k := range []string{`"9223372036854775808"`, "9223372036854775808", `"x"`, "1.5", "{}", "[]"} {
			s.refused("POST", "/process-instances", `{"processDefinitionKey":`+k+`}`, 400, "")
			if k != "{}" { // no operator is no condition
				s.refused("POST", "/jobs/search", `{"filter":{"jobKey":`+k+`}}`, 400, "")
			}
		}
	})
}

// Times below zero: refused where a time is needed, none where it may be left out.
func TestBadInput_Times(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"))))
	ctx := t.Context()
	k := s.start("p")
	s.bounded(256, func() {
		for _, d := range []int64{-1, math.MinInt64} {
			poll, err := s.ActivateJobs(ctx, &pb.ActivateJobsRequest{Type: "a", Timeout: d, MaxJobsToActivate: 1, RequestTimeout: -1})
			if err == nil {
				_, err = poll.Recv()
			}
			s.code(err, codes.InvalidArgument, "timeout to be greater than zero")
			stream, err := s.StreamActivatedJobs(ctx, &pb.StreamActivatedJobsRequest{Type: "a", Timeout: d})
			if err == nil {
				_, err = stream.Recv()
			}
			s.code(err, codes.InvalidArgument, "timeout to be greater than zero")
			jobs, err := activate(t, s.GatewayClient, "a", d) // no long poll
			if err != nil || len(jobs) != 1 {
				t.Fatalf("activation: %d jobs, %v", len(jobs), err)
			}
			// A deadline in the past is over at once, a back-off below zero is none.
			if _, err := s.UpdateJobTimeout(ctx, &pb.UpdateJobTimeoutRequest{JobKey: jobs[0].GetKey(), Timeout: d}); err != nil {
				t.Errorf("UpdateJobTimeout: %v", err)
			}
			if jobs, err = activate(t, s.GatewayClient, "a", 10_000); err != nil || len(jobs) != 1 {
				t.Fatalf("activation after the time-out: %d jobs, %v", len(jobs), err)
			}
			if _, err := s.FailJob(ctx, &pb.FailJobRequest{JobKey: jobs[0].GetKey(), Retries: 1, RetryBackOff: d}); err != nil {
				t.Errorf("FailJob: %v", err)
			}
			if _, err := s.PublishMessage(ctx, &pb.PublishMessageRequest{Name: "m", MessageId: "1", TimeToLive: d}); err != nil {
				t.Errorf("PublishMessage: %v", err)
			}
			s.refused("POST", "/jobs/activation", fmt.Sprintf(`{"type":"a","timeout":%d,"maxJobsToActivate":1,"requestTimeout":-1}`, d), 400, "timeout to be greater than zero")
			s.refused("POST", "/clock/advance", fmt.Sprintf(`{"milliseconds":%d}`, d), 400, "greater than 0")
			s.refused("PUT", "/clock", fmt.Sprintf(`{"timestamp":%d}`, d), 400, "timestamp")
		}
		for _, n := range []int32{0, -1, math.MinInt32} {
			poll, err := s.ActivateJobs(ctx, &pb.ActivateJobsRequest{Type: "a", Timeout: 1, MaxJobsToActivate: n, RequestTimeout: -1})
			if err == nil {
				_, err = poll.Recv()
			}
			s.code(err, codes.InvalidArgument, "max jobs to activate to be greater than zero")
			s.refused("POST", "/jobs/activation", fmt.Sprintf(`{"type":"a","timeout":1,"maxJobsToActivate":%d,"requestTimeout":-1}`, n), 400, "max jobs to activate")
		}
		s.refused("POST", "/jobs/activation", `{"type":"a","timeout":9223372036854775808,"maxJobsToActivate":1}`, 400, "")
	})
	s.work("a")
	s.state(k, "COMPLETED")
}
