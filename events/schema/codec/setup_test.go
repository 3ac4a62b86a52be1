package codec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/schema/codec"
	"github.com/vitrip/journeyman/events/schema/registry"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// secret are keys of encryption.
type secret struct{}

func (secret) Current() (string, error)   { return "k1", nil }
func (secret) Key(string) ([]byte, error) { return make([]byte, seal.KeySize), nil }

const catalogYAML = `
domains: [test]
encryption: {saga: end_to_end}
messages:
  - type: test.booking.confirmed
    class: domain
    owner: test
    producers: [tester]
    consumers: [view]
    partitions: 2
    retry: [50ms, 50ms, 50ms]
    format: avro
    schema:
      type: record
      name: BookingConfirmed
      namespace: test.v1
      fields:
        - {name: id, type: string}
        - {name: n, type: long}
        - {name: price, type: {type: bytes, logicalType: decimal, precision: 12, scale: 2}}
        - {name: at, type: {type: long, logicalType: timestamp-micros}}
        - {name: labels, type: {type: map, values: string}, default: {}}
        - {name: note, type: ["null", string], default: null}
  - type: test.payment.captured
    class: domain
    owner: test
    producers: [tester]
    consumers: [view]
    partitions: 2
    retry: [50ms, 50ms, 50ms]
    format: protobuf
    message: test.v1.PaymentCaptured
    schema: |
      syntax = "proto3";
      package test.v1;
      import "google/protobuf/timestamp.proto";
      message Money { int64 amount = 1; string currency = 2; }
      message PaymentCaptured {
        string id = 1;
        int64 n = 2;
        Money price = 3;
        google.protobuf.Timestamp at = 4;
        map<string, string> labels = 5;
        optional string note = 6;
      }
  - type: test.seat.assigned
    class: domain
    owner: test
    producers: [tester]
    consumers: [view]
    partitions: 2
    wire: confluent
    schema: {type: object, required: [id, n], properties: {id: {type: string}, n: {type: integer}, labels: {type: object}, note: {type: string}}}
  - type: test.seat.make.requested
    kind: command
    class: saga
    owner: test
    producers: ["*"]
    consumers: [view]
    partitions: 2
    format: avro
    schema: {type: record, name: MakeSeat, fields: [{name: idempotencyKey, type: string}, {name: n, type: long}, {name: labels, type: {type: map, values: string}, default: {}}]}
  - type: test.account.locked
    class: audit
    owner: test
    producers: [tester]
    consumers: [view]
    partitions: 2
    format: protobuf
    schema: 'syntax = "proto3"; package test.v1; message AccountLocked { string id = 1; int64 n = 2; }'
  - type: test.plain.noted
    class: domain
    owner: test
    producers: [tester]
    consumers: [view]
    partitions: 2
    schema: {type: object, properties: {id: {type: string}, n: {type: integer}}}
`

// line is a registry's address that can be cut.
type line struct {
	*http.Transport
	cut   atomic.Bool
	blind atomic.Bool // the registry knows no id
	asked atomic.Int64
}

