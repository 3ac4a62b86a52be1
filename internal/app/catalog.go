package app

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/zeebe"
)

// Catalog is the catalog of every message of the application.
func Catalog() (*events.Catalog, error) {
	var all []*events.Catalog
	for name, text := range catalogs() {
		c, err := events.ParseCatalog(text)
		if err != nil {
			return nil, fmt.Errorf("catalog of %s: %w", name, err)
		}
		all = append(all, c)
	}
	replays, err := replay.Catalog()
	if err != nil {
		return nil, fmt.Errorf("catalog of replays: %w", err)
	}
	later, err := work.Catalog()
	if err != nil {
		return nil, fmt.Errorf("catalog of durable work: %w", err)
	}
	merged, err := events.Merge(append(all, replays, later)...)
	if err != nil {
		return nil, err
	}
	return merged, merged.Complete()
}

// emits lists what the application's code stages. A type that the catalogs lack, or that is another domain's, refuses to start (spec E3).
func emits() []string {
	return append(sagas.Events(),
		"tour.booking.quoted", "tour.booking.held", "tour.booking.segment_confirmed", "tour.booking.segment_released", "tour.booking.confirmed",
		"tour.booking.payment_authorized", "tour.booking.ticketing_started", "tour.booking.ticketed", "tour.booking.ticketing_abandoned",
		"tour.booking.amendment_started", "tour.booking.amended", "tour.booking.cancellation_started", "tour.booking.cancelled",
		"tour.booking.compensation_started", "tour.booking.compensated", "tour.booking.expired", "tour.booking.failed", "tour.booking.reopened", "tour.booking.resumed",
		"payment.settlement.authorized", "payment.settlement.captured", "payment.settlement.refunded", "payment.settlement.voided",
		"ticketing.ticket.recorded",
		"tour.refund.approved", "tour.refund.segment_refunded", "tour.refund.segment_refused", "tour.refund.segment_reinstated",
	)
}

// Migrate brings the tables of every part up to date.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema, recordSchema string) error {
	type step struct {
		schema string
		run    func(ctx context.Context, schema string) error
	}
	steps := []step{
		{schema, func(ctx context.Context, s string) error { return zeebe.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return dedup.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return outbox.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return inbox.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return work.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return archive.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return replay.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return deadletter.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return sagas.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return operator.Migrate(ctx, pool, s) }},
		{recordSchema, func(ctx context.Context, s string) error { return inbox.Migrate(ctx, pool, s) }},
		{recordSchema, func(ctx context.Context, s string) error { return deadletter.Migrate(ctx, pool, s) }},
		{recordSchema, func(ctx context.Context, s string) error { return sagas.MigrateRecords(ctx, pool, s) }},
		{recordSchema, func(ctx context.Context, s string) error { return webhook.Migrate(ctx, pool, s) }},
		{schema, func(ctx context.Context, s string) error { return migrateTravel(ctx, pool, s) }},
	}
	for _, m := range steps {
		if err := m.run(ctx, m.schema); err != nil {
			return err
		}
	}
	return nil
}
