package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Operation is one row of the table of operations, without inputs, results and variables.
type Operation struct {
	OperationID        string     `json:"operation_id"`
	Tenant             string     `json:"tenant"`
	BusinessKey        string     `json:"business_key"`
	JobType            string     `json:"job_type"`
	SagaID             string     `json:"saga_id"`
	State              string     `json:"state"`  // claimed, calling, called, undoing, done, revoked
	Effect             string     `json:"effect"` // at the other system: none, maybe, known
	Class              string     `json:"class"`  // "" = not settled
	Reason             string     `json:"reason"`
	Code               string     `json:"code"`
	Message            string     `json:"message"`
	Attempts           int        `json:"attempts"`
	Policy             string     `json:"policy"`
	Orphan             string     `json:"orphan"` // "", open, undone, parked
	Cluster            string     `json:"cluster"`
	JobKey             Key        `json:"job_key"`
	ProcessInstanceKey Key        `json:"process_instance_key"`
	ElementInstanceKey Key        `json:"element_instance_key"`
	ElementID          string     `json:"element_id"`
	CreatedAt          time.Time  `json:"created_at"`
	CalledAt           *time.Time `json:"called_at"`
	SettledAt          *time.Time `json:"settled_at"`
	AnsweredAt         *time.Time `json:"answered_at"`
	RetriedAt          *time.Time `json:"retried_at"`
	UndoneAt           *time.Time `json:"undone_at"`
	OrphanedAt         *time.Time `json:"orphaned_at"`
	LeaseUntil         *time.Time `json:"lease_until"`
	Asked              int        `json:"asked"`        // times the other system said again that it had not seen the call
	AskAt              *time.Time `json:"ask_at"`       // when it is asked next whether the call landed late
	AsksOverAt         *time.Time `json:"asks_over_at"` // since when it is asked no more: that the call lands cannot be ruled out
	AskUntil           *time.Time `json:"ask_until"`    // it is asked until then, as a person said
	DismissedAt        *time.Time `json:"dismissed_at"` // when a person settled what asks_over_at says
	SlimmedAt          *time.Time `json:"slimmed_at"`   // since when inputs and results are gone, with their retention
}

// into gives the targets of operationColumns.
func (o *Operation) into() []any {
	return []any{
		&o.OperationID, &o.Tenant, &o.BusinessKey, &o.JobType, &o.SagaID, &o.State, &o.Effect, &o.Class, &o.Reason, &o.Code, &o.Message,
		&o.Attempts, &o.Policy, &o.Orphan, &o.Cluster, &o.JobKey, &o.ProcessInstanceKey, &o.ElementInstanceKey, &o.ElementID,
		&o.CreatedAt, &o.CalledAt, &o.SettledAt, &o.AnsweredAt, &o.RetriedAt, &o.UndoneAt, &o.OrphanedAt, &o.LeaseUntil, &o.Asked, &o.AskAt, &o.AsksOverAt,
		&o.AskUntil, &o.DismissedAt, &o.SlimmedAt,
	}
}

// querier reads: a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func listOperations(ctx context.Context, db querier, sql string, args ...any) ([]Operation, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list operations: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Operation, error) {
		var o Operation
		err := row.Scan(o.into()...)
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("list operations: %w", err)
	}
	return out, nil
}

// Command is one undelivered command to the engine, without variables.
type Command struct {
	ID                 int64     `json:"id"`
	Kind               string    `json:"kind"`  // complete, fail, throw, publish, cancel, resolve, set-variables
	State              string    `json:"state"` // pending, gone, parked
	Reason             string    `json:"reason"`
	JobKey             Key       `json:"job_key"`
	IncidentKey        Key       `json:"incident_key"`
	ProcessInstanceKey Key       `json:"process_instance_key"`
	OperationID        string    `json:"operation_id"`
	Attempts           int       `json:"attempts"`
	LastCode           string    `json:"last_code"`
	LastError          string    `json:"last_error"`
	NextAt             time.Time `json:"next_at"`
	CreatedAt          time.Time `json:"created_at"`
	SagaID             string    `json:"saga_id"`
	JobType            string    `json:"job_type"`
}

func listCommands(ctx context.Context, db querier, sql string, args ...any) ([]Command, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list commands: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Command, error) {
		var c Command
		err := row.Scan(&c.ID, &c.Kind, &c.State, &c.Reason, &c.JobKey, &c.IncidentKey, &c.ProcessInstanceKey, &c.OperationID, &c.Attempts,
			&c.LastCode, &c.LastError, &c.NextAt, &c.CreatedAt, &c.SagaID, &c.JobType)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("list commands: %w", err)
	}
	return out, nil
}
