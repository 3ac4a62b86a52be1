// Package workertest runs one handler of package worker against a real
// PostgreSQL, in a transaction that is rolled back when the test ends: no
// engine, no worker, a few milliseconds a test.
//
//	var db = workertest.Database{Migrate: migrate}
//
//	func TestMain(m *testing.M) { os.Exit(db.Main(m)) }
//
//	func TestReserve(t *testing.T) {
//		b := db.Begin(t)
//		b.Exec(`INSERT INTO room (hotel, free) VALUES ('H-1', 1)`)
//		r := b.Run(handler, workertest.Job{Type: "hotel.reserve", Input: Reserve{Hotel: "H-1"}})
//		r.WantSuccess()
//	}
//
// What a handler gets is made as a worker makes it: correlation variables and
// input are checked, an error becomes an outcome class, a refusal's changes and
// events are dropped. The transaction stays open after it, so a test reads what
// would have been committed. What is not there: claim, replay and leases of
// operations, the saga's gate, middleware of a [worker.Mux], sending. Test those
// with engine/enginetest.
package workertest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// Beginner begins transactions: a *pgxpool.Pool or a *pgx.Conn.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Bench is a transaction of one test. It is not safe for concurrent use.
type Bench struct {
	// Tx is open until the test ends; statements in it see what handlers did.
	Tx pgx.Tx
	// Stager checks emitted messages against its catalog; nil = every message is taken.
	Stager *outbox.Stager

	t   testing.TB
	ctx context.Context //nolint:containedctx // of the test
	n   int
}

// Begin opens a transaction that is rolled back when the test ends.
func Begin(t testing.TB, db Beginner) *Bench {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	tx, err := db.Begin(ctx)
	if err != nil {
		t.Fatalf("workertest: begin: %v", err)
	}
	t.Cleanup(func() { _ = tx.Rollback(ctx) })
	return &Bench{Tx: tx, t: t, ctx: ctx}
}

// Exec runs a statement and ends the test when it fails.
func (b *Bench) Exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.Tx.Exec(b.ctx, sql, args...); err != nil {
		b.t.Fatalf("workertest: %s: %v", sql, err)
	}
}

// Get scans the first row of a query and ends the test when there is none.
func Get[T any](b *Bench, sql string, args ...any) T {
	b.t.Helper()
	var v T
	if err := b.Tx.QueryRow(b.ctx, sql, args...).Scan(&v); err != nil {
		b.t.Fatalf("workertest: %s: %v", sql, err)
	}
	return v
}

// Job is the job that a handler is given. Only Type is needed; the correlation
// variables have values of their own in every job.
type Job struct {
	Type      string
	Input     any            // struct or map: the job's variables
	Variables map[string]any // further variables, over Input; nil as a value leaves one out
	Headers   map[string]string
	ElementID string
	Retries   int32 // 0 = 3

	BusinessKey, OperationID, SagaID, Tenant string // "" = one of the bench's own; no saga, no tenant

	// Undo answers Call.Undo of an external handler; nil = the call is an error.
	Undo func(ctx context.Context, forwardOperationID, reason string) (worker.UndoResult, error)
}

func (b *Bench) trial(h worker.Handler, job Job) (*worker.Trial, error) {
	b.t.Helper()
	b.n++
	vars := map[string]any{
		"businessKey": "B-1", "operationId": fmt.Sprintf("op-%d", b.n), "correlationId": "corr-1",
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	for name, v := range map[string]string{"businessKey": job.BusinessKey, "operationId": job.OperationID, "sagaId": job.SagaID, "tenant": job.Tenant} {
		if v != "" {
			vars[name] = v
		}
	}
	if job.Input != nil {
		doc, err := json.Marshal(job.Input)
		if err == nil {
			err = json.Unmarshal(doc, &vars)
		}
		if err != nil {
			b.t.Fatalf("workertest: input %T: want a struct or map that becomes a JSON object: %v", job.Input, err)
		}
	}
	for name, v := range job.Variables {
		vars[name] = v
	}
	maps.DeleteFunc(vars, func(_ string, v any) bool { return v == nil })
	doc, err := json.Marshal(vars)
	if err != nil {
		b.t.Fatalf("workertest: variables: %v", err)
	}
	headers, err := json.Marshal(job.Headers)
	if err != nil {
		b.t.Fatalf("workertest: headers: %v", err)
	}
	retries, element := job.Retries, job.ElementID
	if retries == 0 {
		retries = 3
	}
	if element == "" {
		element = "task"
	}
	return worker.NewTrial(h, zeebe.Job{
		Key: int64(b.n), Type: job.Type, ElementID: element, ProcessID: "process", ProcessInstanceKey: 1, ElementInstanceKey: int64(b.n),
		Headers: string(headers), Retries: retries, Variables: string(doc),
	})
}
