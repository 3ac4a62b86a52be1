package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator"
)

// operatorEnv is the environment that leads the operator's commands to a rig.
func operatorEnv(r *operatortest.Rig) map[string]string {
	return map[string]string{
		"JOURNEYMAN_DSN": r.Pool.Config().ConnString(), "JOURNEYMAN_SCHEMA": operatortest.Schema, "JOURNEYMAN_REST": r.REST, "USER": "ann",
	}
}

// decode runs a command with --json and reads its one document.
func decode[T any](t *testing.T, env map[string]string, wantCode int, args ...string) (doc T) {
	t.Helper()
	code, stdout, stderr := run(env, append(args, "--json")...)
	if code != wantCode {
		t.Fatalf("%v: code %d, want %d; stderr %s", args, code, wantCode, stderr)
	}
	dec := json.NewDecoder(strings.NewReader(stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		t.Fatalf("%v: %v in %s", args, err, stdout)
	}
	if dec.More() {
		t.Errorf("%v prints more than one document: %s", args, stdout)
	}
	return doc
}

// fields gives the sorted field names of an object.
func fields(t *testing.T, doc string) []string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(doc), &m); err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestOperatorCommands(t *testing.T) {
	t.Parallel()
	r := operatortest.New(t)
	env := operatorEnv(r)
	r.Saga("op_1", "running", "", "1 min")
	r.Booking("op_1")
	r.Step("op_1", "flightReserve:flight", "SUCCESS", "stuck", `{"minor":80000,"currency":"EUR"}`, 1)
	_, i := r.Incident(models.JobHotelReserve, "hotel said \x1b[31m503\nand more")
	_, j := r.Incident(models.JobFlightReserve, "no")

	code, stdout, stderr := run(env, "incident", "list")
	if code != ExitDone || !strings.Contains(stdout, i.Key.String()) || !strings.Contains(stdout, "hotel.reserve") || !strings.Contains(stdout, "acme:op_1") {
		t.Errorf("incident list: %d %s %s", code, stdout, stderr)
	}
	if strings.Contains(stdout, "\x1b") {
		t.Error("incident list lets a message speak to the terminal")
	}
	if list := decode[operator.IncidentList](t, env, ExitDone, "incident", "list"); list.Total != 2 || len(list.Incidents) != 2 {
		t.Errorf("incident list --json: %+v, want two", list)
	}
	if one := decode[operator.Incident](t, env, ExitDone, "incident", "show", i.Key.String()); one.ElementID != "hotelReserve" || !slices.Contains(one.VariableNames, "operationId") {
		t.Errorf("incident show --json: %+v", one)
	}
	if code, stdout, _ := run(env, "incident", "show", i.Key.String()); code != ExitDone || !strings.Contains(stdout, "hotelReserve") || strings.Contains(stdout, "tok_1") {
		t.Errorf("incident show: %d %s", code, stdout)
	}

	type answer struct {
		Results []retried `json:"results"`
	}
	got := decode[answer](t, env, ExitPartly, "incident", "retry", i.Key.String(), "4711", "--reason", "hotel is back", "--actor", "bob")
	if len(got.Results) != 2 || !got.Results[0].OK || got.Results[0].Result.AuditSeq != 1 || got.Results[1].OK || !strings.Contains(got.Results[1].Error, "not found") {
		t.Errorf("incident retry of one good and one unknown: %+v", got)
	}
	if code, stdout, stderr := run(env, "incident", "retry", i.Key.String(), "--reason", "again"); code != ExitWrong || stdout != "" || !strings.Contains(stderr, "retried already") {
		t.Errorf("second retry: %d %s %s; want 1 and the reason", code, stdout, stderr)
	}
	if code, stdout, _ := run(env, "incident", "retry", j.Key.String(), "--reason", "go", "--retries", "2"); code != ExitDone || !strings.Contains(stdout, "to 2, then resolve incident "+j.Key.String()+"; audit row 4") {
		t.Errorf("retry in text: %d %s", code, stdout)
	}
	type audit struct {
		Rows []operator.AuditRow `json:"rows"`
	}
	if rows := decode[audit](t, env, ExitDone, "audit", "list"); len(rows.Rows) != 4 || !strings.HasPrefix(rows.Rows[0].Actor, "ann@") || rows.Rows[3].Actor != "bob" ||
		rows.Rows[1].Action != "incident.retry.refused" || rows.Rows[2].Action != "incident.retry.refused" {
		t.Errorf("audit list: %+v, want ann's, two refusals and bob's", rows)
	}

	type sagaList struct {
		Sagas []operator.SagaRow `json:"sagas"`
	}
	if list := decode[sagaList](t, env, ExitDone, "saga", "list", "--stuck"); len(list.Sagas) != 1 || list.Sagas[0].Stuck != "undo stuck" {
		t.Errorf("saga list --stuck: %+v", list)
	}
	if s := decode[operator.Saga](t, env, ExitDone, "saga", "show", "op_1"); len(s.Steps) != 1 || len(s.Elements) == 0 || len(s.Timeline) == 0 || len(s.Problems) != 0 {
		t.Errorf("saga show --json: %+v", s)
	}
	if code, stdout, _ := run(env, "saga", "show", "op_1"); code != ExitDone || !strings.Contains(stdout, "flightReserve") || !strings.Contains(stdout, "incident.retry by bob") {
		t.Errorf("saga show: %d %s", code, stdout)
	}
	delete(env, "JOURNEYMAN_REST")
	if code, _, stderr := run(env, "saga", "show", "op_1"); code != ExitDone || !strings.Contains(stderr, "not shown: element states") {
		t.Errorf("saga show without an engine: %d %s; want it to say what is missing", code, stderr)
	}
	if code, stdout, _ := run(env, "effects"); code != ExitDone || !strings.Contains(stdout, "undo stuck") {
		t.Errorf("effects: %d %s", code, stdout)
	}
}

