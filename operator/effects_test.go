package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/operator"
)

func shardOf(businessKey string) int16 { return events.Shard(businessKey) }

func TestEffectsEmpty(t *testing.T) {
	t.Parallel()
	d, _ := newDesk(t)
	e, err := d.Effects(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(operator.EffectCounts{}, e.Counts); diff != "" || len(e.AtRisk) != 0 || e.Counts.NeedsPerson() {
		t.Errorf("effects of an empty database: %s %v", diff, e.AtRisk)
	}
}

func TestEffects(t *testing.T) {
	t.Parallel()
	d, rig := newDesk(t)
	for n, c := range []struct{ cluster, kind, state string }{
		{"default", "complete", "pending"}, {"default", "throw", "gone"}, {"default", "fail", "parked"}, {"default", "publish", "pending"},
		{"default", "cancel", "parked"}, {"another", "complete", "pending"},
	} {
		rig.Run(`INSERT INTO {{schema}}.zeebe_command (cluster, kind, state, next_at, created_at, changed_at, job_key, operation_id)
			VALUES ($1, $2, $3, now(), {{schema}}.now() - interval '90 s', now(), $4, 'op_given:flight')`, c.cluster, c.kind, c.state, n+1)
	}
	rig.Saga("op_given", "compensating", "expired", "1 min")
	rig.Step("op_given", "flight", "SUCCESS", "open", `{"minor":80000,"currency":"EUR"}`, 1)
	rig.Step("op_given", "hotel", "SUCCESS", "running", `{"minor":500,"currency":"EUR"}`, 2)
	rig.Step("op_given", "transfer", "SUCCESS", "stuck", `{"minor":70,"currency":"USD"}`, 3)
	rig.Step("op_given", "pay", "SUCCESS", "parked", "", 4)
	rig.Step("op_given", "undone", "SUCCESS", "done", `{"minor":9,"currency":"EUR"}`, 5)
	rig.Step("op_given", "refused", "BUSINESS_ERROR", "none", "", 6)
	rig.Saga("op_good", "completed", "completed", "1 min") // its effects are wanted
	rig.Step("op_good", "flight", "SUCCESS", "open", `{"minor":80000,"currency":"EUR"}`, 1)
	rig.Operation("op_given:flight", "op_given", `class = 'SUCCESS'`)
	rig.Operation("u1", "", `state = 'calling', effect = 'maybe', reason = 'unknown'`)
	rig.Operation("u2", "", `state = 'done', effect = 'maybe', class = 'BUSINESS_ERROR', code = 'OUTCOME_UNKNOWN'`)
	rig.Operation("u3", "", `state = 'calling', effect = 'maybe'`) // under way
	rig.Operation("o1", "", `orphan = 'open', orphaned_at = {{schema}}.now()`)
	rig.Operation("o2", "", `orphan = 'undone', orphaned_at = {{schema}}.now()`)
	rig.Operation("o3", "", `orphan = 'parked', orphaned_at = {{schema}}.now()`)
	rig.Operation("r1", "", `state = 'revoked'`)
	rig.Operation("r2", "", `state = 'revoked', class = 'SUCCESS', undone_at = {{schema}}.now()`)
	rig.Operation("r3", "", `state = 'revoked', class = 'SUCCESS'`) // its undo runs

	rig.Operation("l1", "", `state = 'revoked', ask_at = {{schema}}.now() + interval '1 h', undone_at = {{schema}}.now(), asked = 2`)
	rig.Operation("l2", "", `state = 'revoked', asks_over_at = {{schema}}.now(), undone_at = {{schema}}.now()`)

	e, err := d.Effects(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	want := operator.EffectCounts{
		AnswersPending: 1, AnswersGone: 1, AnswersParked: 1, OtherCommands: 2, OtherCommandsParked: 1, UnknownResults: 2,
		OrphansProved: 1, OrphansUndone: 1, OrphansParked: 1, Revoked: 1, EffectsUndone: 3, LateAsked: 1, LateOpen: 1, UndoRunning: 1, UndoStuck: 1, UndoParked: 1,
	}
	if diff := cmp.Diff(want, e.Counts, cmpopts.IgnoreFields(operator.EffectCounts{}, "OldestAnswer", "OldestAnswerSeconds")); diff != "" {
		t.Errorf("counts: -want +got\n%s", diff)
	}
	if e.Counts.OldestAnswerSeconds < 89 || !e.Counts.NeedsPerson() {
		t.Errorf("oldest answer %v s, needs a person %v; want about 90 and true", e.Counts.OldestAnswerSeconds, e.Counts.NeedsPerson())
	}
	risk := []operator.Risk{
		{Money: operator.Money{}, Effects: 1}, {Money: operator.Money{Minor: 80500, Currency: "EUR"}, Effects: 2}, {Money: operator.Money{Minor: 70, Currency: "USD"}, Effects: 1},
	}
	if diff := cmp.Diff(risk, e.AtRisk); diff != "" {
		t.Errorf("amount at risk: -want +got\n%s", diff)
	}
	var lists []int
	lists = append(lists, len(e.AnswersPending), len(e.AnswersGone), len(e.AnswersParked), len(e.OtherCommands), len(e.Unknown), len(e.Orphans), len(e.Revoked),
		len(e.UndoRunning), len(e.UndoStuck), len(e.UndoParked), len(e.Asked), len(e.AsksOver))
	if diff := cmp.Diff([]int{1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1}, lists); diff != "" {
		t.Errorf("lengths of lists: -want +got\n%s", diff)
	}
	if a, o := e.Asked, e.AsksOver; len(a) == 1 && len(o) == 1 && (a[0].OperationID != "l1" || a[0].Asked != 2 || a[0].AskAt == nil || o[0].OperationID != "l2" || o[0].AsksOverAt == nil) {
		t.Errorf("asked: %+v, asked no more: %+v", a[0], o[0])
	}
	if c := e.AnswersPending[0]; c.SagaID != "op_given" || c.JobType != "job.type" || c.OperationID != "op_given:flight" {
		t.Errorf("pending answer: %+v, want its saga and job type", c)
	}
}

func TestMoneyString(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]operator.Money{
		"1250.00 EUR": {Minor: 125000, Currency: "EUR"}, "-0.05 EUR": {Minor: -5, Currency: "EUR"}, "5000 minor units JPY": {Minor: 5000, Currency: "JPY"},
		"-92233720368547758.08 EUR": {Minor: -1 << 63, Currency: "EUR"}, "": {},
	} {
		if got := m.String(); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}
