package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/engine"
)

// A REST call fails, loses its answer after it was executed, is made twice or answered by the interceptor alone.
func TestInterceptREST(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"))))
	type next = func(context.Context) (engine.RESTResponse, error)
	k := s.start("p")
	job := s.job("a").GetKey()
	completion := fmt.Sprintf("/jobs/%d/completion", job)
	lost := func(path, body string) {
		t.Helper()
		res, err := http.Post("http://"+s.e.RESTAddr()+"/v2"+path, "application/json", strings.NewReader(body))
		if err == nil {
			res.Body.Close()
			t.Errorf("POST %s: status %d, want no answer", path, res.StatusCode)
		}
	}
	const route = "POST /v2/jobs/{jobKey}/completion"
	remove := s.e.InterceptREST(route, func(context.Context, engine.RESTRequest, next) (engine.RESTResponse, error) {
		return engine.RESTResponse{}, errors.New("cut")
	})
	lost(completion, "{}")
	s.state(k, "ACTIVE") // failed before it was executed
	remove()

	var seen engine.RESTRequest
	remove = s.e.InterceptREST(route, func(ctx context.Context, r engine.RESTRequest, next next) (engine.RESTResponse, error) {
		seen = r
		if out, err := next(ctx); err != nil || out.Status != 204 {
			t.Errorf("next: %v, %v", out, err)
		}
		return engine.RESTResponse{}, errors.New("cut")
	})
	lost(completion, `{"variables":{"x":1}}`)
	s.state(k, "COMPLETED") // executed, the answer is lost
	if seen.Method != http.MethodPost || seen.Path != "/v2"+completion || string(seen.Body) != `{"variables":{"x":1}}` {
		t.Errorf("the interceptor saw %v %s", seen, seen.Body)
	}
	remove()
	s.refused("POST", completion, "{}", 404, "no such job was found")

	remove = s.e.InterceptREST("POST /v2/process-instances", func(ctx context.Context, _ engine.RESTRequest, next next) (engine.RESTResponse, error) {
		if _, err := next(ctx); err != nil {
			return engine.RESTResponse{}, err
		}
		return next(ctx)
	})
	second := s.ok("POST", "/process-instances", object{"processDefinitionId": "p"})
	if got := s.find("process-instances", object{"state": "ACTIVE"}, "processInstanceKey"); len(got) != 2 || got[1] != second["processInstanceKey"] {
		t.Errorf("instances %v, want two, the second being the answer %v", got, second)
	}
	remove()

	var order []string
	note := func(name string) engine.RESTInterceptor {
		return func(ctx context.Context, _ engine.RESTRequest, next next) (engine.RESTResponse, error) {
			order = append(order, name)
			return next(ctx)
		}
	}
	defer s.e.InterceptREST("*", note("first"))()
	defer s.e.InterceptREST("GET /v2/topology", note("second"))()
	defer s.e.InterceptREST("GET /v2/status", func(context.Context, engine.RESTRequest, next) (engine.RESTResponse, error) {
		return engine.RESTResponse{Status: 503}, nil
	})()
	s.ok("GET", "/topology", "")
	s.refused("GET", "/status", "", 503, "")
	if got := strings.Join(order, " "); got != "second first" {
		t.Errorf("order %q, want the newest outermost", got)
	}
}
