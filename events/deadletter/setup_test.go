package deadletter_test

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
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
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
  - type: test.thing.created
    class: domain
    owner: test
    producers: [tester]
    consumers: [view, other]
    retry: [20ms]
    partitions: 1
    dlq: test.dlq.v1
    schema: {type: object, required: [n], properties: {n: {type: integer}, good: {type: boolean}}, additionalProperties: false}
`

type fixture struct {
	*testing.T
	ctx    context.Context
	dsn    string
	pool   *pgxpool.Pool
	cat    *events.Catalog
	addrs  []string
	prefix string
	kafka  *kafka.Client
	broker eventstest.Broker
	keys   seal.Keys
}

func setup(t *testing.T, more ...string) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	f := &fixture{T: t, ctx: ctx, dsn: pgtest.DSN(t)}
	var err error
	if f.pool, err = pgxpool.New(ctx, f.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, inbox.Migrate, deadletter.Migrate} {
		if err := migrate(ctx, f.pool, "journeyman"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.pool.Exec(ctx, `CREATE TABLE applied (n bigserial PRIMARY KEY, by text, key text, id text, body text, replay boolean)`); err != nil {
		t.Fatal(err)
	}
	text := catalogYAML
	for _, m := range more {
		text += m
	}
	if f.cat, err = events.ParseCatalog([]byte(text)); err != nil {
		t.Fatal(err)
	}
	f.addrs, f.prefix = brokers(t)
	if f.kafka, err = kafka.New(kafka.Config{Brokers: f.addrs, SessionTimeout: time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.kafka.Close() })
	f.broker = eventstest.Shared(eventstest.Broker{Publisher: f.kafka, Subscriber: f.kafka, Admin: f.kafka}, f.prefix)
	if err := f.broker.EnsureTopics(ctx, 1, append(f.cat.Topics(), deadletter.Topics(f.cat)...)...); err != nil {
		t.Fatal(err)
	}
	return f
}

// consume starts a member of a group. Its handler refuses data that is not good for ever, and what fails() says for now.
func (f *fixture) consume(group string, policy inbox.ReplayPolicy, fails func(m events.Received) error) (stop func()) {
	f.Helper()
	i, err := inbox.New(f.broker, f.pool, inbox.Config{Group: group, Catalog: f.cat, Keys: f.keys, Concurrency: 4, Sweep: 20 * time.Millisecond, CommitEvery: 20 * time.Millisecond},
		inbox.Route{Types: []string{"test.thing.created"}, Replay: policy, Handler: func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
			if fails != nil {
				if err := fails(m); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, `INSERT INTO applied (by, key, id, body, replay) VALUES ($1, $2, $3, $4, $5)`, group, m.Metadata.BusinessKey, m.MessageID, string(m.Data), m.Replay)
			return err
		}})
	if err != nil {
		f.Fatal(err)
	}
	return f.background(i.Run)
}

// bad refuses for good what does not say that it is good.
func bad(m events.Received) error {
	var data struct{ Good bool }
	if err := m.Decode(&data); err != nil || !data.Good {
		return outcome.Fatalf("bad_data", "not good")
	}
	return nil
}

func (f *fixture) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				f.Errorf("ended with %v", err)
			}
		})
	}
	f.Cleanup(stop)
	return stop
}

func (f *fixture) record(key string, n int) events.Record {
	f.Helper()
	id := events.NewID()
	body, err := events.Envelope{
		MessageID: id, MessageKind: events.KindEvent, MessageType: "test.thing.created", MessageVersion: 1, Producer: "tester", ProducerInstance: "t",
		Data:     json.RawMessage(fmt.Sprintf(`{"n": %d}`, n)), // the space shows whether bytes are kept
		Metadata: events.Metadata{BusinessKey: key, CorrelationID: "c", OperationID: "op-" + id, EventClass: events.ClassDomain},
	}.Render()
	if err == nil {
		body, err = events.Finalise(body, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), int64(n))
	}
	if err != nil {
		f.Fatal(err)
	}
	return events.Record{Topic: "test.thing.created.v1", Key: key, Body: body, Headers: []events.Header{{Name: events.HeaderEventID, Value: id}, {Name: events.HeaderEventType, Value: "test.thing.created"}}}
}

func (f *fixture) publish(records ...events.Record) {
	f.Helper()
	for i, err := range f.broker.Publish(f.ctx, records) {
		if err != nil {
			f.Fatalf("publish %d: %v", i, err)
		}
	}
}

func (f *fixture) desk(edit ...func(*deadletter.Config)) *deadletter.Desk {
	f.Helper()
	cfg := deadletter.Config{DB: f.pool, Publisher: f.broker, Keys: f.keys}
	for _, e := range edit {
		e(&cfg)
	}
	d, err := deadletter.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	return d
}

// letters waits for n messages that were set aside and gives them.
func (f *fixture) letters(n int) []inbox.Dead {
	f.Helper()
	var list []inbox.Dead
	f.eventually(fmt.Sprintf("%d dead letters", n), func() bool {
		var err error
		if list, err = f.desk().List(f.ctx, deadletter.Filter{}, 1000); err != nil {
			f.Fatal(err)
		}
		return len(list) == n
	})
	return list
}

func (f *fixture) eventually(what string, ok func() bool) {
	f.Helper()
	deadline := time.NewTimer(30 * time.Second)
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

// order gives the n of what a group applied of a key, in order.
func (f *fixture) order(group, key string) string {
	f.Helper()
	var s string
	if err := f.pool.QueryRow(f.ctx, `SELECT coalesce(string_agg(body::jsonb->>'n', ' ' ORDER BY n), '') FROM applied WHERE by = $1 AND key = $2`, group, key).Scan(&s); err != nil {
		f.Fatal(err)
	}
	return s
}

func why() deadletter.Why {
	return deadletter.Why{Actor: "ann", Reason: "fixed in 1.2.3", RootCause: "the handler refused flags it did not know"}
}

func ids(list []inbox.Dead) []int64 {
	var out []int64
	for _, m := range list {
		out = append(out, m.ID)
	}
	return out
}
