package sagas

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/outcome"
)

// One test for each line of spec I; details of a line are in the tests beside it.

func TestI01_FirstRequestIsAcceptedWithItsProgress(t *testing.T) {
	w := setup(t)
	r := w.post(w.server(w.s), "a", "k", goodTrip)
	m := r.json(t)
	if r.status != http.StatusAccepted || m["state"] != "in_progress" || r.header.Get("Retry-After") != "5" {
		t.Errorf("got %d %s %v", r.status, r.body, r.header)
	}
	for _, field := range []string{"operation_id", "started_at", "estimated_completion_at", "timeout_at", "partial_result"} {
		if m[field] == nil {
			t.Errorf("%s is missing in %s", field, r.body)
		}
	}
	for _, field := range []string{"completed_steps", "current_step", "remaining_steps"} {
		if m["progress"].(map[string]any)[field] == nil {
			t.Errorf("progress.%s is missing in %s", field, r.body)
		}
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 1 {
		t.Errorf("sagas: got %d, want 1", n)
	}
}

func TestI02_RepeatWhileInProgressStartsNothing(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	if err := w.bind(id1("k"), instance); err != nil {
		t.Fatal(err)
	}
	w.mustRun(id1("k"), step{element: "hotel", undo: "hotel.cancel"}, w.confirm(id1("k")))
	w.deliver(false)
	r := w.post(srv, "a", "k", goodTrip)
	m := r.json(t)
	if r.status != http.StatusAccepted || m["operation_id"] != id1("k") || m["result"] != nil || r.header.Get(HeaderReplayed) != "true" {
		t.Errorf("got %d %s, want the state and no result", r.status, r.body)
	}
	if m["partial_result"].(map[string]any)["hotel"].(map[string]any)["status"] != "SUCCESS" {
		t.Errorf("partial result: got %v, want the hotel's", m["partial_result"])
	}
	if m["progress"].(map[string]any)["last_progress_event_id"] == nil {
		t.Errorf("last_progress_event_id is missing in %s", r.body)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 1 {
		t.Errorf("sagas: got %d, want 1", n)
	}
}

func TestI03_FinalAnswerIsTheSameForItsRetention(t *testing.T) {
	for _, c := range []struct {
		decision Decision
		state    string
		class    outcome.Class
	}{{Completed, "completed", outcome.Success}, {Failed, "failed", outcome.Business}, {Expired, "expired", outcome.Business}} {
		t.Run(c.state, func(t *testing.T) {
			w := setup(t)
			srv := w.server(w.s)
			w.post(srv, "a", "k", goodTrip)
			w.ended(id1("k"), c.decision)
			first := w.post(srv, "a", "k", goodTrip)
			if m := first.json(t); first.status != http.StatusOK || m["state"] != c.state || m["outcome_class"] != string(c.class) {
				t.Errorf("got %d %s", first.status, first.body)
			}
			w.deliver(true)
			for _, age := range []time.Duration{time.Hour, 29*24*time.Hour - time.Hour} {
				w.advance(age)
				if _, err := w.s.Retain(w.ctx, Retention{Archive: discard{}}); err != nil {
					t.Fatal(err)
				}
				for _, s := range []*Sagas{w.s, w.another(nil)} {
					again := w.server(s)
					for _, r := range []reply{w.post(again, "a", "k", goodTrip), w.do(again, http.MethodGet, "/v1/operations/"+id1("k"), "a", "")} {
						if r.status != http.StatusOK || !bytes.Equal(r.body, first.body) || r.header.Get(HeaderReplayed) != "true" || r.header.Get("Retry-After") != "" {
							t.Errorf("later: got %d %s %v, want %s", r.status, r.body, r.header, first.body)
						}
					}
				}
			}
		})
	}
}

func TestI04_UndoIsShownAndEndsExpired(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	id := id1("k")
	if err := w.bind(id, instance); err != nil {
		t.Fatal(err)
	}
	w.mustRun(id, step{element: "flight", undo: "flight.cancel"}, step{element: "hotel:1", undo: "hotel.cancel"})
	w.advance(31 * time.Minute)
	if out, err := w.giveUp(id, Expired); err != nil || !out.GaveUp {
		t.Fatalf("give-up: got %+v, %v", out, err)
	}
	w.deliver(false)
	m := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "").json(t)
	if m["state"] != "in_progress" || m["progress"].(map[string]any)["current_step"] != "compensation" {
		t.Errorf("during the undo: got %v", m)
	}
	if _, open := w.undoAll(id); open != 0 {
		t.Fatalf("open: got %d", open)
	}
	w.mustClose(id, closeIn{})
	w.deliver(false)
	m = w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "").json(t)
	if m["state"] != "expired" || len(m["undone"].([]any)) != 2 || m["reason"].(map[string]any)["code"] != "deadline" {
		t.Errorf("at the end: got %v, want expired with what was undone", m)
	}
}

