package export

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

// Migrate brings the tables of exports up to date ("" = "journeyman").
func Migrate(ctx context.Context, db Conn, schema string) error {
	return postgres.MigrateFolder(ctx, db, postgres.SchemaOr(schema), "export", migrations, "migrations")
}

type queries struct {
	insertExport, pages, readPage, chain, insertPage, dropRows string
	discardRows, discard, dropPage, publish, total             string
	expired, objects, expire, dropPages                        string
}

// render fills in the schema, once. All statements of the package are here, but for those of the data sets ([Dataset]).
func render(schema string) queries {
	q := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return queries{
		// Primary key.
		insertExport: q(`INSERT INTO {{schema}}.data_export (id, tenant, dataset, rows, pages, state, frozen_at)
			VALUES ($1, $2, $3, $4, $5, 'frozen', {{schema}}.now())`),
		// Primary key.
		pages: q(`SELECT pages FROM {{schema}}.data_export WHERE id = $1`),
		// Primary key, one page.
		readPage: q(`SELECT body FROM {{schema}}.data_export_row WHERE export_id = $1 AND n > $2 AND n <= $3 ORDER BY n`),
		// Primary key.
		chain: q(`SELECT chain FROM {{schema}}.data_export_page WHERE export_id = $1 AND page = $2`),
		// Primary key. A repeat of the operation writes the same again.
		insertPage: q(`INSERT INTO {{schema}}.data_export_page (export_id, page, object, rows, bytes, sha256, chain)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (export_id, page) DO NOTHING`),
		// Primary key, one page.
		dropRows: q(`DELETE FROM {{schema}}.data_export_row WHERE export_id = $1 AND n > $2 AND n <= $3`),
		// Primary key, at most Config.MaxRows.
		discardRows: q(`DELETE FROM {{schema}}.data_export_row WHERE export_id = $1`),
		discard:     q(`UPDATE {{schema}}.data_export SET state = 'discarded' WHERE id = $1 AND state = 'frozen'`),
		dropPage:    q(`DELETE FROM {{schema}}.data_export_page WHERE export_id = $1 AND page = $2`),
		// Primary key, conditional: every page must be there.
		publish: q(`UPDATE {{schema}}.data_export e SET state = 'published', expires_at = {{schema}}.now() + $2::interval
			WHERE id = $1 AND state = 'frozen' AND e.pages = (SELECT count(*) FROM {{schema}}.data_export_page p WHERE p.export_id = e.id)`),
		// Primary key; the last page has the checksum of all.
		total: q(`SELECT e.dataset, e.rows, e.pages, e.frozen_at, e.expires_at, coalesce(sum(p.bytes), 0)::bigint,
			coalesce((array_agg(p.sha256 ORDER BY p.page DESC))[1], '')
			FROM {{schema}}.data_export e LEFT JOIN {{schema}}.data_export_page p ON p.export_id = e.id WHERE e.id = $1 GROUP BY e.id`),
		// Index data_export_expiry. Who has it locked deals with it.
		expired: q(`SELECT id FROM {{schema}}.data_export WHERE state = 'published' AND expires_at <= {{schema}}.now()
			ORDER BY expires_at LIMIT 1 FOR UPDATE SKIP LOCKED`),
		objects:   q(`SELECT object FROM {{schema}}.data_export_page WHERE export_id = $1 ORDER BY page`),
		expire:    q(`UPDATE {{schema}}.data_export SET state = 'expired' WHERE id = $1 AND state = 'published'`),
		dropPages: q(`DELETE FROM {{schema}}.data_export_page WHERE export_id = $1`),
	}
}
