package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/zeebe/rest"
)

func TestClient(t *testing.T) {
	t.Parallel()
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body)+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/v2/element-instances/2251799813685250":
			_, _ = io.WriteString(w, `{"elementInstanceKey":"2251799813685250","state":"TERMINATED","incidentKey":null}`)
		case "/v2/element-instances/7":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"title":"NOT_FOUND","detail":"no such element"}`)
		case "/v2/incidents/search":
			_, _ = io.WriteString(w, `{"items":[{"incidentKey":"9","jobKey":"10","errorMessage":"boom"}],"page":{"totalItems":1,"endCursor":"abc"}}`)
		case "/v2/process-definitions/5/xml":
			_, _ = io.WriteString(w, `<definitions/>`)
		case "/v2/topology":
			_, _ = io.WriteString(w, `{"clusterSize":1}`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer s.Close()
	c, err := rest.New(rest.Config{Base: s.URL + "/", Token: func(context.Context) (string, error) { return "T", nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if st, err := c.ElementState(ctx, 2251799813685250); err != nil || st != "TERMINATED" {
		t.Errorf("element state %q, %v", st, err)
	}
	if st, err := c.ElementState(ctx, 7); err != nil || st != "" {
		t.Errorf("unknown element: %q, %v; want none and no error", st, err)
	}
	if _, err := c.ElementInstance(ctx, 7); !rest.IsNotFound(err) || !strings.Contains(err.Error(), "no such element") {
		t.Errorf("unknown element: %v", err)
	}
	p, err := c.SearchIncidents(ctx, rest.Query{Filter: rest.Filter{"state": "ACTIVE", "processInstanceKey": rest.Key(5)}, Sort: []rest.Sort{{Field: "creationTime", Desc: true}}, Limit: 1})
	if err != nil || len(p.Items) != 1 || p.Items[0].JobKey != 10 || p.Total != 1 || p.After != "abc" {
		t.Errorf("incidents: %+v, %v", p, err)
	}
	if err := c.ResolveIncident(ctx, 9); err != nil {
		t.Error(err)
	}
	if err := c.CompleteUserTask(ctx, 3, map[string]any{"a": 1}); err != nil {
		t.Error(err)
	}
	if xml, err := c.ProcessXML(ctx, 5); err != nil || string(xml) != "<definitions/>" {
		t.Errorf("xml %q, %v", xml, err)
	}
	if top, err := c.Topology(ctx); err != nil || !json.Valid(top) {
		t.Errorf("topology %s, %v", top, err)
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{
		`POST /v2/incidents/search {"filter":{"processInstanceKey":"5","state":"ACTIVE"},"page":{"limit":1},"sort":[{"field":"creationTime","order":"DESC"}]} Bearer T`,
		"POST /v2/incidents/9/resolution {}", `POST /v2/user-tasks/3/completion {"variables":{"a":1}}`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no request %q in\n%s", want, all)
		}
	}
	if _, err := rest.New(rest.Config{Base: "localhost"}); err == nil {
		t.Error("a base without a scheme is taken")
	}
}
