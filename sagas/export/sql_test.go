package export

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	t.Cleanup(pgtest.Stop) // behind all of them
	t.Run("prepare", statementsPrepare)
	t.Run("bookings go by the index", bookingsGoByTheIndex)
}

// Every statement fits the migrated tables, in a schema of another name too.
func statementsPrepare(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for range 2 { // the second run finds nothing to do
		if err := Migrate(t.Context(), pool, "elsewhere"); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Statements(t, pool, render("elsewhere"), nil)
}

// A tenant's bookings of a period are found by their index, however many others there are.
func bookingsGoByTheIndex(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Pool(t)
	if err := tourbooking.Migrate(ctx, pool, "journeyman"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `INSERT INTO journeyman.tour_booking (business_key, tenant, booking, saga_id, state, segments, travellers, amount, currency, created_at, updated_at)
		SELECT 'T' || n % 50 || ':B-' || n, 'T' || n % 50, 'B-' || n, 'op_' || n, 'confirmed', 3, 2, 1, 'EUR', now() - n * interval '1 minute', now() FROM generate_series(1, 20000) n`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `ANALYZE journeyman.tour_booking`); err != nil {
		t.Fatal(err)
	}
	rows, err := pool.Query(ctx, "EXPLAIN "+strings.ReplaceAll(Bookings().Rows, "{{schema}}", "journeyman"), "T7", time.Now().Add(-24*time.Hour), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "tour_booking_tenant") || strings.Contains(plan, "Seq Scan") {
		t.Errorf("the plan does not go by the index tour_booking_tenant:\n%s", plan)
	}
}
