package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"github.com/vitrip/journeyman/engine"
)

type object = map[string]any

// site is an engine with its two APIs.
type site struct {
	pb.GatewayClient
	t *testing.T
	e *engine.Engine
}

func open(t *testing.T, cfg engine.Config, models ...string) *site {
	t.Helper()
	e, err := engine.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &site{dial(t, e.Addr()), t, e}
	for i, m := range models {
		s.deploy(fmt.Sprintf("m%d.bpmn", i), m)
	}
	return s
}

// bpmnModel wraps processes and root elements.
func bpmnModel(parts ...string) string {
	return `<?xml version="1.0"?><bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">` + strings.Join(parts, "\n") + `</bpmn:definitions>`
}

// chain is a process of elements in a row, between a start and an end event.
func chain(id string, elements ...string) string {
	b := fmt.Sprintf(`<bpmn:process id=%q isExecutable="true"><bpmn:startEvent id="s"/>`, id)
	from := "s"
	for i, e := range elements {
		to := e[strings.Index(e, `id="`)+4:]
		to = to[:strings.IndexByte(to, '"')]
		b += e + fmt.Sprintf(`<bpmn:sequenceFlow id="f%d" sourceRef=%q targetRef=%q/>`, i, from, to)
		from = to
	}
	return b + fmt.Sprintf(`<bpmn:sequenceFlow id="fe" sourceRef=%q targetRef="e"/><bpmn:endEvent id="e"/></bpmn:process>`, from)
}

func service(id, jobType string) string {
	return fmt.Sprintf(`<bpmn:serviceTask id=%q><bpmn:extensionElements><zeebe:taskDefinition type=%q/></bpmn:extensionElements></bpmn:serviceTask>`, id, jobType)
}

func callOf(id, process string) string {
	return fmt.Sprintf(`<bpmn:callActivity id=%q><bpmn:extensionElements><zeebe:calledElement processId=%q/></bpmn:extensionElements></bpmn:callActivity>`, id, process)
}

// subOf is a subprocess around elements in a row.
func subOf(id string, elements ...string) string {
	inner := chain("", elements...)
	inner = inner[strings.Index(inner, "<bpmn:startEvent"):strings.LastIndex(inner, "</bpmn:process>")]
	for _, x := range []string{"s", "e", "fe", "f0", "f1", "f2"} {
		inner = strings.ReplaceAll(inner, fmt.Sprintf("%q", x), fmt.Sprintf("%q", id+"_"+x))
	}
	return fmt.Sprintf(`<bpmn:subProcess id=%q>%s</bpmn:subProcess>`, id, inner)
}

func (s *site) deploy(name, model string) int64 {
	s.t.Helper()
	d, err := s.DeployResource(s.t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: name, Content: []byte(model)}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return d.GetDeployments()[0].GetProcess().GetProcessDefinitionKey()
}

func (s *site) start(process string) int64 {
	s.t.Helper()
	r, err := s.CreateProcessInstance(s.t.Context(), &pb.CreateProcessInstanceRequest{BpmnProcessId: process, Version: -1})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.GetProcessInstanceKey()
}

// job takes one job of the type.
func (s *site) job(jobType string) *pb.ActivatedJob {
	s.t.Helper()
	jobs, err := s.ActivateJobs(s.t.Context(), &pb.ActivateJobsRequest{Type: jobType, Timeout: 60_000, MaxJobsToActivate: 1, RequestTimeout: 10_000})
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := jobs.Recv()
	if err != nil || len(got.GetJobs()) != 1 {
		s.t.Fatalf("job %q: %v, %v", jobType, got, err)
	}
	return got.GetJobs()[0]
}

func (s *site) work(jobType string) {
	s.t.Helper()
	if _, err := s.CompleteJob(s.t.Context(), &pb.CompleteJobRequest{JobKey: s.job(jobType).GetKey()}); err != nil {
		s.t.Fatal(err)
	}
}

// fail takes a job and fails it.
func (s *site) fail(jobType string, retries int32, message string) {
	s.t.Helper()
	if _, err := s.FailJob(s.t.Context(), &pb.FailJobRequest{JobKey: s.job(jobType).GetKey(), Retries: retries, RetryBackOff: 3_600_000, ErrorMessage: message}); err != nil {
		s.t.Fatal(err)
	}
}

// call sends a REST request; the body is any value or, as text, sent as it is.
func (s *site) call(method, path string, body any) (int, object) {
	s.t.Helper()
	raw, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		raw = string(b)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.e.RESTAddr()+"/v2"+path, bytes.NewReader([]byte(raw)))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var out object
	if len(b) > 0 {
		if err := json.Unmarshal(b, &out); err != nil {
			s.t.Fatalf("%s %s: %d %s: %v", method, path, res.StatusCode, b, err)
		}
	}
	return res.StatusCode, out
}

// ok sends a request that must succeed.
func (s *site) ok(method, path string, body any) object {
	s.t.Helper()
	code, out := s.call(method, path, body)
	if code/100 != 2 {
		s.t.Fatalf("%s %s %v: %d %v", method, path, body, code, out["detail"])
	}
	return out
}

// refused sends a request that must be refused with a status and a text in the detail.
func (s *site) refused(method, path string, body any, status int, text string) {
	s.t.Helper()
	code, out := s.call(method, path, body)
	if detail, _ := out["detail"].(string); code != status || !strings.Contains(detail, text) {
		s.t.Errorf("%s %s: %d %v, want %d and %q", method, path, code, out, status, text)
	}
}

// find searches and returns one property of each item.
func (s *site) find(what string, filter object, property string) []string {
	s.t.Helper()
	got := []string{}
	items, _ := s.ok("POST", "/"+what+"/search", object{"filter": filter})["items"].([]any)
	for _, i := range items {
		o, _ := i.(object)
		got = append(got, fmt.Sprint(o[property]))
	}
	return got
}

// instances asserts which process instances a filter finds.
func (s *site) instances(filter object, want ...int64) {
	s.t.Helper()
	texts := []string{}
	for _, k := range want {
		texts = append(texts, fmt.Sprint(k))
	}
	if got := s.find("process-instances", filter, "processInstanceKey"); !slices.Equal(got, texts) {
		s.t.Errorf("%v: found %v, want %v", filter, got, texts)
	}
}

func (s *site) element(instance int64, id string) object {
	s.t.Helper()
	items, _ := s.ok("POST", "/element-instances/search", object{"filter": object{"processInstanceKey": fmt.Sprint(instance), "elementId": id}})["items"].([]any)
	if len(items) == 0 {
		s.t.Fatalf("instance %d has no element %q", instance, id)
	}
	o, _ := items[len(items)-1].(object)
	return o
}

func (s *site) instance(k int64) object {
	s.t.Helper()
	return s.ok("GET", fmt.Sprintf("/process-instances/%d", k), "")
}

// state asserts the state of a process instance.
func (s *site) state(k int64, want string) {
	s.t.Helper()
	if got := s.instance(k)["state"]; got != want {
		s.t.Errorf("instance %d is %v, want %s", k, got, want)
	}
}
