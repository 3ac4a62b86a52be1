package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// Cases of "Orchestration Cluster API (REST)", error handling: RFC 9457 problem
// documents, with the rejection's name as title and the command's text as detail.
func TestREST_ProblemDocuments(t *testing.T) {
	t.Parallel()
	z := open(t, "http: a refusal is a problem document and changes nothing")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	z.fail(j, 0, "no")
	inc := z.incident(k, "JOB_NO_RETRIES", "no")
	key := str(j.GetKey())
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		title, detail      string
	}{
		"unknown job":           {http.MethodPost, "/v2/jobs/1/completion", "{}", 404, "NOT_FOUND", "Command 'COMPLETE' rejected with code 'NOT_FOUND': Expected to complete job with key '1', but no such job was found"},
		"failed job completed":  {http.MethodPost, "/v2/jobs/" + key + "/completion", "{}", 409, "INVALID_STATE", "Expected to complete job with key '" + key + "', but it is in state 'FAILED'"},
		"failed job failed":     {http.MethodPost, "/v2/jobs/" + key + "/failure", "{}", 409, "INVALID_STATE", "Expected to fail job with key '" + key + "'"},
		"retries of 0":          {http.MethodPatch, "/v2/jobs/" + key, `{"changeset":{"retries":0}}`, 400, "", "retries"},
		"timeout of a failed":   {http.MethodPatch, "/v2/jobs/" + key, `{"changeset":{"timeout":1000}}`, 409, "INVALID_STATE", "but it is not active"},
		"resolve without retry": {http.MethodPost, "/v2/incidents/" + inc["incidentKey"].(string) + "/resolution", "", 409, "INVALID_STATE", "has no retries left"},
		"unknown incident":      {http.MethodPost, "/v2/incidents/1/resolution", "", 404, "NOT_FOUND", "Command 'RESOLVE' rejected with code 'NOT_FOUND'"},
		"unknown instance":      {http.MethodPost, "/v2/process-instances/1/cancellation", "", 404, "NOT_FOUND", "Command 'CANCEL' rejected with code 'NOT_FOUND'"},
		"unknown process":       {http.MethodPost, "/v2/process-instances", `{"processDefinitionId":"nope"}`, 404, "NOT_FOUND", "process ID 'nope'"},
		"key that is none":      {http.MethodGet, "/v2/incidents/meow", "", 400, "", "meow"},
		"body that is none":     {http.MethodPost, "/v2/jobs/" + key + "/failure", "{", 400, "", ""},
		"unknown filter":        {http.MethodPost, "/v2/jobs/search", `{"filter":{"meow":1}}`, 400, "", "meow"},
	} {
		z.run(t, name, fmt.Sprintf("http: %s %s is %d %s", c.method, strings.ReplaceAll(strings.ReplaceAll(c.path, key, "{key}"), fmt.Sprint(inc["incidentKey"]), "{key}"), c.status, c.title), func(t *testing.T, z *cluster) {
			req, err := http.NewRequestWithContext(z.ctx, c.method, z.rest+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			res := z.do(req)
			defer res.Body.Close() //nolint:errcheck // read only
			var p struct {
				Type, Title, Detail, Instance string
				Status                        int
			}
			if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
				t.Fatal(err)
			}
			if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("content type %q, want application/problem+json", got)
			}
			if res.StatusCode != c.status || p.Status != c.status || p.Type != "about:blank" || p.Instance != c.path || (c.title != "" && p.Title != c.title) || !strings.Contains(p.Detail, c.detail) {
				t.Errorf("status %d, %+v, want %d %s %q", res.StatusCode, p, c.status, c.title, c.detail)
			}
		})
	}
	// None of the refusals changed anything.
	if again := z.incident(k, "JOB_NO_RETRIES", "no"); again["incidentKey"] != inc["incidentKey"] {
		t.Errorf("incident %v, want %v", again["incidentKey"], inc["incidentKey"])
	}
	z.state(k, "ACTIVE")
}

// "Zeebe API (gRPC)", ActivateJobs: a request timeout of 0 means the gateway's
// own long polling (10 s), so a job that comes meanwhile is handed out.
func TestActivate_DefaultLongPollWaits(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: ActivateJobs with a request time-out of 0 waits for the gateway's default")
	z.deploy("one.bpmn", oneTask("one"))
	began := time.Now()
	s, err := z.ActivateJobs(z.ctx, &pb.ActivateJobsRequest{Type: "work", Timeout: 60_000, MaxJobsToActivate: 1})
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		m   *pb.ActivateJobsResponse
		err error
	}
	got := make(chan answer, 1)
	go func() {
		m, err := s.Recv()
		got <- answer{m, err}
	}()
	select {
	case a := <-got:
		t.Fatalf("the poll ended after %v with %v, %v", time.Since(began), a.m, a.err)
	case <-time.After(300 * time.Millisecond): // a poll that does not wait has answered by now
	}
	k := z.create("one", "")
	a := <-got
	if a.err != nil || len(a.m.GetJobs()) != 1 || a.m.GetJobs()[0].GetProcessInstanceKey() != k {
		t.Fatalf("got %v, %v, want the new job", a.m, a.err)
	}
	z.complete(a.m.GetJobs()[0], "")
	z.state(k, "COMPLETED")
}
