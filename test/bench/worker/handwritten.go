package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"github.com/camunda/zeebe/clients/go/v8/pkg/worker"
	"github.com/camunda/zeebe/clients/go/v8/pkg/zbc"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The tables that a careful person writes: a deduplication record, the domain row, an outbox.
const handwrittenTables = `
CREATE SCHEMA hand;
CREATE TABLE hand.operation (
	operation_id text PRIMARY KEY, business_key text NOT NULL, payload_hash bytea NOT NULL, outcome smallint, result jsonb,
	job_key bigint, trace_id text, created_at timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 80);
CREATE TABLE hand.outbox (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id uuid NOT NULL, topic text NOT NULL, msg_key text NOT NULL,
	headers jsonb NOT NULL, payload bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now());`

const (
	handClaim  = `INSERT INTO hand.operation (operation_id, business_key, payload_hash, job_key, trace_id) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING 1`
	handOutbox = `INSERT INTO hand.outbox (event_id, topic, msg_key, headers, payload) VALUES ($1, $2, $3, $4, $5)`
	handFinish = `UPDATE hand.operation SET outcome = 1, result = $2 WHERE operation_id = $1`
	domainRow  = `INSERT INTO room (operation_id, offer, seats, minor) VALUES ($1, $2, $3, $4)`
)

// input is what every worker here takes.
type input struct {
	Offer     string `json:"offer"`
	Seats     int    `json:"seats"`
	Class     string `json:"class"`
	Passenger struct {
		Name  string `json:"name"`
		Birth string `json:"birth"`
	} `json:"passenger"`
	Amount struct {
		Minor    int64  `json:"minor"`
		Currency string `json:"currency"`
	} `json:"amount"`
}

// output is what it gives back.
type output struct {
	Reservation string `json:"reservation"`
}

// reserved is the data of the event.
type reserved struct {
	Reservation string `json:"reservation"`
	Offer       string `json:"offer"`
	Seats       int    `json:"seats"`
	Minor       int64  `json:"minor"`
	Currency    string `json:"currency"`
}

type correlated struct {
	input
	OperationID   string `json:"operationId"`
	BusinessKey   string `json:"businessKey"`
	CorrelationID string `json:"correlationId"`
	Traceparent   string `json:"traceparent"`
}

// event is what the hand-written worker publishes: an envelope by hand.
type event struct {
	ID            uuid.UUID `json:"messageId"`
	Type          string    `json:"messageType"`
	Producer      string    `json:"producer"`
	BusinessKey   string    `json:"businessKey"`
	CorrelationID string    `json:"correlationId"`
	OperationID   string    `json:"operationId"`
	Data          reserved  `json:"data"`
}

// prepared is what a job's transaction writes.
type prepared struct {
	in      correlated
	hash    []byte
	event   event
	headers []byte
	body    []byte
	result  []byte
}

func prepare(vars []byte) (p prepared, err error) {
	if err := json.Unmarshal(vars, &p.in); err != nil {
		return p, err
	}
	canonical, err := json.Marshal(p.in.input)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(canonical)
	p.hash = sum[:]
	p.event = event{
		ID: uuid.New(), Type: "bench.room.reserved", Producer: "bench", BusinessKey: p.in.BusinessKey, CorrelationID: p.in.CorrelationID, OperationID: p.in.OperationID,
		Data: reserved{Reservation: "R-" + p.in.OperationID, Offer: p.in.Offer, Seats: p.in.Seats, Minor: p.in.Amount.Minor, Currency: p.in.Amount.Currency},
	}
	var errs [3]error
	p.headers, errs[0] = json.Marshal(map[string]string{"event-id": p.event.ID.String(), "event-type": p.event.Type, "producer": p.event.Producer, "traceparent": p.in.Traceparent})
	p.body, errs[1] = json.Marshal(p.event)
	p.result, errs[2] = json.Marshal(output{Reservation: p.event.Data.Reservation})
	return p, errors.Join(errs[:]...)
}

var errSeen = errors.New("seen before")

// sixTrips is the transaction in the obvious order: BEGIN, claim, domain row, event, outcome, COMMIT.
func sixTrips(ctx context.Context, pool *pgxpool.Pool, p prepared, jobKey int64) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after a commit it says so
	var one int
	switch err := tx.QueryRow(ctx, handClaim, p.in.OperationID, p.in.BusinessKey, p.hash, jobKey, p.in.Traceparent).Scan(&one); {
	case errors.Is(err, pgx.ErrNoRows):
		return errSeen
	case err != nil:
		return err
	}
	if _, err := tx.Exec(ctx, domainRow, p.in.OperationID, p.in.Offer, p.in.Seats, p.in.Amount.Minor); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, handOutbox, p.event.ID, "bench.room", p.in.BusinessKey, p.headers, p.body); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, handFinish, p.in.OperationID, p.result); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// handwritten is a worker on the client's own JobWorker.
type handwritten struct{ *bench }

func (h handwritten) run(ctx context.Context, jobType string, _ int, done func() error) error {
	client, err := zbc.NewClient(&zbc.ClientConfig{GatewayAddress: h.engine.addr, UsePlaintextConnection: true})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is under way
	var failed atomic.Pointer[error]
	w := client.NewJobWorker().JobType(jobType).Handler(func(c worker.JobClient, job entities.Job) {
		if err := h.handle(ctx, c, job); err != nil {
			failed.Store(&err)
		}
	}).Concurrency(h.concurrency).MaxJobsActive(h.active).Timeout(30 * time.Second).RequestTimeout(time.Second).Open() // it is waited for at the end
	err = done()
	w.Close()
	w.AwaitClose()
	if e := failed.Load(); e != nil {
		err = errors.Join(err, *e)
	}
	return err
}

func (h handwritten) handle(ctx context.Context, c worker.JobClient, job entities.Job) error {
	p, err := prepare([]byte(job.GetVariables()))
	if err != nil {
		return err
	}
	if err := sixTrips(ctx, h.pool, p, job.GetKey()); err != nil {
		return fmt.Errorf("job %d: %w", job.GetKey(), err)
	}
	command, err := c.NewCompleteJobCommand().JobKey(job.GetKey()).VariablesFromString(string(p.result))
	if err != nil {
		return err
	}
	_, err = command.Send(ctx)
	return err
}
