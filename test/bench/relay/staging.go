package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/test/bench/rig"
	"github.com/vitrip/journeyman/zeebe"
)

// shape is a transaction of two round trips that an event may be added to: what stands before the handler's one INSERT, and what
// stands behind the event, both without BEGIN and COMMIT.
type shape struct {
	name        string
	enter, exit func(b *pgx.Batch, id string) error
}

// shapes are the transaction of package worker for one job (claim, handler's row, record of the operation, command for the engine),
// and the least that a careful person writes by hand: a row that refuses duplicates, and its outcome.
func (b *bench) shapes(ctx context.Context) ([]shape, error) {
	const schema, cluster = "journeyman", "bench"
	store, err := dedup.New(schema)
	if err != nil {
		return nil, err
	}
	queue, err := zeebe.NewQueue(schema, cluster)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(dedup.Migrate(ctx, b.pool, schema), zeebe.Migrate(ctx, b.pool, schema)); err != nil {
		return nil, err
	}
	const answer = `{"reservation":"R-1","seats":2,"price":{"amount":12900,"currency":"EUR"}}`
	var jobs atomic.Int64 // each of a process instance of its own
	worker := shape{name: "worker"}
	worker.enter = func(q *pgx.Batch, id string) error {
		var used int64
		var op dedup.Operation
		var found bool
		store.QueueEnter(q, id, "3s", cluster, jobs.Add(1), &used)
		store.QueueEntered(q, id, &op, &found)
		q.Queue("SET LOCAL lock_timeout TO DEFAULT")
		return nil
	}
	worker.exit = func(q *pgx.Batch, id string) error {
		fp, err := dedup.Of([]byte(`{"offer":"LH-1","seats":2,"amount":12900}`), []string{"offer", "seats", "amount"})
		if err != nil {
			return err
		}
		n := jobs.Add(1)
		at := dedup.JobContext{Cluster: cluster, JobKey: n, ProcessInstanceKey: n, ElementInstanceKey: n, ElementID: "reserve-room"}
		out := dedup.Outcome{Class: outcome.Success, Variables: []byte(answer)}
		store.QueueRecord(q, dedup.Record{
			Claim:   dedup.Claim{OperationID: id, BusinessKey: id, JobType: "bench.reserve", Fingerprint: fp, State: dedup.Claimed, Meta: []byte(`{"operationId":"` + id + `"}`), JobContext: at},
			Outcome: out, Retention: dedup.Retention{For: 30 * 24 * time.Hour}, JobEnds: true,
		})
		queue.Queue(q, zeebe.Command{Cluster: cluster, Kind: zeebe.KindComplete, JobKey: at.JobKey, ElementInstanceKey: at.ElementInstanceKey, ProcessInstanceKey: at.ProcessInstanceKey, OperationID: id, Variables: answer})
		return nil
	}
	byHand := shape{
		name: "by_hand",
		enter: func(q *pgx.Batch, id string) error {
			q.Queue("INSERT INTO done (operation_id) VALUES ($1) ON CONFLICT DO NOTHING", id)
			return nil
		},
		exit: func(q *pgx.Batch, id string) error {
			q.Queue("UPDATE done SET outcome = $2 WHERE operation_id = $1", id, "COMPLETED")
			return nil
		},
	}
	return []shape{worker, byHand}, nil
}

// staging measures what an event adds to a transaction, eight at a time. staging_cost is of the worker's transaction. In each the cost
// of a bare INSERT of the same row stands beside it: what any outbox costs, without a lock and a sequence for each key.
func (b *bench) staging(ctx context.Context, r rig.Report) error {
	if _, err := b.pool.Exec(ctx, `
		TRUNCATE journeyman.outbox;
		CREATE TABLE IF NOT EXISTS room (operation_id text, offer text);
		CREATE TABLE IF NOT EXISTS done (operation_id text PRIMARY KEY, outcome text) WITH (fillfactor = 80);
		CREATE TABLE IF NOT EXISTS plain_outbox (LIKE journeyman.outbox INCLUDING ALL)`); err != nil {
		return err
	}
	shapes, err := b.shapes(ctx)
	if err != nil {
		return err
	}
	during, rounds := 1500*time.Millisecond, 2*b.rounds+1
	if b.quick {
		during, rounds = 800*time.Millisecond, 5
	}
	for _, s := range shapes {
		rates := series{}
		for i := range rounds + 1 {
			for _, how := range []string{"none", "staged", "plain"} {
				rate, err := b.transactions(ctx, s, how, i, during)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, how, err)
				}
				if i > 0 {
					rates[how] = append(rates[how], rate)
				}
			}
			if i == 0 { // the plans of empty tables are not those of a service
				if _, err := b.pool.Exec(ctx, "ANALYZE"); err != nil {
					return err
				}
			}
		}
		suffix := ""
		if s.name != "worker" {
			suffix = "_" + s.name
		}
		r["transactions_per_s"+suffix], r["transactions_per_s_staged"+suffix] = rig.Round(rates.median("none")), rig.Round(rates.median("staged"))
		r["staging_cost"+suffix] = rig.Round(rates.ratio("none", "staged") - 1)
		r["staging_cost_plain_insert"+suffix] = rig.Round(rates.ratio("none", "plain") - 1)
		b.say("staging, %-8s %.0f transactions/s without, %.0f with an event, %.0f with a bare insert", s.name, rates.median("none"), rates.median("staged"), rates.median("plain"))
	}
	return nil
}

// plainInsert takes the first ten arguments of the stager's statement: the same row.
const plainInsert = `
	INSERT INTO plain_outbox (shard, event_id, type, version, class, topic, business_key, operation_id, headers, body, seq, occurred_at, created_at)
	VALUES ($1, $2::uuid, $3, $4, $5, $6, $7, $8, $9, $10, 1, now(), now())`

func (b *bench) transactions(ctx context.Context, s shape, how string, round int, during time.Duration) (float64, error) {
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
				id := fmt.Sprintf("%s-%s-%d-%d-%d", s.name, how, round, w, n)
				if errs[w] = b.transaction(ctx, conn.Conn(), s, how, id, n*writers+w); errs[w] != nil {
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

func (b *bench) transaction(ctx context.Context, conn *pgx.Conn, s shape, how, id string, n int) error {
	q := &pgx.Batch{}
	q.Queue("BEGIN")
	if err := s.enter(q, id); err != nil {
		return err
	}
	q.Queue("SAVEPOINT h")
	if err := conn.SendBatch(ctx, q).Close(); err != nil {
		return err
	}
	q = &pgx.Batch{}
	q.Queue("INSERT INTO room VALUES ($1, $2)", id, "LH-1")
	q.Queue("RELEASE h")
	staged := q
	if how == "plain" {
		staged = &pgx.Batch{}
	}
	if how != "none" {
		if err := b.stager.Queue(staged, events.Origin{OperationID: id, CorrelationID: id}, []events.Message{booking(n)}); err != nil {
			return err
		}
	}
	if how == "plain" {
		const same = 10
		q.Queue(plainInsert, staged.QueuedQueries[0].Arguments[:same]...)
	}
	if err := s.exit(q, id); err != nil {
		return err
	}
	q.Queue("COMMIT")
	return conn.SendBatch(ctx, q).Close()
}