func TestI06_PollsHaveACadence(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	w.advance(time.Hour)
	var waits []string
	for range 4 {
		waits = append(waits, w.post(srv, "a", "k", goodTrip).header.Get("Retry-After"))
		w.advance(time.Minute)
	}
	if got := strings.Join(waits, " "); got != "10 20 60 60" {
		t.Errorf("Retry-After: got %s, want 10 20 60 60", got)
	}
	w.post(srv, "a", "k", goodTrip)
	if r := w.post(srv, "a", "k", goodTrip); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "1" {
		t.Errorf("twice within a second: got %d", r.status)
	}
	if m := w.s.Metrics(); m.PollingViolations != 1 {
		t.Errorf("violations: got %d, want 1", m.PollingViolations)
	}
}

func TestI07_ForceRetryOnlyAfterAnUndoneEnd(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	force := func(key string) reply { return w.post(srv, "a", key, goodTrip, HeaderForceRetry, "true") }
	w.post(srv, "a", "k", goodTrip)
	if r := force("k"); r.status != http.StatusAccepted || r.json(t)["operation_id"] != id1("k") {
		t.Errorf("in progress: got %d %s, want the running attempt", r.status, r.body)
	}
	w.ended(id1("k"), Expired)
	second := OperationID("agency", "trip", "k", 2)
	if r := force("k"); r.status != http.StatusAccepted || r.json(t)["operation_id"] != second || r.header.Get(HeaderReplayed) != "" {
		t.Errorf("expired: got %d %s, want a new attempt", r.status, r.body)
	}
	var previous, internal, next string
	if err := w.records.QueryRow(w.ctx, `SELECT n.previous, n.internal_key, o.next FROM journeyman_records.record n, journeyman_records.record o
		WHERE n.operation_id = $1 AND o.operation_id = $2`, second, id1("k")).Scan(&previous, &internal, &next); err != nil {
		t.Fatal(err)
	}
	if previous != id1("k") || next != second || internal != "k@retry-1" {
		t.Errorf("link: got previous %s, next %s, key %s", previous, next, internal)
	}
	w.ended(second, Completed)
	if r := force("k"); r.status != http.StatusConflict {
		t.Errorf("completed: got %d %s, want 409", r.status, r.body)
	}
}

func TestI08_OtherPayloadAndMissingKeyAreProblems(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	for want, r := range map[int]reply{
		http.StatusUnprocessableEntity: w.post(srv, "a", "k", strings.Replace(goodTrip, "EUR", "USD", 1)),
		http.StatusBadRequest:          w.do(srv, http.MethodPost, "/v1/operations/trip", "a", goodTrip),
	} {
		var p Problem
		if err := json.Unmarshal(r.body, &p); err != nil || r.status != want || p.Status != want || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("got %d %s, want a problem with %d", r.status, r.body, want)
		}
	}
}

func TestI11_NothingSaysConfirmedBeforeTheDecisionCommits(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	id := id1("k")
	if err := w.bind(id, instance); err != nil {
		t.Fatal(err)
	}
	st := w.confirm(id)
	st.before = func() { // the decision is made and not committed
		w.deliver(false)
		if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); strings.Contains(string(r.body), "completed\"") {
			t.Errorf("before the commit: got %s", r.body)
		}
		if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga WHERE decision IS NOT NULL`); n != 0 {
			t.Errorf("decided before the commit: got %d", n)
		}
	}
	w.mustRun(id, st)
	w.deliver(false)
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); r.status != http.StatusAccepted && r.status != http.StatusTooManyRequests {
		t.Errorf("decided, not closed: got %d %s, want it in progress", r.status, r.body)
	}
}

func TestI12_AnotherTenantsOperationIsUnknown(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	for _, r := range []reply{
		w.do(srv, http.MethodGet, "/v1/operations/"+id1("k"), "b", ""), w.do(srv, http.MethodPost, "/v1/operations/"+id1("k")+"/cancel", "b", ""),
	} {
		if r.status != http.StatusNotFound || strings.Contains(string(r.body), "agency") {
			t.Errorf("got %d %s, want 404", r.status, r.body)
		}
	}
	if r := w.post(srv, "b", "k", goodTrip); r.status != http.StatusAccepted || r.json(t)["operation_id"] == id1("k") {
		t.Errorf("the same key of another tenant: got %d %s, want an operation of its own", r.status, r.body)
	}
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id1("k"), "nobody", ""); r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("without credentials: got %d, want 401", r.status)
	}
}
