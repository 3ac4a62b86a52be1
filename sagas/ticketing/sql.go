package ticketing

import (
	"context"
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Conn is what Migrate needs: a connection, a pool or a transaction.
type Conn interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Migrate brings the tables of tickets up to date ("" = "journeyman").
func Migrate(ctx context.Context, db Conn, schema string) error {
	return postgres.MigrateFolder(ctx, db, postgres.SchemaOr(schema), "ticketing", migrations, "migrations")
}

type queries struct{ insertAnswer, insertTicket string }

// render fills in the schema, once. All statements of the package are here.
func render(schema string) queries {
	q := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return queries{
		// Primary key. The second answer writes nothing.
		insertAnswer: q(`INSERT INTO {{schema}}.ticket_answer (reference, saga_id, supplier_id, tickets, received_at)
			VALUES ($1, $2, $3, $4, {{schema}}.now()) ON CONFLICT (reference) DO NOTHING`),
		// Primary key. A ticket number that is recorded for another booking is left alone: no row is written.
		insertTicket: q(`INSERT INTO {{schema}}.ticket AS t (number, business_key, saga_id, recorded_at)
			VALUES ($1, $2, $3, {{schema}}.now())
			ON CONFLICT (number) DO UPDATE SET recorded_at = t.recorded_at WHERE t.business_key = excluded.business_key`),
	}
}
