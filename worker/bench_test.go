package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/zeebe"
)

// BenchmarkWorker is one job from activation to the answer: claim, one INSERT of the handler, outcome, answer.
func BenchmarkWorker(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pool := pgtest.Pool(b)
	for _, err := range []error{dedup.Migrate(ctx, pool, ""), zeebe.Migrate(ctx, pool, "")} {
		if err != nil {
			b.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `CREATE TABLE room (operation_id text, run bigint)`); err != nil {
		b.Fatal(err)
	}
	gw := newFake()
	var n atomic.Int64
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		_, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1, 1)`, j.OperationID)
		n.Add(1)
		return reserved{ID: "R"}, err
	}, NotCompensable("bench")))
	cfg := fast()
	cfg.Concurrency, cfg.MaxJobsActive, cfg.Log = int(pool.Config().MaxConns), 64, zerolog.Nop()
	w, err := newWorker(gw, pool, mux, cfg)
	if err != nil {
		b.Fatal(err)
	}
	keys := make([]int64, b.N)
	for i := range keys {
		keys[i] = gw.add("flight.reserve", job(fmt.Sprint("op-", i), offer))
	}
	b.ResetTimer()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	for _, k := range keys {
		if _, err := gw.wait(ctx, k, func(j fakeJob) bool { return j.state == "completed" }); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
