package outbox

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// Every statement can be prepared with nothing on the search path.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	if err := Migrate(ctx, pool, "other_schema"); err != nil {
		t.Fatal(err)
	}
	pgtest.Statements(t, pool, render("other_schema"), func(name, sql string) string {
		if name == "seq" {
			return "SELECT " + strings.ReplaceAll(sql, "%d", "1")
		}
		return sql
	})
	pgtest.Statements(t, pool, renderClasses("other_schema"), func(_, sql string) string { return sql })
}

// The statements of the relay's loop go by the primary key, also on a table that was never analysed.
func TestPlans(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	if err := Migrate(ctx, pool, "journeyman"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `
		INSERT INTO journeyman.outbox (shard, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
		SELECT n % 64, gen_random_uuid(), 't', 1, 'domain', 't.v1', 'K', n, 'op', '{}', convert_to(repeat('x', 300), 'UTF8'), now(), now() FROM generate_series(1, 30000) n`); err != nil {
		t.Fatal(err)
	}
	shards, fences, at, ids := make([]int16, 64), make([]int64, 64), make([]int16, 1000), make([]int64, 1000)
	for i := range shards {
		shards[i] = int16(i) //nolint:gosec // below 64
	}
	for i := range ids {
		at[i], ids[i] = int16((i+1)%64), int64(i+1) //nolint:gosec // small
	}
	sql := render("journeyman")
	for name, c := range map[string]struct {
		sql  string
		args []any
	}{
		"scan": {sql.scan, []any{shards, fences, slices.Repeat([]int{16}, len(shards)), 1000}},
		"ack":  {sql.ack, []any{shards, fences, "me", at, ids}},
	} {
		rows, err := pool.Query(ctx, "EXPLAIN "+c.sql, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if strings.Contains(plan, "Seq Scan on outbox o") || !strings.Contains(plan, "outbox_pkey") {
			t.Errorf("%s does not go by the primary key:\n%s", name, plan)
		}
	}
}