// TestOperatorJSONFields pins the documented field names: scripts depend on them.
func TestOperatorJSONFields(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	env := operatorEnv(r)
	r.Saga("op_1", "running", "", "1 min")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"saga list": {[]string{"saga", "list"}, []string{"sagas"}},
		"saga show": {[]string{"saga", "show", "op_1"}, []string{
			"actor", "attempt", "begun_at", "business_key", "closed_at", "cluster", "correlation_id", "deadline", "decided_at", "decision", "effects_open", "elements", "id", "key",
			"last_step", "problems", "process_instance_key", "reason", "started_at", "state", "steps", "steps_done", "stuck", "tenant", "timeline", "trace_id", "type", "variable_names",
		}},
		"effects": {[]string{"effects"}, []string{
			"amount_at_risk", "answers_gone", "answers_parked", "answers_pending", "at", "counts", "late_asked", "late_open", "orphans", "other_commands", "revoked", "undo_parked", "undo_running", "undo_stuck", "unknown_results",
		}},
		"audit list":   {[]string{"audit", "list"}, []string{"rows"}},
		"audit verify": {[]string{"audit", "verify"}, []string{"fault", "head", "rows"}},
	} {
		code, stdout, stderr := run(env, append(c.args, "--json")...)
		if code != ExitDone {
			t.Errorf("%s: %d %s", name, code, stderr)
			continue
		}
		if diff := cmp.Diff(c.want, fields(t, stdout)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		if strings.Contains(stdout, "null") && name != "saga show" && name != "saga list" {
			t.Errorf("%s has a null where a list belongs: %s", name, stdout)
		}
	}
}

func TestOperatorExitCodes(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	env := operatorEnv(r)
	env["JOURNEYMAN_REST"] = "http://127.0.0.1:1"
	dsn := env["JOURNEYMAN_DSN"]
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want int
		says string
	}{
		"no database":          {nil, []string{"saga", "list"}, ExitUsage, "--dsn or JOURNEYMAN_DSN"},
		"no engine":            {map[string]string{"JOURNEYMAN_DSN": dsn}, []string{"incident", "list"}, ExitUsage, "--rest or JOURNEYMAN_REST"},
		"engine down":          {env, []string{"incident", "list"}, ExitMissing, "does not answer"},
		"bad engine address":   {env, []string{"incident", "list", "--rest", "localhost"}, ExitUsage, `--rest: rest base "localhost"`},
		"database down":        {env, []string{"effects", "--dsn", "host=/nowhere user=x"}, ExitMissing, "database"},
		"bad state":            {env, []string{"saga", "list", "--state", "happy"}, ExitUsage, `state "happy": want one of`},
		"bad limit":            {env, []string{"effects", "--limit", "5000"}, ExitUsage, `limit "5000": want 1 to 1000`},
		"bad schema":           {env, []string{"effects", "--schema", "No"}, ExitUsage, `schema "No"`},
		"unknown saga":         {env, []string{"saga", "show", "op_9"}, ExitWrong, "not found"},
		"bad key":              {env, []string{"incident", "show", "abc"}, ExitUsage, `incident "abc": want a key`},
		"retry without reason": {env, []string{"incident", "retry", "12"}, ExitUsage, `--reason "": want why`},
		"retry by nobody":      {map[string]string{"JOURNEYMAN_DSN": dsn, "JOURNEYMAN_REST": "http://127.0.0.1:1"}, []string{"incident", "retry", "12", "--reason", "x"}, ExitUsage, "--actor"},
		"retry, engine down":   {env, []string{"incident", "retry", "12", "--reason", "x"}, ExitMissing, "does not answer"},
		"no tables":            {env, []string{"effects", "--schema", "other"}, ExitWrong, "does not exist"},
		"bad head":             {env, []string{"audit", "verify", "--head", "1:2"}, ExitUsage, `head "1:2"`},
		"foreign head":         {env, []string{"audit", "verify", "--head", "1:" + strings.Repeat("00", 32)}, ExitWrong, "audit is broken"},
		"no incident command":  {env, []string{"incident"}, ExitDone, "retry"},
	} {
		code, stdout, stderr := run(c.env, c.args...)
		if code != c.want || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s: %d, want %d with %q; got %s%s", name, code, c.want, c.says, stdout, stderr)
		}
	}
}
