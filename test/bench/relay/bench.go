package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// bench is what all parts share.
type bench struct {
	settings
	db       *postgres.Cluster
	broker   *brokerProcess
	pool     *pgxpool.Pool
	catalog  *events.Catalog
	stager   *outbox.Stager
	progress io.Writer
}

const catalogYAML = `
domains: [bench]
messages:
  - {type: bench.room.booked, class: domain, owner: bench, producers: [bench], consumers: ["*"], partitions: 16}
  - {type: bench.room.cleaned, class: domain, owner: bench, producers: [bench], consumers: ["*"], partitions: 4, retry: [1s]}
  - {type: bench.room.priced, class: domain, owner: bench, producers: [prices], consumers: ["*"], partitions: 4, retry: [1s], wire: confluent, schema: {type: object}}
`

const topic = "bench.room.booked.v1"

func (b *bench) prepare(ctx context.Context) error {
	var err error
	if b.catalog, err = events.ParseCatalog([]byte(catalogYAML)); err != nil {
		return err
	}
	if b.stager, err = newStager(b.catalog); err != nil {
		return err
	}
	if err := outbox.Migrate(ctx, b.pool, "journeyman"); err != nil {
		return err
	}
	if err := inbox.Migrate(ctx, b.pool, "journeyman"); err != nil {
		return err
	}
	for _, addr := range []string{b.broker.Forgets, b.broker.Keeps} {
		k, err := dial(addr)
		if err != nil {
			return err
		}
		defer k.Close() //nolint:errcheck // topics stand
		if err := k.EnsureTopics(ctx, 1, b.catalog.Topics()...); err != nil {
			return err
		}
	}
	return nil
}

func newStager(catalog *events.Catalog) (*outbox.Stager, error) {
	return outbox.NewStager(outbox.Config{Catalog: catalog, Producer: "bench", Instance: "bench-1", Env: "bench"})
}

func dial(addr string) (*kafka.Client, error) {
	return kafka.New(kafka.Config{Brokers: []string{addr}})
}

// fill puts n rows as the stager would write them into an empty outbox.
func (b *bench) fill(ctx context.Context, n int) error {
	for _, sql := range []string{
		`TRUNCATE journeyman.outbox`,
		// Rows of the event log are not needed twice; its days stay.
		`DO $$ DECLARE p regclass; BEGIN FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'journeyman.event_log'::regclass LOOP
			EXECUTE format('ALTER TABLE %s DISABLE TRIGGER ALL', p); EXECUTE format('TRUNCATE %s', p); END LOOP; END $$`,
		fmt.Sprintf(`
		INSERT INTO journeyman.outbox (shard, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
		SELECT k.shard, gen_random_uuid(), 'bench.room.booked', 1, 'domain', '%s', k.key, g.n / 1000, 'op-' || g.n,
			ARRAY['event_id', gen_random_uuid()::text, 'event_type', 'bench.room.booked', 'event_version', '1', 'producer', 'bench', 'business_key', k.key, 'env', 'bench', 'correlation_id', 'c-' || g.n, 'operation_id', 'op-' || g.n],
			convert_to('{"messageId":"' || gen_random_uuid() || '","messageType":"bench.room.booked","messageVersion":1,"data":{"room":"' || md5(g.n::text) || '","note":"' || repeat(md5(g.n::text), 3) || '"},"metadata":{"businessKey":"' || k.key || '","correlationId":"c-' || g.n || '"}}', 'UTF8'), now(), now()
		FROM generate_series(1, %d) g(n) JOIN bench_key k ON k.n = g.n %% 1000 ORDER BY g.n`, topic, n),
		`ANALYZE journeyman.outbox`, `CHECKPOINT`,
	} {
		if _, err := b.pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// keys makes the table of keys and their shards that fill reads.
func (b *bench) keys(ctx context.Context) error {
	if _, err := b.pool.Exec(ctx, `DROP TABLE IF EXISTS bench_key; CREATE TABLE bench_key (n int PRIMARY KEY, key text, shard smallint)`); err != nil {
		return err
	}
	for n := range 1000 {
		key := fmt.Sprintf("booking-%04d", n)
		if _, err := b.pool.Exec(ctx, `INSERT INTO bench_key VALUES ($1, $2, $3)`, n, key, events.Shard(key)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, format+"\n", args...) //nolint:errcheck // progress
}
