package webhook

import (
	"context"
	"embed"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the tables in schema ("" = "journeyman") up to date, in one transaction. Safe to call from many processes at once.
func Migrate(ctx context.Context, db outbox.Beginner, schema string) error {
	return postgres.MigrateFolder(ctx, db, postgres.SchemaOr(schema), "webhook", migrations, "migrations")
}
