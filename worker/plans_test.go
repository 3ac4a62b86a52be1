package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// TestGroup_plans: no statement of a shared transaction is compiled for each execution, which would cost milliseconds each: with
// sequential scans switched off, one that needs one looks dear enough for that.
func TestGroup_plans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog, err := events.ParseCatalog([]byte("domains: [test]\nmessages:\n  - {type: test.room.reserved, class: domain, owner: test, producers: [test]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	stager, err := outbox.NewStager(outbox.Config{Catalog: catalog, Producer: "test", Instance: "test-1", Env: "test"})
	if err := errors.Join(err, outbox.Migrate(w.ctx, w.pool, "journeyman")); err != nil {
		t.Fatal(err)
	}
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		tx.Emit(events.Message{Type: "test.room.reserved", Data: map[string]string{"id": j.OperationID}})
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	cfg := fast()
	cfg.groupBudget, cfg.Stager = 10*time.Second, stager
	rt := w.runtime(mux, cfg)
	rt.send = nil
	var mates []*mate
	for _, id := range []string{"op-1", "op-2", "op-3"} {
		mates = append(mates, &mate{t: w.jobTask(rt, "flight.reserve", job(id, offer)), ctx: w.ctx})
	}
	rt.runGroup(w.ctx, mates)
	for _, m := range mates {
		if m.res.kind != answered {
			t.Fatalf("%s: end %d, %v", m.t.meta.OperationID, m.res.kind, m.res.err)
		}
	}
	seen := 0
	for _, c := range w.pool.AcquireAllIdle(w.ctx) {
		defer c.Release()
		if _, err := c.Exec(w.ctx, `SET plan_cache_mode = force_generic_plan`); err != nil { // show the plan that is kept
			t.Fatal(err)
		}
		rows, err := c.Query(w.ctx, `SELECT name FROM pg_prepared_statements WHERE statement LIKE '%outbox_key_floor%' AND statement LIKE '%unnest%'`, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			rows, err := c.Query(w.ctx, `EXPLAIN EXECUTE `+pgx.Identifier{n}.Sanitize()+`('{S}', '{1}')`, pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			seen++
			if plan := strings.Join(lines, "\n"); strings.Contains(plan, "JIT") {
				t.Errorf("compiled each time:\n%s", plan)
			}
		}
	}
	if seen == 0 {
		t.Error("the statement that locks keys was not found")
	}
}
