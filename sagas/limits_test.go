package sagas

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// I5: time-outs and retention by operation type are configuration.
func TestI05_LimitsAreConfiguration(t *testing.T) {
	limits, err := ReadLimits(strings.NewReader("trip: {timeout: 5m, retention: 7d, sla: 1m, step_sla: {hotel.do: 2m}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	w := setupWith(t, func(c *Config) { c.Limits = limits })
	if typ := w.s.types["trip"]; typ.Timeout != 5*time.Minute || typ.Retention != 7*24*time.Hour || typ.SLA != time.Minute || typ.StepSLA["hotel.do"] != 2*time.Minute {
		t.Errorf("got %+v", typ)
	}
	srv := w.server(w.s)
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	w.advance(6 * time.Minute)
	for range 2 { // never begun: expired by what configuration says, not by the type's 30 minutes
		if err := w.s.Sweep(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.deliver(false)
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); r.status != http.StatusOK || r.json(t)["state"] != "expired" {
		t.Errorf("after the time-out: got %d %s", r.status, r.body)
	}
	w.advance(6 * 24 * time.Hour)
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); r.status != http.StatusOK {
		t.Errorf("within the retention: got %d", r.status)
	}
	w.advance(2 * 24 * time.Hour)
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); r.status != http.StatusGone {
		t.Errorf("after the retention: got %d, want 410", r.status)
	}
}

func TestLimitsMistakes(t *testing.T) {
	w := setup(t)
	cfg := w.s.cfg
	cfg.Limits = map[string]Limits{"tripp": {}, "trip": {Timeout: time.Minute, StepSLA: map[string]time.Duration{"hotel.do": time.Hour}}}
	_, err := New(cfg, trip(w))
	for _, want := range []string{`"tripp", which is not declared`, "StepSLA of hotel.do is 1h"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	for _, text := range []string{"trip: {timeout: soon}", "trip: {timeout: -1m}", "trip: {timeout: 0d}", "trip: {timeuot: 1m}", "trip: [1m]", "trip: {retention: 3 d}"} {
		if _, err := ReadLimits(strings.NewReader(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
