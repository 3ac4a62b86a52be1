package operator_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// troubled makes a booking whose flight is reserved and whose hotel waits for a person.
func troubled(t *testing.T) (*operatortest.Rig, operator.Incident) {
	t.Helper()
	r := operatortest.New(t)
	r.Saga("op_1", "running", "", "1 min")
	r.Booking("op_1")
	flight := r.Job(models.JobFlightReserve)
	r.Complete(flight, `{"reservationId":"FL-1"}`)
	r.Step("op_1", "flightReserve:flight", "SUCCESS", "open", `{"minor":80000,"currency":"EUR"}`, 1)
	job, i := r.Incident(models.JobHotelReserve, "hotel API said 503")
	r.Operation("op_1:hotelReserve:hotel", "op_1", `job_type = 'hotel.reserve', class = 'FATAL_ERROR', reason = 'error', settled_at = {{schema}}.now()`)
	r.Run(`UPDATE {{schema}}.operation SET process_instance_key = $1, element_instance_key = $2, job_key = $3`, job.ProcessInstanceKey, job.ElementInstanceKey, job.Key)
	return r, i
}

func count(t *testing.T, r *operatortest.Rig, sql string) (n int) {
	t.Helper()
	if err := r.Pool.QueryRow(t.Context(), strings.ReplaceAll(sql, "{{schema}}", operatortest.Schema)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestIncident(t *testing.T) {
	t.Parallel()
	r, i := troubled(t)
	got, err := r.Desk.Incident(t.Context(), i.Key)
	if err != nil {
		t.Fatal(err)
	}
	want := operator.Incident{
		Key: i.Key, Cluster: "default", State: "ACTIVE", ErrorType: "JOB_NO_RETRIES", Reason: "hotel API said 503", CreatedAt: got.CreatedAt,
		ProcessID: "tour-booking", ProcessInstanceKey: i.ProcessInstanceKey, ElementID: "hotelReserve", ElementInstanceKey: i.ElementInstanceKey, JobKey: i.JobKey,
		JobType: "hotel.reserve", OperationID: "op_1:hotelReserve:hotel", SagaID: "op_1", SagaType: "tour-booking", SagaState: "running", BusinessKey: "acme:op_1",
	}
	names, op := got.VariableNames, got.Operation
	got.VariableNames, got.Operation = nil, nil
	if a, b := jsonOf(t, got), jsonOf(t, want); a != b {
		t.Errorf("incident:\n got %s\nwant %s", a, b)
	}
	if op == nil || op.Class != "FATAL_ERROR" {
		t.Errorf("operation behind it: %+v, want a FATAL_ERROR", op)
	}
	if !slices.Contains(names, "operationId") || !slices.Contains(names, "payment") {
		t.Errorf("variable names: %q, want those of the task and of the process", names)
	}
	if text := jsonOf(t, names); strings.Contains(text, "tok_1") {
		t.Errorf("a variable's value is shown: %s", text)
	}
	if _, err := r.Desk.Incident(t.Context(), 4711); !errors.Is(err, operator.ErrNotFound) {
		t.Errorf("unknown incident: %v, want ErrNotFound", err)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestIncidentWithoutOperation is a job that failed before anything was claimed: its type comes from the engine, its saga from the instance.
func TestIncidentWithoutOperation(t *testing.T) {
	t.Parallel()
	r, i := troubled(t)
	r.Run(`UPDATE {{schema}}.operation SET element_instance_key = 1, job_key = 1`)
	got, err := r.Desk.Incidents(t.Context(), operator.IncidentFilter{})
	if err != nil || len(got.Incidents) != 1 || got.Total != 1 {
		t.Fatalf("Incidents: %+v, %v", got, err)
	}
	if one := got.Incidents[0]; one.OperationID != "" || one.JobType != "hotel.reserve" || one.SagaID != "op_1" || one.Key != i.Key {
		t.Errorf("incident: %+v, want no operation, job type hotel.reserve, saga op_1", one)
	}
}

func TestRetryIncident(t *testing.T) {
	t.Parallel()
	r, i := troubled(t)
	res, err := r.Desk.RetryIncident(t.Context(), operator.RetryRequest{Key: i.Key, Actor: "ann", Reason: "the hotel is back", Retries: 3})
	if err != nil {
		t.Fatal(err)
	}
	if res.AuditSeq != 1 || res.CommandID == 0 || res.Retries != 3 || res.JobKey != i.JobKey || !strings.Contains(res.Happened, "to 3, then resolve incident "+i.Key.String()) {
		t.Errorf("result: %+v", res)
	}
	row, err := r.Desk.AuditRow(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if row.Actor != "ann" || row.Action != operator.ActionRetry || row.Target != "incident:default:"+i.Key.String() || row.Reason != "the hotel is back" ||
		!strings.Contains(string(row.Before), `"state":"ACTIVE"`) || !strings.Contains(string(row.After), `"retries":3`) {
		t.Errorf("audit row: %+v", row)
	}
	got, err := r.Desk.Incident(t.Context(), i.Key)
	if err != nil || !got.Retry.Pending() || got.Retry.Actor != "ann" {
		t.Errorf("incident after it was queued: retry %+v, %v; want a pending one", got.Retry, err)
	}

	r.Deliver()
	got, err = r.Desk.Incident(t.Context(), i.Key)
	if err != nil || got.State != "RESOLVED" || got.Retry.Command != "delivered" {
		t.Errorf("incident after delivery: %s, %+v, %v; want RESOLVED and delivered", got.State, got.Retry, err)
	}
	if job := r.Job(models.JobHotelReserve); job.Retries != 3 {
		t.Errorf("job after the retry: %d retries, want 3", job.Retries)
	}
	if _, err := r.Desk.RetryIncident(t.Context(), operator.RetryRequest{Key: i.Key, Actor: "ann", Reason: "again"}); !errors.Is(err, operator.ErrNotActive) {
		t.Errorf("retry of a resolved incident: %v, want ErrNotActive", err)
	}
	s, err := r.Desk.Saga(t.Context(), "op_1")
	if err != nil || !slices.ContainsFunc(s.Timeline, func(m operator.Moment) bool { return m.Source == "operator" && m.What == "incident.retry by ann" }) {
		t.Errorf("timeline of the saga lacks the retry: %+v, %v", s.Timeline, err)
	}
	if v, err := r.Desk.VerifyAudit(t.Context()); err != nil || !v.OK() || v.Rows != 2 {
		t.Errorf("audit: %+v, %v; want the retry and the refusal", v, err)
	}
}

// TestRetryIncidentOnce lets many people press the button at once: one command, one audit row, and one for each refusal.
func TestRetryIncidentOnce(t *testing.T) {
	t.Parallel()
	r, i := troubled(t)
	const people = 12
	errs := make([]error, people)
	var wg sync.WaitGroup
	for n := range people {
		wg.Go(func() {
			_, errs[n] = r.Desk.RetryIncident(t.Context(), operator.RetryRequest{Key: i.Key, Actor: "person", Reason: "go"})
		})
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case !errors.Is(err, operator.ErrRetried) || !strings.Contains(err.Error(), "audit row 1"):
			t.Errorf("a second retry: %v, want ErrRetried that names the first", err)
		}
	}
	commands, rows := count(t, r, `SELECT count(*) FROM {{schema}}.zeebe_command`), count(t, r, `SELECT count(*) FROM {{schema}}.operator_audit WHERE action = 'incident.retry'`)
	refused := count(t, r, `SELECT count(*) FROM {{schema}}.operator_audit WHERE action = 'incident.retry.refused' AND after ->> 'refused' LIKE '%retried already%'`)
	if done != 1 || commands != 1 || rows != 1 || refused != people-1 {
		t.Errorf("%d of %d were accepted, %d commands, %d audit rows, %d of refusals; want 1 of each and the rest refused", done, people, commands, rows, refused)
	}
}

// TestRetryReplacesParked: a command that the engine refused for good does not block the next retry.
func TestRetryReplacesParked(t *testing.T) {
	t.Parallel()
	r, i := troubled(t)
	ask := operator.RetryRequest{Key: i.Key, Actor: "ann", Reason: "go"}
	first, err := r.Desk.RetryIncident(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	r.Run(`UPDATE {{schema}}.zeebe_command SET state = 'parked', last_error = 'no'`)
	second, err := r.Desk.RetryIncident(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, r, `SELECT count(*) FROM {{schema}}.zeebe_command`); n != 1 || second.CommandID == first.CommandID || second.AuditSeq != 2 {
		t.Errorf("after the second retry: %d commands, %+v then %+v; want the parked one replaced", n, first, second)
	}
	if _, err := r.Desk.RetryIncident(t.Context(), ask); !errors.Is(err, operator.ErrRetried) {
		t.Errorf("third retry: %v, want ErrRetried", err)
	}
}

// TestRetryIsOneTransaction breaks the last statement of a retry: nothing of it may stay.
func TestRetryIsOneTransaction(t *testing.T) {
	t.Parallel()
	r, i := troubled(t)
	r.Run(`ALTER TABLE {{schema}}.operator_audit ADD CHECK (actor <> 'bob')`)
	if _, err := r.Desk.RetryIncident(t.Context(), operator.RetryRequest{Key: i.Key, Actor: "bob", Reason: "go"}); err == nil {
		t.Error("retry with a broken audit: no error")
	}
	for _, table := range []string{"zeebe_command", "operator_retry", "operator_audit"} {
		if n := count(t, r, `SELECT count(*) FROM {{schema}}.`+table); n != 0 {
			t.Errorf("%s has %d rows after a failed retry, want 0", table, n)
		}
	}
	if _, err := r.Desk.RetryIncident(t.Context(), operator.RetryRequest{Key: i.Key, Actor: "ann", Reason: "go"}); err != nil {
		t.Errorf("retry after a failed one: %v", err)
	}
}

func TestSagaOfEngine(t *testing.T) {
	t.Parallel()
	r, _ := troubled(t)
	s, err := r.Desk.Saga(t.Context(), "op_1")
	if err != nil || len(s.Problems) != 0 {
		t.Fatalf("Saga: %v, problems %q", err, s.Problems)
	}
	paints := s.Paints()
	for id, want := range map[string]operator.Paint{
		"ordered": operator.Completed, "begin": operator.Completed, "flightReserve": operator.Completed, "hotelReserve": operator.Troubled, "transferReserve": operator.Active, "close": operator.Untouched,
	} {
		if paints[id] != want {
			t.Errorf("paint of %s: %q, want %q", id, paints[id], want)
		}
	}
	r.Run(`UPDATE {{schema}}.saga_step SET undo_state = 'done', undo_at = {{schema}}.now()`)
	if s, err = r.Desk.Saga(t.Context(), "op_1"); err != nil || s.Paints()["flightReserve"] != operator.Compensated {
		t.Errorf("paint of an undone step: %q, %v; want compensated", s.Paints()["flightReserve"], err)
	}
	if xml, err := r.Desk.ModelXML(t.Context(), s.SagaRow); err != nil || !strings.Contains(string(xml), `id="hotelReserve"`) {
		t.Errorf("ModelXML: %.40q, %v; want the deployed model", xml, err)
	}
	r.Run(`UPDATE {{schema}}.saga SET cluster = 'elsewhere'`)
	if s, err = r.Desk.Saga(t.Context(), "op_1"); err != nil || len(s.Problems) != 1 || !strings.Contains(s.Problems[0], `cluster "elsewhere"`) {
		t.Errorf("saga of another cluster: problems %q, %v; want the cluster named", s.Problems, err)
	}
}

// TestEngineTrouble gives the desk an engine that answers badly: the error says what came back.
func TestEngineTrouble(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"problem": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"detail":"backpressure"}`))
		}, "backpressure"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) }, "invalid character"},
		"bad key": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"items":[{"incidentKey":"x"}]}`))
		}, "key"},
		"no time": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"items":[{"creationTime":"noon"}]}`))
		}, `creationTime "noon": want a time`},
	} {
		srv := httptest.NewServer(c.answer)
		client, err := rest.New(rest.Config{Base: srv.URL, HTTP: srv.Client()})
		if err != nil {
			t.Fatal(err)
		}
		d := r.NewDesk(operator.Config{Engine: client})
		if _, err := d.Incidents(t.Context(), operator.IncidentFilter{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		srv.Close()
		if _, err := d.Incidents(t.Context(), operator.IncidentFilter{}); !errors.Is(err, operator.ErrUnreachable) {
			t.Errorf("%s, closed: %v, want ErrUnreachable", name, err)
		}
	}
}

func TestGroupIncidents(t *testing.T) {
	t.Parallel()
	all := []operator.Incident{
		{Key: 1, ProcessID: "p", ElementID: "pay", ErrorType: "JOB_NO_RETRIES", Reason: "order 17 refused"},
		{Key: 2, ProcessID: "p", ElementID: "hotel", ErrorType: "JOB_NO_RETRIES", Reason: "503"},
		{Key: 3, ProcessID: "p", ElementID: "pay", ErrorType: "JOB_NO_RETRIES", Reason: "order 18 refused\nstack"},
	}
	groups := operator.GroupIncidents(all)
	if len(groups) != 2 || len(groups[0].Incidents) != 2 || groups[0].ElementID != "pay" {
		t.Errorf("groups: %+v, want two of pay first, one of hotel", groups)
	}
	if operator.GroupIncidents(nil) != nil {
		t.Error("groups of nothing: not nil")
	}
}
