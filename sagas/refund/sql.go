package refund

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

// Migrate brings the tables of refunds up to date ("" = "journeyman").
func Migrate(ctx context.Context, db Conn, schema string) error {
	return postgres.MigrateFolder(ctx, db, postgres.SchemaOr(schema), "refund", migrations, "migrations")
}

type queries struct{ insertSegment, reinstateSegment, sumSegments, segments string }

// render fills in the schema, once. All statements of the package are here.
func render(schema string) queries {
	q := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return queries{
		// Primary key. A repeat of the operation writes nothing.
		insertSegment: q(`INSERT INTO {{schema}}.refund_segment
			(operation_id, business_key, saga_id, segment, supplier_id, status, amount, currency, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {{schema}}.now(), {{schema}}.now()) ON CONFLICT (operation_id) DO NOTHING`),
		// Primary key. The forward operation may have been undone before it could settle: then there is no row yet.
		reinstateSegment: q(`INSERT INTO {{schema}}.refund_segment
			(operation_id, business_key, saga_id, segment, supplier_id, status, amount, currency, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, 'reinstated', $6, $7, {{schema}}.now(), {{schema}}.now())
			ON CONFLICT (operation_id) DO UPDATE SET status = 'reinstated', updated_at = excluded.updated_at`),
		// Index refund_segment_saga: what the suppliers took back.
		sumSegments: q(`SELECT count(*), coalesce(sum(amount), 0)::bigint FROM {{schema}}.refund_segment
			WHERE saga_id = $1 AND status = 'refunded'`),
		// Index refund_segment_saga.
		segments: q(`SELECT segment, supplier_id, status, amount, currency FROM {{schema}}.refund_segment
			WHERE saga_id = $1 ORDER BY segment, operation_id`),
	}
}
