package sagas

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func (w *world) metrics() string {
	w.Helper()
	out := httptest.NewRecorder()
	w.s.MetricsHandler().ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return out.Body.String()
}

// The metrics of spec I10 by their names, after a known sequence of requests.
func TestI10_Metrics(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	w.advance(time.Hour)
	w.post(srv, "a", "k", goodTrip)                                      // a poll in time
	w.post(srv, "a", "k", goodTrip)                                      // too fast
	w.post(srv, "a", "k", strings.Replace(goodTrip, "EUR", "USD", 1))    // another payload
	w.do(srv, http.MethodPost, "/v1/operations/trip", "a", goodTrip)     // no key
	w.do(srv, http.MethodGet, "/v1/operations/op_nobody-knows", "a", "") // unknown
	w.post(srv, "a", "k", goodTrip, HeaderForceRetry, "true")            // while running and too fast: denied
	if err := w.s.flushPolls(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.advance(10 * time.Second)
	w.ended(id1("k"), Expired)
	w.post(srv, "a", "k", goodTrip)
	w.post(srv, "a", "k", goodTrip, HeaderForceRetry, "true")
	got := w.metrics()
	for _, want := range []string{
		`journeyman_idempotent_requests_total{operation="trip",result="new"} 2`,
		`journeyman_idempotent_requests_total{operation="trip",result="in_flight"} 1`,
		`journeyman_idempotent_requests_total{operation="trip",result="replay"} 1`,
		`journeyman_idempotent_requests_total{operation="trip",result="mismatch"} 1`,
		`journeyman_idempotent_requests_total{operation="trip",result="too_fast"} 2`,
		`journeyman_idempotent_requests_total{operation="trip",result="refused"} 1`,
		`journeyman_idempotent_requests_total{operation="unknown",result="refused"} 1`,
		`journeyman_force_retries_total{operation="trip",result="won"} 1`,
		`journeyman_polling_violations_total{operation="trip"} 2`,
		`journeyman_long_running_polls_total{operation="trip"} 1`,
		`journeyman_operations_total{operation="trip",state="expired"} 1`,
		`journeyman_expired_operations_total{operation="trip"} 1`,
		`long_running_in_progress_polls_per_operation_bucket{operation="trip",le="1"} 1`,
		`long_running_in_progress_polls_per_operation_bucket{operation="trip",le="+Inf"} 1`,
		`long_running_in_progress_polls_per_operation_sum{operation="trip"} 1`,
		`long_running_in_progress_polls_per_operation_count{operation="trip"} 1`,
		"# TYPE long_running_in_progress_polls_per_operation histogram",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) .+|[a-z_]+\{([a-z]+="[^"]*",?)+\} [0-9.e+-]+)$`)
	for l := range strings.Lines(got) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("not in the text format: %q", l)
		}
	}
	if strings.Contains(got, "op_") || strings.Contains(got, "agency") {
		t.Errorf("ids or tenants in labels:\n%s", got)
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestMetricsRouteIsAnOption(t *testing.T) {
	w := setup(t)
	auth, err := NewStaticTokens(map[string]Principal{"a": {Tenant: "agency"}})
	if err != nil {
		t.Fatal(err)
	}
	for on, want := range map[bool]int{true: http.StatusOK, false: http.StatusNotFound} {
		h, err := w.s.Handler(HTTPConfig{Auth: auth, Metrics: on})
		if err != nil {
			t.Fatal(err)
		}
		out := httptest.NewRecorder()
		h.ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if out.Code != want {
			t.Errorf("metrics %v: got %d, want %d", on, out.Code, want)
		}
	}
}

// The rules name every rate of spec I10, and nothing that is not counted.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/alerts/operations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Record, Alert, Expr string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"long_running_in_progress_polls_per_operation_sum": true, "long_running_in_progress_polls_per_operation_count": true}
	for _, f := range []family{metricRequests, metricForce, metricPolls, metricViolations, metricEnded, metricExpired, metricStuck, metricBreaches, metricActive, metricStuckNow, metricPollsPer, metricDuration} {
		known[f.name] = true
	}
	used := ""
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				known[r.Record] = true
			} else if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("alert %s lacks severity or summary", r.Alert)
			}
			used += r.Expr + "\n"
		}
	}
	for _, name := range []string{"idempotent_response_rate", "force_retry_rate", "expired_operation_rate", "polling_violations", "long_running_in_progress_polls_per_operation"} {
		if !known[name] || !strings.Contains(used, name) {
			t.Errorf("%s has no rule or no alert", name)
		}
	}
	for _, name := range regexp.MustCompile(`\b[a-z]+_[a-z_]+_(total|sum|count|rate)\b`).FindAllString(used, -1) {
		if !known[name] {
			t.Errorf("the rules use %s, which nobody counts", name)
		}
	}
}

// A stuck saga is told once per reason, by whichever process comes first.
func TestStuckIsToldOnce(t *testing.T) {
	w := setup(t)
	id := w.begun("k")
	w.mustRun(id, step{element: "flight", undo: "flight.cancel"})
	w.advance(40 * time.Minute)
	other := w.another(nil)
	told := func() int {
		return w.count(w.domain, `SELECT count(*) FROM journeyman.outbox WHERE type = $1`, EventStuck)
	}
	for range 3 {
		for _, s := range []*Sagas{w.s, other} {
			if err := s.sweepStuck(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := told(); n != 1 {
		t.Errorf("told: got %d, want 1", n)
	}
	if _, err := w.giveUp(id, Expired); err != nil {
		t.Fatal(err)
	}
	w.advance(11 * time.Minute)
	for range 2 {
		if err := other.sweepStuck(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := told(); n != 2 {
		t.Errorf("told after another reason: got %d, want 2", n)
	}
	w.undoAll(id)
	w.mustClose(id, closeIn{})
	w.advance(time.Hour)
	if err := w.s.sweepStuck(w.ctx); err != nil || told() != 2 {
		t.Errorf("told after the end: got %d, %v, want 2", told(), err)
	}
}

func readRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../deploy/alerts/operations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