func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	l.asked.Add(1)
	if l.cut.Load() {
		return nil, errors.New("connection refused")
	}
	if l.blind.Load() && strings.Contains(req.URL.Path, "/schemas/ids/") {
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"error_code":40403,"message":"Schema not found"}`)), Request: req}, nil
	}
	return l.Transport.RoundTrip(req)
}

type fixture struct {
	*testing.T
	ctx   context.Context
	pool  *pgxpool.Pool
	kafka eventstest.Broker
	url   string
	cat   *events.Catalog
	desk  *inbox.Desk

	producerLine, consumerLine *line
	producer, consumer         *codec.Codec
	stage                      *outbox.Stager
}

// asker gives a registry client over a line of its own.
func (f *fixture) asker(cache string) (*registry.Client, *line) {
	f.Helper()
	l := &line{Transport: &http.Transport{}}
	c, err := registry.New(registry.Config{URLs: []string{f.url}, Timeout: 2 * time.Second, Tries: 2, Transport: l, Cache: cache})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	f.Cleanup(l.CloseIdleConnections)
	return c, l
}

func parse(tb testing.TB, text string) *events.Catalog {
	tb.Helper()
	c, err := events.ParseCatalog([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func setup(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	f := &fixture{T: t, ctx: ctx, pool: pgtest.Pool(t), cat: parse(t, catalogYAML), desk: inbox.NewDesk("journeyman")}
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, inbox.Migrate, deadletter.Migrate} {
		if err := migrate(ctx, f.pool, "journeyman"); err != nil {
			t.Fatal(err)
		}
	}
	addrs, prefix, url := services(t)
	f.url = url
	k, err := kafka.New(kafka.Config{Brokers: addrs, SessionTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	f.kafka = eventstest.Shared(eventstest.Broker{Publisher: k, Subscriber: k, Admin: k}, prefix)
	if err := f.kafka.EnsureTopics(ctx, 1, f.cat.Topics()...); err != nil {
		t.Fatal(err)
	}
	asks, l := f.asker("")
	f.producerLine = l
	if f.producer, err = codec.New(ctx, codec.Config{Catalog: f.cat, Registry: asks, Producer: "tester"}); err != nil {
		t.Fatal(err)
	}
	asks, f.consumerLine = f.asker("")
	if f.consumer, err = codec.New(ctx, codec.Config{Catalog: f.cat, Registry: asks}); err != nil {
		t.Fatal(err)
	}
	if f.stage, err = outbox.NewStager(outbox.Config{Catalog: f.cat, Producer: "tester", Instance: "tester-1", Env: "test", Schemas: f.producer, Codec: f.producer, Keys: secret{}}); err != nil {
		t.Fatal(err)
	}
	return f
}

// commit stages messages in one transaction.
func (f *fixture) commit(o events.Origin, msgs ...events.Message) {
	f.Helper()
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	if err := f.stage.Queue(b, o, msgs); err != nil {
		f.Fatal(err)
	}
	b.Queue("COMMIT")
	if err := f.pool.SendBatch(f.ctx, b).Close(); err != nil {
		f.Fatal(err)
	}
	f.stage.Wake()
}

// background runs a service until the test ends or stop is called.
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

func (f *fixture) relay() (stop func()) {
	f.Helper()
	r, err := outbox.NewRelay(f.pool, f.kafka, outbox.RelayConfig{Poll: 5 * time.Millisecond, Stager: f.stage})
	if err != nil {
		f.Fatal(err)
	}
	return f.background(r.Run)
}

// got collects what a handler received.
type got struct {
	mu   sync.Mutex
	list []events.Received
}

func (g *got) handle(_ context.Context, _ *outbox.Tx, m events.Received) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, m)
	return nil
}

func (g *got) all() []events.Received {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]events.Received(nil), g.list...)
}

func (f *fixture) consume(h inbox.Handler, edit ...func(*inbox.Config)) (stop func()) {
	f.Helper()
	cfg := inbox.Config{Group: "view", Catalog: f.cat, Codec: f.consumer, Keys: secret{}, Concurrency: 4, Sweep: 20 * time.Millisecond, CommitEvery: 20 * time.Millisecond}
	for _, e := range edit {
		e(&cfg)
	}
	i, err := inbox.New(f.kafka, f.pool, cfg, inbox.Route{Types: []string{"test.*"}, Handler: h})
	if err != nil {
		f.Fatal(err)
	}
	return f.background(i.Run)
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

func (f *fixture) dead() []inbox.Dead {
	f.Helper()
	list, err := f.desk.Dead(f.ctx, f.pool, "view", 100)
	if err != nil {
		f.Fatal(err)
	}
	return list
}

func (f *fixture) count(sql string, args ...any) (n int) {
	f.Helper()
	if err := f.pool.QueryRow(f.ctx, sql, args...).Scan(&n); err != nil {
		f.Fatal(err)
	}
	return n
}

// publish puts records on the topic beside the outbox, as a foreign producer does.
func (f *fixture) publish(records ...events.Record) {
	f.Helper()
	for i, err := range f.kafka.Publish(f.ctx, records) {
		if err != nil {
			f.Fatalf("publish %d: %v", i, err)
		}
	}
}

// foreign is a record with the least headers that a producer of other make needs.
func foreign(messageType, key string, body []byte) events.Record {
	return events.Record{Topic: events.Topic(messageType, 1), Key: key, Body: body, Headers: []events.Header{
		{Name: events.HeaderEventID, Value: events.NewID()}, {Name: events.HeaderEventType, Value: messageType}, {Name: events.HeaderEventVersion, Value: "1"},
	}}
}
