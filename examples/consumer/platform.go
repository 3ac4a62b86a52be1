package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/outbox"
)

const catalogYAML = `
domains: [bookings]
messages:
  - {type: bookings.booking.confirmed, version: 1, class: domain, owner: bookings, producers: [desk], consumers: [invoicing]}
  - {type: bookings.booking.confirmed, version: 2, class: domain, owner: bookings, producers: [desk], consumers: [invoicing]}
  - {type: bookings.booking.confirmed, version: 3, class: domain, owner: bookings, producers: [desk], consumers: [invoicing]}
queues:
  - {name: reminders, owner: bookings, producers: [invoicing], consumers: [invoicing], retry: [1s, 1m]}
`

// platform is what a service finds around it: tables, a broker (here inside the
// process), and the booking desk that publishes.
type platform struct {
	pool    *pgxpool.Pool
	broker  *kfake.Cluster
	kafka   *kafka.Client
	catalog *events.Catalog
	desk    *outbox.Stager
	later   *work.Store
	stop    func()
}

func open(ctx context.Context, dsn string) (p *platform, err error) {
	p = &platform{stop: func() {}}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.catalog, err = events.ParseCatalog([]byte(catalogYAML)); err != nil {
		return p, err
	}
	if p.pool, err = pgxpool.New(ctx, dsn); err != nil {
		return p, err
	}
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, inbox.Migrate, work.Migrate} {
		if err = migrate(ctx, p.pool, "journeyman"); err != nil {
			return p, err
		}
	}
	if _, err = p.pool.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS invoice (
			booking text PRIMARY KEY, amount bigint NOT NULL, currency text NOT NULL,
			billed_at timestamptz NOT NULL DEFAULT journeyman.now(), reminded_at timestamptz, reminders int NOT NULL DEFAULT 0)`); err != nil {
		return p, err
	}
	if p.broker, err = kfake.NewCluster(kfake.NumBrokers(1)); err != nil {
		return p, err
	}
	if p.kafka, err = kafka.New(kafka.Config{Brokers: p.broker.ListenAddrs()}); err != nil {
		return p, err
	}
	if err = p.kafka.EnsureTopics(ctx, 1, p.catalog.Topics()...); err != nil {
		return p, err
	}
	if p.later, err = work.NewStore("", nil); err != nil {
		return p, err
	}
	if p.desk, err = outbox.NewStager(outbox.Config{Catalog: p.catalog, Producer: "desk", Instance: "desk-1", Env: "example"}); err != nil {
		return p, err
	}
	relay, err := outbox.NewRelay(p.pool, p.kafka, outbox.RelayConfig{Stager: p.desk})
	if err != nil {
		return p, err
	}
	p.stop = background(relay.Run)
	return p, nil
}

func (p *platform) close() {
	p.stop()
	if p.kafka != nil {
		_ = p.kafka.Close()
	}
	if p.broker != nil {
		p.broker.Close()
	}
	if p.pool != nil {
		p.pool.Close()
	}
}

// background runs something until the returned function is called, which waits for its end.
func background(run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run(ctx) // it ends by our cancel
	}()
	return func() { cancel(); <-done }
}

// serve starts a member of the group invoicing and a runner of its queue.
func (p *platform) serve(route inbox.Route, queue work.Queue) (stop func(), err error) {
	i, err := inbox.New(p.kafka, p.pool, inbox.Config{Group: "invoicing", Catalog: p.catalog, Concurrency: 2}, route)
	if err != nil {
		return nil, err
	}
	r, err := work.NewRunner(p.pool, work.Config{Catalog: p.catalog}, queue)
	if err != nil {
		return nil, err
	}
	stops := []func(){background(i.Run), background(r.Run)}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}, nil
}

// emit publishes messages by a transaction of the booking desk.
func (p *platform) emit(ctx context.Context, msgs ...events.Message) error {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	if err := p.desk.Queue(b, events.Origin{OperationID: "confirm-3"}, msgs); err != nil {
		return err
	}
	b.Queue("COMMIT")
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	p.desk.Wake()
	return nil
}

// until waits for a condition in the database.
func (p *platform) until(ctx context.Context, sql string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var ok bool
		if err := p.pool.QueryRow(ctx, sql).Scan(&ok); err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("waited in vain")
		case <-tick.C:
		}
	}
}

// report shows invoices with their reminders, and dead letters.
func (p *platform) report(ctx context.Context, out io.Writer) error {
	rows, err := p.pool.Query(ctx, `
		SELECT booking || ': invoice of ' || amount || ' ' || currency || ', reminded ' || CASE reminders WHEN 1 THEN 'once' ELSE reminders || ' times' END
			|| CASE WHEN reminded_at >= billed_at + interval '1 second' THEN ' after a second' ELSE ' too early' END
		FROM invoice ORDER BY 1`)
	if err != nil {
		return err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	dead, err := inbox.NewDesk("journeyman").Dead(ctx, p.pool, "invoicing", 10)
	if err != nil {
		return err
	}
	for _, d := range dead {
		lines = append(lines, fmt.Sprintf("%s: dead letter, %s", d.BusinessKey, d.Error))
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(out, l); err != nil {
			return err
		}
	}
	return nil
}
