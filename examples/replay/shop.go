package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/outbox"
)

const catalogYAML = `
domains: [shop]
messages:
  - {type: shop.sale.closed, class: domain, owner: shop, producers: [till], consumers: [spent]}
`

const tables = `
CREATE TABLE IF NOT EXISTS spent (customer text PRIMARY KEY, cents bigint NOT NULL, sequence bigint NOT NULL);
CREATE TABLE IF NOT EXISTS spent_anew (LIKE spent INCLUDING ALL);
CREATE TABLE IF NOT EXISTS seen (table_name text PRIMARY KEY, at timestamptz NOT NULL, id bigint NOT NULL)`

// shop is a till that stages its sales, and the relay that publishes them. To
// stay without a broker its publisher only acknowledges, and the live handlers
// read the event log; in a service they are routes of package events/inbox.
type shop struct {
	pool   *pgxpool.Pool
	stager *outbox.Stager
	relay  *outbox.Relay
	stop   context.CancelFunc
	done   chan error
	sold   int
}

type acknowledge struct{}

func (acknowledge) Publish(_ context.Context, records []events.Record) []error {
	return make([]error, len(records))
}

func open(ctx context.Context, dsn string) (*shop, error) {
	own, err := events.ParseCatalog([]byte(catalogYAML))
	if err != nil {
		return nil, err
	}
	replays, err := replay.Catalog()
	if err != nil {
		return nil, err
	}
	catalog, err := events.Merge(own, replays)
	if err != nil {
		return nil, err
	}
	s := &shop{done: make(chan error, 1)}
	if s.stager, err = outbox.NewStager(outbox.Config{Catalog: catalog, Producer: "till", Instance: "till-1", Env: "example"}); err != nil {
		return nil, err
	}
	if s.pool, err = pgxpool.New(ctx, dsn); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.pool.Close()
		return nil, err
	}
	run, stop := context.WithCancel(ctx)
	s.stop = stop
	go func() { s.done <- s.relay.Run(run) }()
	return s, nil
}

func (s *shop) prepare(ctx context.Context) error {
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, replay.Migrate} {
		if err := migrate(ctx, s.pool, "journeyman"); err != nil {
			return err
		}
	}
	if _, err := s.pool.Exec(ctx, tables); err != nil {
		return err
	}
	var err error
	s.relay, err = outbox.NewRelay(s.pool, acknowledge{}, outbox.RelayConfig{Stager: s.stager})
	return err
}

func (s *shop) close() {
	s.stop()
	<-s.done
	s.pool.Close()
}

// sell closes n sales of nine customers, every fifth of them a refund, and has the old projection count them.
func (s *shop) sell(ctx context.Context, n int) error {
	for range n {
		s.sold++
		cents := int64(100)
		if s.sold%5 == 0 {
			cents = -100
		}
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		sale := events.Message{Type: "shop.sale.closed", BusinessKey: fmt.Sprintf("customer-%d", s.sold%9), Data: map[string]any{"cents": cents}}
		if err := s.stager.Queue(b, events.Origin{}, []events.Message{sale}); err != nil {
			return err
		}
		b.Queue("COMMIT")
		if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	s.stager.Wake()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var open bool
		if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM journeyman.outbox)`).Scan(&open); err != nil {
			return err
		}
		if !open {
			return s.live(ctx, "spent", countWrong)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// goLive lets the new projection's handler have what came, from the beginning: it passes over what the replay counted.
func (s *shop) goLive(ctx context.Context) error { return s.live(ctx, "spent_anew", countRight) }

// live stands in for a consumer: it gives what was published since it last looked to a handler.
func (s *shop) live(ctx context.Context, table string, h replay.Handler) error {
	log := outbox.NewLog("journeyman")
	until, err := log.Settle(ctx, s.pool)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var at outbox.LogCursor
		if err := tx.QueryRow(ctx, `SELECT coalesce(max(at), '2000-01-01'), coalesce(max(id), 0) FROM seen WHERE table_name = $1`, table).Scan(&at.At, &at.ID); err != nil {
			return err
		}
		for {
			page, err := log.Page(ctx, tx, at, outbox.LogFilter{Until: until, Types: []string{"shop.sale.closed"}}, 1000)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				_, err := tx.Exec(ctx, `INSERT INTO seen VALUES ($1, $2, $3) ON CONFLICT (table_name) DO UPDATE SET at = excluded.at, id = excluded.id`, table, at.At, at.ID)
				return err
			}
			for _, row := range page {
				record, err := row.Record()
				if err != nil {
					return err
				}
				e, err := events.ParseEnvelope(record.Body)
				if err != nil {
					return err
				}
				if err := h(ctx, outbox.NewTx(tx), events.Received{Envelope: e, Attempt: 1}); err != nil {
					return err
				}
				at = row.Cursor()
			}
		}
	})
}

func (s *shop) report(ctx context.Context, out io.Writer, how, table string) error {
	var customers, cents int64
	if err := s.pool.QueryRow(ctx, `SELECT count(*), sum(cents) FROM `+table).Scan(&customers, &cents); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s: %d customers spent %d cents after %d sales\n", how, customers, cents, s.sold)
	return err
}
