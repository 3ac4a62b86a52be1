package operator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/operator"
)

// hostile would break out of HTML, SQL or a terminal where it is not escaped.
const hostile = `<script>alert("x")</script>'; DROP TABLE saga; --`

func ids(list []operator.SagaRow) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.ID)
	}
	return out
}

func TestSagas(t *testing.T) {
	t.Parallel()
	d, rig := newDesk(t)
	rig.Saga("op_fresh", "running", "", "1 s")
	rig.Saga("op_unbegun", "starting", "", "5 min")
	rig.Saga("op_late", "running", "", "40 min")
	rig.Saga("op_slow", "compensating", "failed", "20 min")
	rig.Saga("op_undo", "compensating", "failed", "2 min")
	rig.Step("op_undo", "flight", "SUCCESS", "stuck", "", 1)
	rig.Saga("op_done", "completed", "completed", "1 day")
	rig.Step("op_done", "flight", "SUCCESS", "open", "", 1)
	rig.Step("op_done", "hotel", "BUSINESS_ERROR", "none", "", 2)
	rig.Saga(hostile, "failed", "failed", "2 days")

	for name, c := range map[string]struct {
		filter operator.SagaFilter
		want   []string
	}{
		"all, newest first": {operator.SagaFilter{}, []string{"op_fresh", "op_undo", "op_unbegun", "op_slow", "op_late", "op_done", hostile}},
		"state":             {operator.SagaFilter{State: "running"}, []string{"op_fresh", "op_late"}},
		"type":              {operator.SagaFilter{Type: "refund"}, nil},
		"business key":      {operator.SagaFilter{BusinessKey: "acme:op_done"}, []string{"op_done"}},
		"hostile key":       {operator.SagaFilter{BusinessKey: "acme:" + hostile}, []string{hostile}},
		"tenant":            {operator.SagaFilter{Tenant: "other"}, nil},
		"stuck":             {operator.SagaFilter{Stuck: true}, []string{"op_undo", "op_unbegun", "op_slow", "op_late"}},
		"page":              {operator.SagaFilter{After: "op_slow", Limit: 2}, []string{"op_late", "op_done"}},
	} {
		got, err := d.Sagas(t.Context(), c.filter)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, ids(got)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	all, err := d.Sagas(t.Context(), operator.SagaFilter{Stuck: true})
	if err != nil {
		t.Fatal(err)
	}
	var why []string
	for _, s := range all {
		why = append(why, s.ID+": "+s.Stuck)
	}
	want := []string{"op_undo: undo stuck", "op_unbegun: not begun", "op_slow: undo takes too long", "op_late: past its deadline without a decision"}
	if diff := cmp.Diff(want, why); diff != "" {
		t.Errorf("reasons: -want +got\n%s", diff)
	}
	one, err := d.Sagas(t.Context(), operator.SagaFilter{BusinessKey: "acme:op_done"})
	if err != nil || one[0].StepsDone != 1 || one[0].LastStep != "hotel" || one[0].EffectsOpen != 0 {
		t.Errorf("steps of op_done: %+v, %v; want 1 done, last hotel, nothing to undo: it completed", one, err)
	}
}

func TestSagasRefusesBadFilters(t *testing.T) {
	t.Parallel()
	d, _ := newDesk(t)
	_, err := d.Sagas(t.Context(), operator.SagaFilter{State: "happy", Limit: -1, BusinessKey: "a\x00"})
	for _, want := range []string{`state "happy": want one of starting,`, `limit "-1": want 1 to 1000`, `business key "a\x00": want no control characters`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Sagas: %v, want it to say %s", err, want)
		}
	}
}

func TestSaga(t *testing.T) {
	t.Parallel()
	d, rig := newDesk(t)
	const id = "op_1"
	rig.Saga(id, "compensating", "failed", "2 min")
	rig.Step(id, "flight", "SUCCESS", "done", `{"minor":80000,"currency":"EUR"}`, 1)
	rig.Step(id, "transfer", "SUCCESS", "open", `{"minor":2500,"currency":"EUR"}`, 2)
	rig.Step(id, "pay", "SUCCESS", "open", "", 3)
	rig.Operation(id+":flight", id, `class = 'SUCCESS', settled_at = {{schema}}.now(), attempts = 2`)
	rig.Operation(id+":late", id, `state = 'revoked', reason = 'failed', settled_at = {{schema}}.now()`)
	rig.Operation(id+":hotel", id, `class = 'BUSINESS_ERROR', code = 'SOLD_OUT', settled_at = {{schema}}.now()`)
	rig.Operation(id+":pay:undo", id, `class = 'FATAL_ERROR', message = 'no such authorization', settled_at = {{schema}}.now(), attempts = 3`)
	rig.Operation(id+":transfer:undo", id, `state = 'calling'`)
	rig.Run(`INSERT INTO {{schema}}.zeebe_command (cluster, kind, state, next_at, created_at, changed_at, operation_id, job_key) VALUES ('default', 'complete', 'gone', now(), now(), now(), $1, 7)`, id+":flight")
	rig.Run(`INSERT INTO {{schema}}.event_log (logged_at, shard, id, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
		VALUES ({{schema}}.now(), ` + fmt.Sprint(shardOf("acme:"+id)) + `, 1, gen_random_uuid(), 'tour.segment.reserved', 1, 'domain', 't', 'acme:op_1', 4, 'op_1:flight', '{}', 'secret', now(), now())`)

	s, err := d.Saga(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, st := range s.Steps {
		steps = append(steps, fmt.Sprintf("%s %s %d %s %v", st.Name, st.UndoState, st.UndoAttempts, st.UndoError, st.Amount))
	}
	want := []string{"flight done 0  800.00 EUR", "transfer running 0  25.00 EUR", "pay stuck 3 no such authorization <nil>"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps: -want +got\n%s", diff)
	}
	if s.TraceID != "0123456789abcdef0123456789abcdef" || s.Actor != "acme" || !slices.Equal(s.VariableNames, []string{"booking", "secretToken"}) {
		t.Errorf("saga: trace %q, actor %q, variables %q", s.TraceID, s.Actor, s.VariableNames)
	}
	var lines []string
	for n, m := range s.Timeline {
		lines = append(lines, strings.TrimSpace(m.Source+" "+m.Step+" "+m.What+" "+m.Level))
		if n > 0 && m.At.Before(s.Timeline[n-1].At) {
			t.Errorf("timeline goes back at %d: %+v", n, m)
		}
		if strings.Contains(fmt.Sprint(m), "s3cr3t") || strings.Contains(fmt.Sprint(m), "secret ") {
			t.Errorf("timeline shows a payload: %+v", m)
		}
	}
	for _, want := range []string{
		"saga  accepted", "saga  decided failed warn", "operation flight SUCCESS", "operation late revoked warn", "operation hotel BUSINESS_ERROR SOLD_OUT warn",
		"operation pay:undo FATAL_ERROR bad", "command flight complete gone bad", "event flight tour.segment.reserved.v1", "ledger flight undo done",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("timeline lacks %q; it is\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "element states: "+operator.ErrNoEngine.Error()) {
		t.Errorf("problems: %q, want one that says that the engine cannot be asked", s.Problems)
	}
	paints := s.Paints()
	if paints["flight"] != operator.Compensated || paints["pay"] != operator.Troubled || paints["transfer"] != operator.Completed {
		t.Errorf("paints without engine: %v", paints)
	}
	if _, err := d.Saga(t.Context(), "op_none"); !errors.Is(err, operator.ErrNotFound) {
		t.Errorf("Saga of an unknown id: %v, want ErrNotFound", err)
	}
}
