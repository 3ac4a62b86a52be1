package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Saga is one attempt as the domain database knows it.
type Saga struct {
	ID, Tenant, Type, Key      string
	Attempt                    int
	BusinessKey, CorrelationID string
	Traceparent                string
	Actor                      events.Actor
	Variables                  map[string]any // of the plan
	Cluster                    string         // "" until the saga has begun
	ProcessInstanceKey         int64          // 0 until the saga has begun
	Decision                   Decision
	Reason                     string // code of the decision or of the end
	State                      string // starting, running, compensating, manual, completed, failed, expired
	StartedAt, Deadline        time.Time
	BegunAt, DecidedAt         *time.Time
	ClosedAt                   *time.Time
}

// scanSaga reads sagaColumns and then whatever extra takes.
func scanSaga(row pgx.Row, extra ...any) (Saga, error) {
	var (
		s             Saga
		actor, values []byte
	)
	into := []any{
		&s.ID, &s.Tenant, &s.Type, &s.Key, &s.Attempt, &s.BusinessKey, &s.CorrelationID, &s.Traceparent, &actor, &values,
		&s.Cluster, &s.ProcessInstanceKey, &s.Decision, &s.Reason, &s.State, &s.StartedAt, &s.Deadline, &s.BegunAt, &s.DecidedAt, &s.ClosedAt,
	}
	if err := row.Scan(append(into, extra...)...); err != nil {
		return s, err
	}
	return s, errors.Join(json.Unmarshal(actor, &s.Actor), json.Unmarshal(values, &s.Variables))
}

func (s Saga) attempt() Attempt {
	return Attempt{
		OperationID: s.ID, Tenant: s.Tenant, Type: s.Type, Key: s.Key, Number: s.Attempt, BusinessKey: s.BusinessKey,
		CorrelationID: s.CorrelationID, Traceparent: s.Traceparent, Actor: s.Actor, Variables: s.Variables, StartedAt: s.StartedAt, Deadline: s.Deadline,
	}
}

func (s Saga) origin(operationID string) events.Origin {
	return events.Origin{
		OperationID: operationID, BusinessKey: s.BusinessKey, CorrelationID: s.CorrelationID, ProcessInstanceKey: s.ProcessInstanceKey,
		Traceparent: s.Traceparent, HTTPIdempotencyKey: s.Key, Actor: s.Actor,
	}
}

func (s Saga) progress() Progress { return Progress{SagaID: s.ID, SagaType: s.Type, Tenant: s.Tenant} }

// ErrUnknown is wrapped when there is no such saga or operation.
var ErrUnknown = errors.New("unknown")

func (s *Sagas) read(ctx context.Context, tx *outbox.Tx, sagaID string) (Saga, error) {
	row, err := scanSaga(tx.QueryRow(ctx, s.sql.readSaga, sagaID))
	if errors.Is(err, pgx.ErrNoRows) {
		return row, fmt.Errorf("saga %s: %w", sagaID, ErrUnknown)
	}
	return row, err
}

// Decide takes a saga's decision in the caller's transaction, which must be that of a forward step and so
// hold the gate (path rule 10). Exactly one decision is ever taken: for any other caller Decide gives the
// BUSINESS outcome [CodeGivenUp], and the caller's changes must not stand. Repeating the standing decision
// within one transaction is an error too: the pivot step decides once.
func (s *Sagas) Decide(ctx context.Context, tx *outbox.Tx, sagaID string, d Decision) error {
	if d != Completed {
		return outcome.Fatalf("decision", "decide saga %s: %q, want %q; giving up is the job saga.give-up", sagaID, d, Completed)
	}
	tag, err := tx.Exec(ctx, s.sql.decide, sagaID, string(d), "", rule.Off(10))
	if err != nil {
		return fmt.Errorf("decide saga %s: %w", sagaID, err)
	}
	if tag.RowsAffected() == 1 {
		return nil
	}
	row, err := s.read(ctx, tx, sagaID)
	if err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	return givenUp(fmt.Sprintf("saga %s was decided %s", sagaID, row.Decision))
}
