package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator"
)

// manualSaga makes a saga that gave up and was left to a person, with a process instance that still runs.
func manualSaga(t *testing.T) *operatortest.Rig {
	t.Helper()
	r := operatortest.New(t)
	if err := app.Migrate(t.Context(), r.Pool, operatortest.Schema, "rig_records"); err != nil {
		t.Fatal(err)
	}
	r.Saga("op_1", "manual", "failed", "1 min")
	r.Booking("op_1")
	r.Run(`UPDATE {{schema}}.saga SET variables = $1 WHERE id = 'op_1'`, tour)
	r.Step("op_1", "flightReserve:flight", "SUCCESS", "parked", `{"minor":80000,"currency":"EUR"}`, 1)
	return r
}

// TestSagaRemediate_P2: a person closes a saga that no process instance will end. Saga, audit row and audit event commit together,
// refused attempts are audited, and the saga's timeline tells of all of it.
func TestSagaRemediate_P2(t *testing.T) {
	t.Parallel()
	r := manualSaga(t)
	env := operatorEnv(r)
	env["JOURNEYMAN_RECORD_SCHEMA"] = "rig_records"
	act := func(more ...string) []string {
		return append([]string{"saga", "remediate", "op_1", "--reason", "the airline released it", "--outcome", "failed"}, more...)
	}
	if code, _, stderr := run(env, act()...); code != ExitWrong || !strings.Contains(stderr, "still runs") {
		t.Errorf("with a running instance: %d %s", code, stderr)
	}
	s, err := r.Desk.Saga(t.Context(), "op_1")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Conn.CancelInstance(t.Context(), int64(s.ProcessInstanceKey)); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(env, "saga", "remediate", "op_1", "--reason", "x", "--outcome", "completed"); code != ExitWrong || !strings.Contains(stderr, "cannot end completed") {
		t.Errorf("a saga that failed cannot complete: %d %s", code, stderr)
	}
	preview := decode[operator.RemediatePreview](t, env, ExitDone, act("--dry-run")...)
	if preview.Ends != "failed" || len(preview.Settled) != 1 || preview.Settled[0].Amount.String() != "800.00 EUR" {
		t.Errorf("preview: %+v", preview)
	}
	report := writeFile(t, t.TempDir(), "report.json", `{"refund":"by bank transfer"}`)
	out := decode[operator.RemediateResult](t, env, ExitDone, act("--report", report, "--actor", "bob")...)
	if out.AuditSeq != 3 || out.Ends != "failed" {
		t.Errorf("remediation: %+v, want audit row 3 behind two refusals", out)
	}
	if code, _, stderr := run(env, act()...); code != ExitWrong || !strings.Contains(stderr, "not left to a person") {
		t.Errorf("twice: %d %s", code, stderr)
	}

	if s, err = r.Desk.Saga(t.Context(), "op_1"); err != nil || s.State != "failed" || s.ClosedAt == nil {
		t.Errorf("saga: %s, %v; want it failed and closed", s.State, err)
	}
	for _, want := range []string{"saga.remediate by bob", "saga.remediate.refused by ann"} {
		if !slices.ContainsFunc(s.Timeline, func(m operator.Moment) bool { return m.Source == "operator" && strings.HasPrefix(m.What, want) }) {
			t.Errorf("the timeline lacks %q: %+v", want, s.Timeline)
		}
	}
	// Each audit row has its event, in the ledger of class audit, with the row's hash.
	rows, err := r.Pool.Query(t.Context(), `SELECT body FROM jm_test.event_ledger WHERE type = $1 ORDER BY link`, operator.EventActed)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var events []operator.Acted
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			t.Fatal(err)
		}
		var e struct{ Data operator.Acted }
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		events = append(events, e.Data)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(events) != 4 {
		t.Fatalf("%d audit events, want one for each of four rows", len(events))
	}
	for i, e := range events {
		row, err := r.Desk.AuditRow(t.Context(), int64(i+1))
		if err != nil || e.Seq != row.Seq || e.Hash != row.Hash || e.Action != row.Action {
			t.Errorf("event %d: %+v, want row %+v, %v", i, e, row, err)
		}
	}
	var final string
	if err := r.Pool.QueryRow(t.Context(), `SELECT convert_from(body, 'UTF8') FROM jm_test.outbox WHERE type = 'platform.saga.completed' OR type LIKE 'platform.saga.%' ORDER BY id DESC LIMIT 1`).Scan(&final); err != nil {
		t.Fatal(err)
	}
	var p struct{ Data struct{ Final []byte } }
	if err := json.Unmarshal([]byte(final), &p); err != nil || !strings.Contains(string(p.Data.Final)+final, "by bank transfer") {
		t.Errorf("final answer: %s, %v; want the report in it", final, err)
	}
}

func TestSagaRemediate_refuses(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	env := operatorEnv(r)
	env["JOURNEYMAN_REST"] = "http://127.0.0.1:1"
	bad := writeFile(t, t.TempDir(), "report.json", `[1]`)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no reason":   {[]string{"--outcome", "failed"}, ExitUsage, "reason"},
		"no outcome":  {[]string{"--reason", "x"}, ExitUsage, `outcome "": want completed or failed`},
		"a list":      {[]string{"--reason", "x", "--outcome", "failed", "--report", bad}, ExitUsage, "want a JSON object"},
		"no report":   {[]string{"--reason", "x", "--outcome", "failed", "--report", filepath.Join(t.TempDir(), "none")}, ExitUsage, "--report: "},
		"no such one": {[]string{"--reason", "x", "--outcome", "failed"}, ExitWrong, "not found"},
	} {
		if code, _, stderr := run(env, append([]string{"saga", "remediate", "op_9"}, c.args...)...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, want %d and %q: %s", name, code, c.code, c.want, stderr)
		}
	}
	if rows, err := r.Desk.Audit(t.Context(), "saga:op_9", 0, 10); err != nil || len(rows) != 1 || rows[0].Action != "saga.remediate.refused" {
		t.Errorf("audit: %+v, %v; want the one well-formed attempt", rows, err)
	}
}
