package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
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
  - {type: test.thing.created, class: domain, owner: test, producers: [tester], consumers: [view, other], retry: [50ms, 50ms, 50ms], partitions: 2}
  - {type: test.thing.created, version: 2, class: domain, owner: test, producers: [tester], consumers: [view], partitions: 2}
  - {type: test.thing.counted, class: operational, owner: test, producers: [tester], consumers: [view], retry: [50ms], partitions: 2}
  - {type: test.thing.viewed, class: domain, owner: test, producers: [viewer], consumers: [], partitions: 2}
  - {type: test.thing.make.requested, kind: command, class: domain, owner: test, producers: ["*"], consumers: [view], idempotency_key: data.idempotencyKey, partitions: 2}
`

func catalog(tb testing.TB) *events.Catalog {
	tb.Helper()
	c, err := events.ParseCatalog([]byte(catalogYAML))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

type fixture struct {
	*testing.T
	ctx   context.Context
	dsn   string
	pool  *pgxpool.Pool
	bus   eventstest.Broker
	lag   events.LagReader // of the broker itself: topics and groups carry the prefix
	over  transport
	addrs []string
	mine  string // prefix of topics and groups
	sent  map[string]bool
	cat   *events.Catalog
	stage *outbox.Stager
	desk  *inbox.Desk
}

// onEach runs a test over each transport, side by side.
func onEach(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	for _, over := range transports() {
		t.Run(over.name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, over))
		})
	}
}

func setup(t *testing.T, over transport) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	f := &fixture{T: t, ctx: ctx, over: over, sent: map[string]bool{}, cat: catalog(t), dsn: pgtest.DSN(t), desk: inbox.NewDesk("journeyman")}
	var err error
	if f.pool, err = pgxpool.New(ctx, f.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, inbox.Migrate} {
		if err := migrate(ctx, f.pool, "journeyman"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.pool.Exec(ctx, `CREATE TABLE applied (n bigserial, key text, id text, body text)`); err != nil {
		t.Fatal(err)
	}
	f.addrs, f.mine = over.serve(t)
	c, err := over.dial(f.addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	f.bus, f.lag = shared(c, f.mine), c
	if err := f.bus.EnsureTopics(ctx, 1, f.cat.Topics()...); err != nil {
		t.Fatal(err)
	}
	if f.stage, err = outbox.NewStager(outbox.Config{Catalog: f.cat, Producer: "viewer", Instance: "i", Env: "test"}); err != nil {
		t.Fatal(err)
	}
	return f
}

// transport is what messages travel on in a test.
type transport struct {
	name  string
	serve func(t *testing.T) (addrs []string, prefix string) // starts a broker, or finds a part of one
	dial  func(addrs []string) (client, error)
}

// client is a connection to a broker.
type client interface {
	events.Publisher
	events.Subscriber
	events.Admin
	events.LagReader
	Close() error
}

// shared is the part of a broker that a prefix of topics and groups marks.
func shared(c client, prefix string) eventstest.Broker {
	return eventstest.Shared(eventstest.Broker{Publisher: c, Subscriber: c, Admin: c}, prefix)
}

func dialKafka(addrs []string) (client, error) {
	return kafka.New(kafka.Config{Brokers: addrs, SessionTimeout: time.Second})
}

// run starts an inbox; the returned function stops it and waits.
func (f *fixture) run(h inbox.Handler, edit ...func(*inbox.Config)) (stop func()) {
	f.Helper()
	return f.runRoutes([]inbox.Route{{Types: []string{"test.thing.created", "test.thing.counted", "test.thing.make.requested"}, Handler: h}}, edit...)
}

func (f *fixture) runRoutes(routes []inbox.Route, edit ...func(*inbox.Config)) (stop func()) {
	f.Helper()
	cfg := inbox.Config{Group: "view", Catalog: f.cat, Stager: f.stage, Concurrency: 4, Sweep: 20 * time.Millisecond, CommitEvery: 20 * time.Millisecond}
	for _, e := range edit {
		e(&cfg)
	}
	i, err := inbox.New(f.bus, f.pool, cfg, routes...)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				f.Errorf("inbox ended with %v", err)
			}
		})
	}
	f.Cleanup(stop)
	return stop
}

// apply is a handler that writes a row.
func apply(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	_, err := tx.Exec(ctx, `INSERT INTO applied (key, id, body) VALUES ($1, $2, $3)`, m.Metadata.BusinessKey, m.MessageID, string(m.Data))
	return err
}

// envelope gives the record of a message.
func envelope(tb testing.TB, typ string, version int, id, key string, n int) events.Record {
	tb.Helper()
	data, _ := json.Marshal(map[string]any{"n": n, "idempotencyKey": fmt.Sprintf("idem-%d", n)})
	kind := events.KindEvent
	if typ == "test.thing.make.requested" {
		kind = events.KindCommand
	}
	body, err := events.Envelope{
		MessageID: id, MessageKind: kind, MessageType: typ, MessageVersion: version, Producer: "tester", ProducerInstance: "t", Data: data,
		Metadata: events.Metadata{BusinessKey: key, CorrelationID: "c-" + key, OperationID: "op-" + id, EventClass: events.ClassDomain},
	}.Render()
	if err == nil {
		body, err = events.Finalise(body, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), int64(n))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return events.Record{Topic: events.Topic(typ, version), Key: key, Body: body, Headers: []events.Header{{Name: events.HeaderEventID, Value: id}}}
}

func (f *fixture) created(key string, n int) events.Record {
	return envelope(f, "test.thing.created", 1, events.NewID(), key, n)
}

// publish sends records. A repeat that stands for one after the server's window of NATS has another id there, and the same in its body.
func (f *fixture) publish(records ...events.Record) {
	f.Helper()
	for n, r := range records {
		id := r.Header(events.HeaderEventID)
		if f.sent[id] && f.over.name == "nats" && r.Header(events.HeaderReplayID) == "" {
			records[n].Headers = append([]events.Header{{Name: events.HeaderEventID, Value: events.NewID()}}, r.Headers...)
		}
		f.sent[id] = true
	}
	for i, err := range f.bus.Publish(f.ctx, records) {
		if err != nil {
			f.Fatalf("publish %d: %v", i, err)
		}
	}
}

func (f *fixture) eventually(what string, ok func() bool) {
	f.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			f.Fatalf("waited in vain for %s", what)
		}
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

func (f *fixture) applied() int { return f.count(`SELECT count(*) FROM applied`) }

// order gives the n of the applied messages of a key, in the order of application.
func (f *fixture) order(key string) string {
	f.Helper()
	var s string
	if err := f.pool.QueryRow(f.ctx, `SELECT coalesce(string_agg(body::jsonb->>'n', ' ' ORDER BY n), '') FROM applied WHERE key = $1`, key).Scan(&s); err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fixture) dead() []inbox.Dead {
	f.Helper()
	list, err := f.desk.Dead(f.ctx, f.pool, "view", 100)
	if err != nil {
		f.Fatal(err)
	}
	return list
}
