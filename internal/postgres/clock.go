package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Execer runs one statement: a pool, a connection or a transaction.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// AdvanceClock moves <schema>.now() forward, for every statement that begins after it. Only tests and the demo may call it; the role
// must own the function.
func AdvanceClock(ctx context.Context, db Execer, schema string, by time.Duration) error {
	if err := CheckSchema(schema); err != nil {
		return err
	}
	_, err := db.Exec(ctx, render(`SELECT {{schema}}.advance_clock($1::interval)`, schema), by)
	return err
}
