package sagas

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// readsAll are the statements that may read one of the large tables from end to end, and why.
var readsAll = map[string]string{ //nolint:gochecknoglobals // a table of the test
	"list": "its filters are optional; a page stops at its limit",
}

// TestPlans: what a saga does in its life, and every sweep, finds its rows by an index in large tables, whatever the values.
func TestPlans(t *testing.T) {
	w := setup(t)
	for _, sql := range []string{
		`INSERT INTO journeyman.operation (operation_id, business_key, job_type, saga_id, cluster, process_instance_key, state, class, created_at)
			SELECT 's' || i / 5 || ':' || i, 'B', 'type', 's' || i / 5, 'c', i / 5 + 1, 'done', 'SUCCESS', now() FROM generate_series(1, 20000) i`,
		`INSERT INTO journeyman.saga (id, tenant, type, key, attempt, business_key, correlation_id, traceparent, actor, variables, cluster, process_instance_key,
				decision, reason, state, started_at, deadline, begun_at, decided_at, closed_at)
			SELECT 's' || i, 'acme', 'trip', 'K-' || i, 1, 'B-' || i, 'c', '', '{}', '{}', 'c', i + 1, CASE WHEN i % 100 > 0 THEN 'completed' END, '',
				CASE WHEN i % 100 > 0 THEN 'completed' ELSE 'running' END, now() - interval '5 min' * i, now() + interval '1 day', now(),
				CASE WHEN i % 100 > 0 THEN now() END, CASE WHEN i % 100 > 0 THEN now() END FROM generate_series(1, 4000) i`,
		`INSERT INTO journeyman.saga_step (operation_id, saga_id, name, job_type, element_id, class, undo_type, policy, commit_order, committed_at, undo_state)
			SELECT 's' || i / 5 || ':' || i, 's' || i / 5, 'step', 'type', 'e', 'SUCCESS', 'u', 'undo', i, now(), CASE WHEN i % 1000 = 1 THEN 'parked' ELSE 'open' END
			FROM generate_series(1, 20000) i`,
		`ANALYZE journeyman.operation, journeyman.saga, journeyman.saga_step`,
	} {
		if _, err := w.domain.Exec(w.ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	pc, err := w.domain.Acquire(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Release()
	conn := pc.Conn()
	if _, err := conn.Exec(w.ctx, "SET plan_cache_mode TO force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	large := []string{"operation", "saga", "saga_step"}
	wants := map[string]string{"inFlight": "operation_saga", "breaches": "operation_saga", "orphans": "saga_step_undo"}
	seen := 0
	for name, sql := range statements(w.s.sql) {
		if name == "keepOpen" { // a condition
			continue
		}
		p, err := pgtest.Generic(w.ctx, conn, "q_"+name, sql)
		if err != nil {
			t.Error(err)
			continue
		}
		seen++
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
	if seen < 30 {
		t.Errorf("%d statements looked at, want all of the domain database", seen)
	}
}

// statements gives every statement of a set by name.
func statements(set any) map[string]string {
	out := map[string]string{}
	v := reflect.ValueOf(set)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String && strings.TrimSpace(f.String()) != "" {
			out[v.Type().Field(i).Name] = f.String()
		}
	}
	return out
}
