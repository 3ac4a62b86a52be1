package worker

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Runtime executes operations, undoes them and sweeps, without activating jobs.
type Runtime struct{}

// NewRuntime makes a runtime without a connection.
func NewRuntime(pool *pgxpool.Pool, mux *Mux, cfg Config, cluster string) (*Runtime, error) {
	return nil, nil
}

// Undo runs the compensation of a forward operation once per effect and waits for its end (path rules 11, 12).
func (r *Runtime) Undo(ctx context.Context, forwardOperationID, reason string) (UndoResult, error) {
	return UndoResult{}, nil
}
