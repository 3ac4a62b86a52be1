package operator_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/operator"
)

// fillBusy enters what a busy system holds: ended operations and sagas, few of them open, stuck or unknown.
func fillBusy(r *operatortest.Rig, n int) {
	r.Run(fmt.Sprintf(`INSERT INTO {{schema}}.operation (operation_id, business_key, job_type, saga_id, cluster, job_key, process_instance_key, element_instance_key,
			state, effect, class, reason, orphan, orphaned_at, created_at, settled_at, ask_at, asks_over_at)
		SELECT 's' || i / 5 || ':' || i, 'B-' || i / 5, 'type.' || i %% 20, 's' || i / 5, 'default', i, i / 5 + 1, i,
			CASE i %% 1000 WHEN 1 THEN 'calling' WHEN 2 THEN 'revoked' ELSE 'done' END, CASE WHEN i %% 1000 IN (1, 3) THEN 'maybe' ELSE 'none' END,
			CASE WHEN i %% 1000 IN (1, 2) THEN '' ELSE 'SUCCESS' END, CASE WHEN i %% 1000 = 1 THEN 'unknown' ELSE '' END,
			CASE WHEN i %% 1000 = 4 THEN 'open' ELSE '' END, CASE WHEN i %% 1000 = 4 THEN now() END, now() - interval '1 min' * i, now(),
			CASE WHEN i %% 2000 = 2 THEN now() END, CASE WHEN i %% 2000 = 1002 THEN now() END
		FROM generate_series(1, %d) i`, n))
	r.Run(fmt.Sprintf(`INSERT INTO {{schema}}.saga (id, tenant, type, key, attempt, business_key, correlation_id, traceparent, actor, variables, cluster,
			process_instance_key, decision, reason, state, started_at, deadline, begun_at, decided_at, closed_at)
		SELECT 's' || i, 'acme', 'tour-booking', 'K-' || i, 1, 'B-' || i, 'c', '', '{}', '{}', 'default', i + 1,
			CASE WHEN i %% 50 > 0 THEN 'completed' END, '', CASE WHEN i %% 50 > 0 THEN 'completed' ELSE 'running' END, now() - interval '5 min' * i, now() + interval '1 day',
			now(), CASE WHEN i %% 50 > 0 THEN now() END, CASE WHEN i %% 50 > 0 THEN now() END FROM generate_series(1, %d) i`, n/5))
	r.Run(fmt.Sprintf(`INSERT INTO {{schema}}.saga_step (operation_id, saga_id, name, job_type, element_id, class, undo_type, policy, commit_order, committed_at, undo_state)
		SELECT 's' || i / 5 || ':' || i, 's' || i / 5, 'step', 'type', 'e', 'SUCCESS', 'u', 'undo', i, now(), CASE WHEN i %% 1000 = 1 THEN 'parked' ELSE 'open' END
		FROM generate_series(1, %d) i`, n))
	r.Run(`ANALYZE {{schema}}.operation, {{schema}}.saga, {{schema}}.saga_step`)
}

// readsAll are the statements that may read one of the large tables from end to end, and why.
var readsAll = map[string]string{ //nolint:gochecknoglobals // a table of the test
	"sagaTypes": "the types of all sagas, for a filter form", "listSagas": "its filters are optional; a page stops at its limit",
}

// TestPlans: what operators look at is found by an index in tables that are large, whatever the values.
func TestPlans(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	fillBusy(r, 20000)
	pc, err := r.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Release()
	conn := pc.Conn()
	if _, err := conn.Exec(t.Context(), "SET plan_cache_mode TO force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	large := []string{"operation", "saga", "saga_step"}
	wants := map[string]string{
		"countEffects": "operation_odd", "unknown": "operation_odd", "asked": "operation_ask", "asksOver": "operation_odd",
		"orphans": "operation_odd", "revoked": "operation_odd", "incidentContext": "saga_instance", "sagaOperations": "operation_saga",
		"sagaSteps": "saga_step_saga", "risk": "saga_step_undo",
	}
	for name, sql := range operator.Statements(operatortest.Schema) {
		p, err := pgtest.Generic(t.Context(), conn, "q_"+name, sql)
		if err != nil {
			t.Error(err)
			continue
		}
		found := wants[name] == ""
		p.Walk(func(n pgtest.Plan) {
			found = found || n.Index == wants[name]
			if n.Node == "Seq Scan" && slices.Contains(large, n.Relation) && readsAll[name] == "" {
				t.Errorf("%s reads all of %s", name, n.Relation)
			}
		})
		if !found {
			t.Errorf("%s does not use index %s", name, wants[name])
		}
	}
}
