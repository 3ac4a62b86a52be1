package dedup

import (
	"context"
	"embed"

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
	return postgres.MigrateFolder(ctx, db, postgres.SchemaOr(schema), "dedup", migrations, "migrations")
}
