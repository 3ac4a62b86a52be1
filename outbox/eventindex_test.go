package outbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres"
)

// A day of the event log that is over is read by business key through an index; the day that is written to has none.
func TestEventLog_PastDaysAreReadByKey(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.published(40)
	day := ""
	if err := f.pool.QueryRow(f.ctx, `SELECT tableoid::regclass::text FROM journeyman.event_log LIMIT 1`).Scan(&day); err != nil {
		t.Fatal(err)
	}
	index := func() bool {
		return f.count(`SELECT count(*) FROM pg_catalog.pg_class WHERE relnamespace = 'journeyman'::regnamespace AND relname ~ '^event_log_[0-9]{8}_key$'`) > 0
	}
	if index() {
		t.Error("a day that is written to has an index by key")
	}
	if err := postgres.AdvanceClock(f.ctx, f.pool, "journeyman", 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	_, stop := f.relay(newBroker())
	f.eventually("an index by key", index)
	stop()
	pc, err := f.pool.Acquire(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Release()
	if _, err := pc.Exec(f.ctx, "SET enable_seqscan TO off"); err != nil { // the day is small
		t.Fatal(err)
	}
	rows, err := pc.Query(f.ctx, `EXPLAIN SELECT event_id FROM journeyman.event_log WHERE business_key = 'K-1' AND logged_at >= '2020-01-01'`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if want := strings.TrimPrefix(day, "journeyman.") + "_key"; !strings.Contains(plan, want) {
		t.Errorf("%s is not read by its index by key:\n%s", day, plan)
	}
}
