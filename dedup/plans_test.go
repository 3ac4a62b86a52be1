package dedup

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// fillOperations enters n operations as a busy system leaves them: ended ones, some under a lease, some revoked, some to be asked about.
func fillOperations(ctx context.Context, pool *pgxpool.Pool, n int) error {
	for _, sql := range []string{
		fmt.Sprintf(`INSERT INTO journeyman.operation (operation_id, tenant, business_key, job_type, saga_id, fingerprint, fingerprint_fields, state, effect, class,
				variables, result_hash, bytes, attempts, meta, cluster, job_key, process_instance_key, element_instance_key, created_at, settled_at, expires_at, lease_until, owner, ask_at)
			SELECT md5(i::text) || ':step', 't' || i %% 7, 'B-' || i, 'type.' || i %% 20, CASE WHEN i %% 3 = 0 THEN md5((i / 5)::text) ELSE '' END, decode(md5(i::text), 'hex'), '{a,b}',
				CASE WHEN i %% 1000 = 1 THEN 'calling' WHEN i %% 1000 = 2 THEN 'revoked' ELSE 'done' END, CASE WHEN i %% 1000 = 1 THEN 'maybe' ELSE 'none' END,
				CASE WHEN i %% 1000 = 1 THEN '' ELSE 'SUCCESS' END, '{"id":"R-1"}', decode(md5(i::text), 'hex'), 12, 1, '{"Type":"type"}', 'c', i, i / 3 + 1, i,
				now() - interval '1 day' * (i %% 40), now() - interval '1 day' * (i %% 40), CASE WHEN i %% 1000 = 1 THEN NULL ELSE now() + interval '1 day' * (20 - i %% 40) END,
				CASE WHEN i %% 1000 = 1 THEN now() - interval '1 minute' END, CASE WHEN i %% 1000 = 1 THEN 'w' ELSE '' END, CASE WHEN i %% 1000 = 2 THEN now() END
			FROM generate_series(1, %d) i`, n),
		fmt.Sprintf(`INSERT INTO journeyman.operation_attempt (cluster, job_key, process, open, opened_at)
			SELECT 'c', i, gen_random_uuid(), true, now() FROM generate_series(1, %d) i`, min(n, 20000)),
		`INSERT INTO journeyman.worker_process SELECT gen_random_uuid(), 'w', now() FROM generate_series(1, 50)`,
		fmt.Sprintf(`INSERT INTO journeyman.claim_check SELECT md5(i::text), md5(i::text), '', '', now(), now() + interval '1 day' * (i %% 30) FROM generate_series(1, %d) i`, min(n, 20000)),
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// readsAll are the statements that may read a table from end to end, and why.
var readsAll = map[string]string{ //nolint:gochecknoglobals // a table of the test
	"list": "for operators", "counts": "for operators",
	"purgeAttempts": "once a round, the table is small", "purgeProcesses": "once a round, the table is small",
}

// TestPlans: every statement of the hot path, and every sweep, finds its rows by an index on a filled table, whatever its values.
func TestPlans(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := pgtest.Pool(t)
	if err := Migrate(ctx, pool, ""); err != nil {
		t.Fatal(err)
	}
	if err := fillOperations(ctx, pool, 30000); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `ANALYZE journeyman.operation, journeyman.operation_attempt, journeyman.claim_check, journeyman.worker_process`); err != nil {
		t.Fatal(err)
	}
	checkPlans(t, ctx, pool)
}

// TestPlans_neverAnalysed: the same holds before the server has gathered statistics: after a migration, a restore or an upgrade.
func TestPlans_neverAnalysed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := pgtest.Pool(t)
	if err := Migrate(ctx, pool, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `ALTER TABLE journeyman.operation SET (autovacuum_enabled = false); ALTER TABLE journeyman.operation_attempt SET (autovacuum_enabled = false);
		ALTER TABLE journeyman.claim_check SET (autovacuum_enabled = false); ALTER TABLE journeyman.worker_process SET (autovacuum_enabled = false)`); err != nil {
		t.Fatal(err)
	}
	// A sweep's plan is kept from when the table was empty.
	checkIndexes(t, ctx, pool, map[string]indexed{"expired": {"operation_lease", "lease_until <="}, "askDue": {"operation_ask", "ask_at <="}})
	if err := fillOperations(ctx, pool, 30000); err != nil {
		t.Fatal(err)
	}
	checkPlans(t, ctx, pool)
}

func checkPlans(t *testing.T, ctx context.Context, pool *pgxpool.Pool) {
	t.Helper()
	pc, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Release()
	conn := pc.Conn()
	if _, err := conn.Exec(ctx, "SET plan_cache_mode TO force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, set := range []any{render("journeyman"), renderRecord("journeyman")} {
		v := reflect.ValueOf(set)
		for i := range v.NumField() {
			name, f := v.Type().Field(i).Name, v.Field(i)
			if f.Kind() != reflect.String || readsAll[name] != "" {
				continue
			}
			p, err := pgtest.Generic(ctx, conn, "q_"+name, strings.ReplaceAll(f.String(), "{{unless}}", " AND NOT (EXISTS (SELECT 1 FROM journeyman.operation x WHERE x.operation_id = o.operation_id || ':undo' AND x.state <> 'done'))"))
			if err != nil {
				t.Error(err)
				continue
			}
			seen++
			p.Walk(func(n pgtest.Plan) {
				if n.Node == "Seq Scan" && n.Relation != "clock" && n.Relation != "worker_process" {
					t.Errorf("%s reads all of %s", name, n.Relation)
				}
			})
		}
	}
	if seen < 35 {
		t.Errorf("%d statements looked at, want all of the package", seen)
	}
	checkIndexes(t, ctx, pool, map[string]indexed{
		"expired": {"operation_lease", "lease_until <="}, "askDue": {"operation_ask", "ask_at <="}, "purge": {"operation_expires", "expires_at <="},
		"purgeChecks": {"claim_check_expires", "expires_at <="}, "lateCounts": {index: "operation_odd"}, "used": {index: "operation_instance"},
	})
}

// indexed is how a statement is to find its rows. A sweep that goes by a time reads what is due and nothing behind it: the time is a bound of
// the index, not a filter of everything the index holds.
type indexed struct{ index, bound string }

// checkIndexes checks that statements, by their name in queries, use the index named, within the bound.
func checkIndexes(t *testing.T, ctx context.Context, pool *pgxpool.Pool, wants map[string]indexed) {
	t.Helper()
	pc, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Release()
	conn := pc.Conn()
	if _, err := conn.Exec(ctx, "SET plan_cache_mode TO force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	q := reflect.ValueOf(render("journeyman"))
	for name, want := range wants {
		p, err := pgtest.Generic(ctx, conn, "w_"+name, strings.ReplaceAll(q.FieldByName(name).String(), "{{unless}}", ""))
		if err != nil {
			t.Error(err)
			continue
		}
		found := false
		p.Walk(func(n pgtest.Plan) { found = found || n.Index == want.index && strings.Contains(n.Bound, want.bound) })
		if !found {
			t.Errorf("%s does not use index %s within the bound %q", name, want.index, want.bound)
		}
	}
}
