package sagas

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// StepRow is one row of the ledger: a forward step that ended, and how its undo stands.
type StepRow struct {
	OperationID, SagaID, Name string
	JobType, ElementID        string
	Class, Code               string
	UndoType, Policy          string
	Pivot                     bool
	Amount                    json.RawMessage // nil when the step named none
	CommitOrder               int64
	CommittedAt               time.Time
	UndoState                 string // none, open, running, done, parked, stuck, remediated
	UndoAttempts              int
	UndoError                 string // why it is stuck or parked
	UndoAt                    *time.Time
}

func scanStep(row pgx.CollectableRow) (StepRow, error) {
	var st StepRow
	err := row.Scan(&st.OperationID, &st.SagaID, &st.Name, &st.JobType, &st.ElementID, &st.Class, &st.Code, &st.UndoType, &st.Policy, &st.Pivot, &st.Amount,
		&st.CommitOrder, &st.CommittedAt, &st.UndoState, &st.UndoAttempts, &st.UndoError, &st.UndoAt)
	return st, err
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func collectSteps(ctx context.Context, db querier, sql string, args ...any) ([]StepRow, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanStep)
}
