package outbox

import (
	"context"
	"embed"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Beginner begins transactions: a pgxpool.Pool or a connection.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Migrate brings the outbox's tables in schema up to date, in one transaction.
// Safe to call from many processes at once.
func Migrate(ctx context.Context, db Beginner, schema string) error {
	return postgres.MigrateFolder(ctx, db, schema, "outbox", migrations, "migrations")
}
