package outbox_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// Rows come in PostgreSQL's binary format, or in text where a pooler of
// transactions makes pgx send each statement anew: what is published is the same.
func TestRelay_ReadsRowsInEachFormat(t *testing.T) {
	t.Parallel()
	var first []events.Record
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec} {
		f := setup(t)
		cfg := f.pool.Config()
		cfg.ConnConfig.DefaultQueryExecMode = mode
		pool, err := pgxpool.NewWithConfig(f.ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		for n := range 3 {
			m := created(fmt.Sprintf(`K-"%d"{,\ä`, n), n)
			m.OccurredAt = time.Date(2026, 2, 3, 4, 5, 6, 789_123_000, time.UTC)
			if err := f.stage(origin(fmt.Sprint("op", n)), []events.Message{m}); err != nil {
				t.Fatal(err)
			}
		}
		f.pool = pool
		bk := newBroker()
		_, stop := f.relay(bk, func(c *outbox.RelayConfig) { c.Lanes = 1 })
		got := f.wait(bk, "three messages", atLeast(3))
		stop()
		if first == nil {
			first = got
		}
		if !reflect.DeepEqual(got, first) {
			t.Errorf("mode %v: published %q, want %q", mode, got, first)
		}
	}
}
