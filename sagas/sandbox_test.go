package sagas

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func (w *world) sandbox() *httptest.Server {
	w.Helper()
	auth, err := NewStaticTokens(map[string]Principal{"a": {Tenant: "agency"}})
	if err != nil {
		w.Fatal(err)
	}
	h, err := w.s.Handler(HTTPConfig{Auth: auth, Sandbox: true})
	if err != nil {
		w.Fatal(err)
	}
	srv := httptest.NewServer(h)
	w.Cleanup(srv.Close)
	return srv
}

// Each outcome can be forced; nothing real happens.
func TestSandboxForcesEachOutcome(t *testing.T) {
	w := setup(t)
	srv := w.sandbox()
	i := 0
	for outcome, want := range map[string][2]string{
		"":                {"completed", ""},
		"completed":       {"completed", ""},
		"failed":          {"failed", "failed"},
		"failed:SOLD_OUT": {"failed", "SOLD_OUT"},
		"expired":         {"expired", "deadline"},
		"cancelled":       {"failed", "cancelled"},
	} {
		i++
		key := "k" + string(rune('a'+i))
		headers := []string{HeaderSandbox, outcome}
		if outcome == "" {
			headers = nil
		}
		if r := w.post(srv, "a", key, goodTrip, headers...); r.status != http.StatusAccepted {
			t.Errorf("%s: got %d %s", outcome, r.status, r.body)
		}
		w.deliver(false)
		r := w.post(srv, "a", key, goodTrip)
		m := r.json(t)
		code := ""
		if reason, ok := m["reason"].(map[string]any); ok {
			code = reason["code"].(string)
		}
		if r.status != http.StatusOK || m["state"] != want[0] || code != want[1] {
			t.Errorf("%q: got %d %s, want %v", outcome, r.status, r.body, want)
		}
	}
	// One that runs ends at its time-out, or by a cancel.
	for _, key := range []string{"runs", "is-cancelled"} {
		w.post(srv, "a", key, goodTrip, HeaderSandbox, "in_progress")
		if r := w.post(srv, "a", key, goodTrip); r.status != http.StatusAccepted {
			t.Errorf("%s: got %d, want it running", key, r.status)
		}
	}
	if r := w.do(srv, http.MethodPost, "/v1/operations/"+id1("is-cancelled")+"/cancel", "a", ""); r.status != http.StatusAccepted {
		t.Errorf("cancel: got %d", r.status)
	}
	w.advance(31 * time.Minute)
	if err := w.s.Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.deliver(false)
	for key, want := range map[string]string{"runs": "expired", "is-cancelled": "failed"} {
		if m := w.post(srv, "a", key, goodTrip).json(t); m["state"] != want {
			t.Errorf("%s: got %v, want %s", key, m, want)
		}
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command`); n != 0 || w.starts != 0 {
		t.Errorf("commands: got %d, starts %d, want none", n, w.starts)
	}
	if r := w.post(srv, "a", "bad", goodTrip, HeaderSandbox, "explode"); r.status != http.StatusBadRequest {
		t.Errorf("no outcome: got %d, want 400", r.status)
	}
	if r := w.post(srv, "a", "bad", strings.Replace(goodTrip, "HT-200", "HT-999", 1)); r.status != http.StatusBadRequest {
		t.Errorf("a bad request: got %d, want 400 as in reality", r.status)
	}
}

func TestSandboxHeaderIsRefusedInReality(t *testing.T) {
	w := setup(t)
	if r := w.post(w.server(w.s), "a", "k", goodTrip, HeaderSandbox, "completed"); r.status != http.StatusBadRequest {
		t.Errorf("got %d %s, want 400", r.status, r.body)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 0 {
		t.Errorf("sagas: got %d, want 0", n)
	}
}

// Every route that names an operation, asked by every other tenant in every state, answers as if there were none.
func TestTenantMatrix(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	states := map[string]func(id string){
		"in_progress": func(string) {}, "completed": func(id string) { w.ended(id, Completed) }, "failed": func(id string) { w.ended(id, Failed) },
		"expired": func(id string) { w.ended(id, Expired) },
	}
	for state, reach := range states {
		w.post(srv, "a", state, strings.Replace(goodTrip, "B-1", "B-"+state, 1))
		reach(id1(state))
	}
	check := func(when string) {
		t.Helper()
		for state := range states {
			for _, r := range routes() {
				if !strings.Contains(r.path, "{id}") {
					continue
				}
				path := strings.Replace(r.path, "{id}", id1(state), 1)
				got := w.do(srv, r.method, path, "b", "")
				none := w.do(srv, r.method, strings.Replace(r.path, "{id}", "op_"+strings.Repeat("a", 26), 1), "b", "")
				if got.status != http.StatusNotFound || string(got.body) != string(none.body) || len(got.header) != len(none.header) {
					t.Errorf("%s, %s: %s %s got %d %s %v, want exactly the answer for none, %s", when, state, r.method, r.path, got.status, got.body, got.header, none.body)
				}
			}
		}
	}
	check("in retention")
	w.advance(31 * day)
	w.retain(Retention{Archive: discard{}})
	check("archived")
	w.advance(366 * day)
	w.retain(Retention{Archive: discard{}})
	check("deleted")
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command WHERE name = 'saga.cancel'`); n != 0 {
		t.Errorf("cancel messages: got %d, want 0", n)
	}
	for state := range states { // keys are the tenant's own on the route that names a type
		if r := w.post(srv, "b", state, goodTrip); r.status != http.StatusAccepted || r.json(t)["operation_id"] == id1(state) {
			t.Errorf("the same key of another tenant: got %d %s", r.status, r.body)
		}
	}
}
