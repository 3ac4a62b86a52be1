package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/test/bench/rig"
)

// staging measures what an event adds to a worker's transaction of two round trips, eight at a time.
func (b *bench) staging(ctx context.Context, r rig.Report) error {
	if _, err := b.pool.Exec(ctx, `
		TRUNCATE journeyman.outbox;
		CREATE TABLE IF NOT EXISTS room (operation_id text, offer text);
		CREATE TABLE IF NOT EXISTS done (operation_id text PRIMARY KEY, outcome text) WITH (fillfactor = 80);
		CREATE TABLE IF NOT EXISTS plain_outbox (id bigserial PRIMARY KEY, event_id uuid, topic text, business_key text, headers text[], body bytea)`); err != nil {
		return err
	}
	during, rounds := 1500*time.Millisecond, 2*b.rounds+1
	if b.quick {
		during = 800 * time.Millisecond
	}
	rates := series{}
	for i := range rounds + 1 {
		for _, how := range []string{"none", "staged", "plain"} {
			rate, err := b.transactions(ctx, how, i, during)
			if err != nil {
				return fmt.Errorf("%s: %w", how, err)
			}
			if i > 0 {
				rates[how] = append(rates[how], rate)
			}
		}
	}
	r["transactions_per_s"], r["transactions_per_s_staged"] = rig.Round(rates.median("none")), rig.Round(rates.median("staged"))
	r["staging_cost"] = rig.Round(rates.ratio("none", "staged") - 1)
	r["staging_cost_plain_insert"] = rig.Round(rates.ratio("none", "plain") - 1)
	b.say("staging: %.0f transactions/s without, %.0f with an event, %.0f with a bare insert", rates.median("none"), rates.median("staged"), rates.median("plain"))
	return nil
}

func (b *bench) transactions(ctx context.Context, how string, round int, during time.Duration) (float64, error) {
	const writers = 8
	var counts [writers]int
	var wg sync.WaitGroup
	errs := make([]error, writers)
	began := time.Now()
	for w := range writers {
		wg.Go(func() {
			conn, err := b.pool.Acquire(ctx)
			if err != nil {
				errs[w] = err
				return
			}
			defer conn.Release()
			for n := 0; time.Since(began) < during; n++ {
				id := fmt.Sprintf("%s-%d-%d-%d", how, round, w, n)
				q := &pgx.Batch{}
				q.Queue("BEGIN")
				q.Queue("INSERT INTO done (operation_id) VALUES ($1) ON CONFLICT DO NOTHING", id)
				q.Queue("SAVEPOINT h")
				if errs[w] = conn.SendBatch(ctx, q).Close(); errs[w] != nil {
					return
				}
				q = &pgx.Batch{}
				q.Queue("INSERT INTO room VALUES ($1, $2)", id, "LH-1")
				q.Queue("RELEASE h")
				m := booking(n*writers + w)
				switch how {
				case "staged":
					errs[w] = b.stager.Queue(q, events.Origin{OperationID: id, CorrelationID: id}, []events.Message{m})
				case "plain":
					q.Queue("INSERT INTO plain_outbox (event_id, topic, business_key, headers, body) VALUES ($1, $2, $3, $4, $5)",
						events.NewID(), topic, m.BusinessKey, []string{"event_id", id, "event_type", m.Type, "business_key", m.BusinessKey}, []byte(fmt.Sprintf("%v%v", m.Data, m.Data)))
				}
				q.Queue("UPDATE done SET outcome = $2 WHERE operation_id = $1", id, "COMPLETED")
				q.Queue("COMMIT")
				if errs[w] == nil {
					errs[w] = conn.SendBatch(ctx, q).Close()
				}
				if errs[w] != nil {
					return
				}
				counts[w]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(began).Seconds(), errors.Join(errs...)
}
