package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
)

// bookingView is the read model that the demo's own consumer builds from the
// tour events. The table applied has no unique key on purpose: an event that is
// applied twice shows there, whatever the inbox believes.
type bookingView struct {
	pool  *pgxpool.Pool
	inbox *inbox.Inbox
}

const viewTables = `
	CREATE SCHEMA demo_view;
	CREATE TABLE demo_view.booking (business_key text PRIMARY KEY, state text NOT NULL, sequence bigint NOT NULL);
	CREATE TABLE demo_view.applied (message_id text NOT NULL);`

func newBookingView(ctx context.Context, pool *pgxpool.Pool, sub events.Subscriber, catalog *events.Catalog, log zerolog.Logger) (*bookingView, error) {
	if _, err := pool.Exec(ctx, viewTables); err != nil {
		return nil, fmt.Errorf("booking view: %w", err)
	}
	v := &bookingView{pool: pool}
	var err error
	v.inbox, err = inbox.New(sub, pool, inbox.Config{Group: "booking-view", Catalog: catalog, Concurrency: 4, Log: log},
		inbox.Route{Types: []string{"tour.booking.*"}, Versions: []int{1}, Handler: v.apply})
	if err != nil {
		return nil, fmt.Errorf("booking view: %w", err)
	}
	return v, nil
}

// apply keeps the newest state per booking and counts what was applied.
func (v *bookingView) apply(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	if _, err := tx.Exec(ctx, `INSERT INTO demo_view.applied (message_id) VALUES ($1)`, m.MessageID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO demo_view.booking AS b (business_key, state, sequence) VALUES ($1, $2, $3)
		ON CONFLICT (business_key) DO UPDATE SET state = excluded.state, sequence = excluded.sequence WHERE b.sequence < excluded.sequence`,
		m.Metadata.BusinessKey, m.MessageType, m.Metadata.Sequence)
	return err
}

// applied counts, per event, how often it was applied.
func (v *bookingView) applied(ctx context.Context) (map[string]int, error) {
	rows, err := v.pool.Query(ctx, `SELECT message_id, count(*) FROM demo_view.applied GROUP BY message_id`)
	if err != nil {
		return nil, fmt.Errorf("booking view: %w", err)
	}
	out := map[string]int{}
	var id string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		out[id] = n
		return nil
	})
	return out, err
}
