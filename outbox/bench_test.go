package outbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// sink acknowledges everything at once.
type sink struct{}

func (sink) Publish(_ context.Context, records []events.Record) []error {
	return make([]error, len(records))
}

// BenchmarkRelay_Drain empties a backlog of 50,000 rows without a broker.
func BenchmarkRelay_Drain(b *testing.B) {
	const rows = 50_000
	for _, lanes := range []int{1, 2, 4} {
		for _, noLog := range []bool{false, true} {
			b.Run(fmt.Sprintf("lanes=%d/log=%v", lanes, !noLog), func(b *testing.B) {
				ctx, pool := context.Background(), pgtest.Pool(b)
				if err := outbox.Migrate(ctx, pool, "journeyman"); err != nil {
					b.Fatal(err)
				}
				s := stager(b, "")
				for b.Loop() {
					b.StopTimer()
					if _, err := pool.Exec(ctx, `
						INSERT INTO journeyman.outbox (shard, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
						SELECT n % 64, gen_random_uuid(), 'test.thing.created', 1, 'domain', 'test.thing.created.v1', 'K-' || n % 1000, n, 'op',
							ARRAY['event_id', 'x', 'event_type', 'test.thing.created', 'event_version', '1', 'producer', 'tester', 'business_key', 'K', 'env', 'test', 'correlation_id', 'c', 'operation_id', 'o'],
							convert_to('{"messageId":"' || repeat('x', 250) || '","metadata":{"businessKey":"K"}}', 'UTF8'), now(), now()
						FROM generate_series(1, $1) n`, rows); err != nil {
						b.Fatal(err)
					}
					r, err := outbox.NewRelay(pool, sink{}, outbox.RelayConfig{Lanes: lanes, NoEventLog: noLog, Stager: s})
					if err != nil {
						b.Fatal(err)
					}
					run, cancel := context.WithCancel(ctx)
					done := make(chan error, 1)
					b.StartTimer()
					go func() { done <- r.Run(run) }()
					for r.Stats().Published < rows {
						select {
						case err := <-done:
							b.Fatal(err)
						case <-time.After(time.Millisecond):
						}
					}
					b.StopTimer()
					cancel()
					<-done
					b.StartTimer()
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkStager measures one transaction with and without a staged message.
func BenchmarkStager(b *testing.B) {
	for _, n := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			ctx, pool := context.Background(), pgtest.Pool(b)
			if err := outbox.Migrate(ctx, pool, "journeyman"); err != nil {
				b.Fatal(err)
			}
			if _, err := pool.Exec(ctx, `CREATE TABLE domain (n int)`); err != nil {
				b.Fatal(err)
			}
			s := stager(b, "")
			conn, err := pool.Acquire(ctx)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Release()
			for i := 0; b.Loop(); i++ {
				batch := &pgx.Batch{}
				batch.Queue("BEGIN")
				batch.Queue("INSERT INTO domain VALUES ($1)", i)
				var msgs []events.Message
				for m := range n {
					msgs = append(msgs, created(fmt.Sprintf("K-%d", i%1000), m))
				}
				if err := s.Queue(batch, origin(fmt.Sprintf("op-%d", i)), msgs); err != nil {
					b.Fatal(err)
				}
				batch.Queue("COMMIT")
				if err := conn.SendBatch(ctx, batch).Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
