package outbox

import (
	"context"
	"embed"
	"io/fs"

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
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	return postgres.Migrate(ctx, db, schema, "outbox", files)
}
