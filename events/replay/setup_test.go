package replay_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/replay"
	schema "github.com/vitrip/journeyman/events/schema/json"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		child()
		return
	}
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const catalogYAML = `
domains: [test]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [tester], consumers: [view, view-rebuild], retry: [50ms], partitions: 2}
  - {type: test.thing.renamed, class: domain, owner: test, producers: [tester], consumers: [view-rebuild], retry: [50ms], partitions: 2}
  - {type: test.thing.viewed, class: domain, owner: test, producers: [tester], consumers: [], partitions: 2}
`

func catalog() (*events.Catalog, error) {
	own, err := events.ParseCatalog([]byte(catalogYAML))
	if err != nil {
		return nil, err
	}
	more, err := replay.Catalog()
	if err != nil {
		return nil, err
	}
	return events.Merge(own, more)
}

type fixture struct {
	*testing.T
	ctx   context.Context
	dsn   string
	pool  *pgxpool.Pool
	cat   *events.Catalog
	stage *outbox.Stager
}

func setup(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	f := &fixture{T: t, ctx: ctx, dsn: pgtest.DSN(t)}
	var err error
	if f.pool, err = pgxpool.New(ctx, f.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, inbox.Migrate, archive.Migrate, replay.Migrate} {
		if err := migrate(ctx, f.pool, "journeyman"); err != nil {
			t.Fatal(err)
		}
	}
	f.exec(`CREATE TABLE applied (n bigserial PRIMARY KEY, key text, seq bigint, id text, body text)`)
	if f.cat, err = catalog(); err != nil {
		t.Fatal(err)
	}
	if f.stage, err = stager(f.cat); err != nil {
		t.Fatal(err)
	}
	return f
}

// stager checks data against the schemas, so that the replay's own events are right.
func stager(c *events.Catalog) (*outbox.Stager, error) {
	schemas, err := schema.Compile(c)
	if err != nil {
		return nil, err
	}
	return outbox.NewStager(outbox.Config{Catalog: c, Producer: "tester", Instance: "t", Env: "test", Schemas: schemas})
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.pool.Exec(f.ctx, sql, args...); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) count(sql string, args ...any) int {
	f.Helper()
	var n int
	if err := f.pool.QueryRow(f.ctx, sql, args...).Scan(&n); err != nil {
		f.Fatal(err)
	}
	return n
}

func (f *fixture) text(sql string, args ...any) string {
	f.Helper()
	var s string
	if err := f.pool.QueryRow(f.ctx, sql, args...).Scan(&s); err != nil {
		f.Fatal(err)
	}
	return s
}

// day makes a day of the log with n messages of 100 keys: sequences of a key
// grow with the id, every third message is of another type, ten share a time.
func (f *fixture) day(day string, first, n int) {
	f.Helper()
	d, err := time.Parse(time.DateOnly, day)
	if err != nil {
		f.Fatal(err)
	}
	f.exec(fmt.Sprintf(`CREATE TABLE IF NOT EXISTS journeyman.event_log_%s PARTITION OF journeyman.event_log FOR VALUES FROM ('%s 00:00+00') TO ('%s 00:00+00')`,
		d.Format("20060102"), day, d.AddDate(0, 0, 1).Format(time.DateOnly)))
	f.exec(`
		INSERT INTO journeyman.event_log (logged_at, shard, id, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
		SELECT t, 0, n, eid::uuid, typ, 1, 'domain', typ || '.v1', 'K-' || n % 100, n / 100 + 1, 'op-' || n, ARRAY['event_id', eid, 'event_type', typ],
			convert_to('{"messageId":"' || eid || '","messageKind":"event","messageType":"' || typ || '","messageVersion":1,"producer":"tester","producerInstance":"t","traceId":"","actor":{},'
				|| '"data":{"n":' || n || '},"metadata":{"businessKey":"K-' || n % 100 || '","correlationId":"c","operationId":"op-' || n || '","eventClass":"domain"}}', 'UTF8'), t, t
		FROM (SELECT n, gen_random_uuid()::text AS eid, 'test.thing.' || CASE WHEN n % 3 = 0 THEN 'renamed' ELSE 'created' END AS typ,
			$1::date::timestamp AT TIME ZONE 'UTC' + (n / 10) * interval '1 ms' AS t FROM generate_series($2::int, $2::int + $3::int - 1) n) r`, day, first, n)
}

func (f *fixture) runner(edit ...func(*replay.Config)) *replay.Runner {
	f.Helper()
	cfg := replay.Config{DB: f.pool, Stager: f.stage}
	for _, e := range edit {
		e(&cfg)
	}
	r, err := replay.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// apply writes a row for each message.
func apply(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	if !m.Replay || m.ReplayID == "" {
		return fmt.Errorf("message %s is not marked as replayed", m.MessageID)
	}
	_, err := tx.Exec(ctx, `INSERT INTO applied (key, seq, id, body) VALUES ($1, $2, $3, $4)`, m.Metadata.BusinessKey, m.Metadata.Sequence, m.MessageID, m.ReplayID)
	return err
}

// once checks that n messages were applied, each once, each key in order.
func (f *fixture) once(n int) {
	f.Helper()
	if got, distinct := f.count(`SELECT count(*) FROM applied`), f.count(`SELECT count(DISTINCT id) FROM applied`); got != n || distinct != n {
		f.Errorf("%d applied, %d distinct; want %d", got, distinct, n)
	}
	if bad := f.count(`SELECT count(*) FROM (SELECT seq, lag(seq) OVER (PARTITION BY key ORDER BY n) AS before FROM applied) a WHERE seq <= before`); bad != 0 {
		f.Errorf("%d messages out of their key's order", bad)
	}
}

func (f *fixture) eventually(what string, ok func() bool) {
	f.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			f.Fatalf("waited in vain for %s", what)
		}
	}
}

func request(s replay.Source, t replay.Target) replay.Request {
	return replay.Request{Actor: "ann", Reason: "projection was wrong", Source: s, Target: t, Mode: events.ReplayAgain}
}
