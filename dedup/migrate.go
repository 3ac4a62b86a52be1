package dedup

import (
	"context"
	"embed"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Beginner starts a transaction: a pool or a connection.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Migrate brings the operation tables in schema up to date. "" = "journeyman". Safe to call from many processes at once.
func Migrate(ctx context.Context, db Beginner, schema string) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	if schema == "" {
		schema = postgres.DefaultSchema
	}
	return postgres.Migrate(ctx, db, schema, "dedup", files)
}
