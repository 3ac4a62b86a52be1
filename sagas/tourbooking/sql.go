package tourbooking

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

// Migrate brings the tables of bookings, reservations and settlements up to date ("" = "journeyman").
func Migrate(ctx context.Context, db Conn, schema string) error {
	return postgres.MigrateFolder(ctx, db, postgres.SchemaOr(schema), "tourbooking", migrations, "migrations")
}

type queries struct {
	insertBooking, reopenBooking, lockBooking, moveBooking string
	upsertReservation, releaseReservation, countSegments   string
	reservations, flights, insertSettlement, settledAmount string
	standing, adopt, amend, giveBack                       string
}

// render fills in the schema, once. All statements of the package are here.
func render(schema string) queries {
	q := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return queries{
		// Primary key. Nothing when the booking is there.
		insertBooking: q(`INSERT INTO {{schema}}.tour_booking
			(business_key, tenant, booking, saga_id, state, segments, travellers, amount, currency, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {{schema}}.now(), {{schema}}.now()) ON CONFLICT (business_key) DO NOTHING`),
		// Primary key; the row is locked by lockBooking before. The plan of the new attempt replaces the old one.
		reopenBooking: q(`UPDATE {{schema}}.tour_booking SET saga_id = $2, segments = $3, travellers = $4, amount = $5, currency = $6, resume_state = '',
			updated_at = {{schema}}.now() WHERE business_key = $1 AND state = $7`),
		// Primary key; row lock to the end of the transaction. It stands between the saga's gate and the key rows of the outbox.
		lockBooking: q(`SELECT tenant, booking, saga_id, state, resume_state, segments, travellers, amount, currency
			FROM {{schema}}.tour_booking WHERE business_key = $1 FOR UPDATE`),
		// Primary key, conditional on the state that was read.
		moveBooking: q(`UPDATE {{schema}}.tour_booking SET state = $3, resume_state = $4, moves = moves + 1, updated_at = {{schema}}.now()
			WHERE business_key = $1 AND state = $2`),

		// Primary key. A repeat of the operation writes the same again.
		upsertReservation: q(`INSERT INTO {{schema}}.tour_reservation
			(operation_id, business_key, saga_id, segment, kind, supplier_id, status, amount, currency, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, 'confirmed', $7, $8, {{schema}}.now(), {{schema}}.now()) ON CONFLICT (operation_id) DO NOTHING`),
		// Primary key. The forward operation may have been undone before it could settle: then there is no row yet.
		releaseReservation: q(`INSERT INTO {{schema}}.tour_reservation
			(operation_id, business_key, saga_id, segment, kind, supplier_id, status, amount, currency, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, 'released', $7, $8, {{schema}}.now(), {{schema}}.now())
			ON CONFLICT (operation_id) DO UPDATE SET status = 'released', updated_at = excluded.updated_at`),
		// Index tour_reservation_saga, a handful of rows.
		countSegments: q(`SELECT count(DISTINCT segment) FROM {{schema}}.tour_reservation WHERE saga_id = $1 AND status = 'confirmed'`),
		// Index tour_reservation_saga.
		reservations: q(`SELECT segment, kind, supplier_id, status, amount, currency FROM {{schema}}.tour_reservation
			WHERE saga_id = $1 ORDER BY segment, operation_id`),
		// Index tour_reservation_saga.
		flights: q(`SELECT supplier_id FROM {{schema}}.tour_reservation
			WHERE saga_id = $1 AND kind = 'flight' AND status = 'confirmed' ORDER BY operation_id`),
		// Index tour_reservation_saga.
		standing: q(`SELECT kind, supplier_id FROM {{schema}}.tour_reservation
			WHERE saga_id = $1 AND segment = $2 AND status = 'confirmed' ORDER BY created_at DESC, operation_id LIMIT 1`),
		// Index tour_reservation_saga: the new reservation becomes one of the booking.
		adopt: q(`UPDATE {{schema}}.tour_reservation SET saga_id = $3, updated_at = {{schema}}.now() WHERE saga_id = $1 AND supplier_id = $2 AND status = 'confirmed'`),
		// Primary key; the row is locked by lockBooking before.
		amend: q(`UPDATE {{schema}}.tour_booking SET amount = $2, updated_at = {{schema}}.now() WHERE business_key = $1`),
		// Index tour_reservation_saga.
		giveBack: q(`UPDATE {{schema}}.tour_reservation SET status = 'released', updated_at = {{schema}}.now() WHERE saga_id = $1 AND supplier_id = $2`),

		// Primary key. A repeat of the operation writes nothing.
		insertSettlement: q(`INSERT INTO {{schema}}.tour_settlement
			(operation_id, business_key, saga_id, kind, supplier_id, amount, currency, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, {{schema}}.now()) ON CONFLICT (operation_id) DO NOTHING`),
		// Index tour_settlement_booking: what was captured and not paid back, in one currency.
		settledAmount: q(`SELECT coalesce(sum(CASE kind WHEN 'captured' THEN amount WHEN 'refunded' THEN -amount ELSE 0 END), 0)::bigint
			FROM {{schema}}.tour_settlement WHERE business_key = $1 AND currency = $2`),
	}
}
