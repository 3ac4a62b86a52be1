package outbox_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(envChild); dsn != "" {
		child(dsn)
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
domains: [test, other-domain]
services: {tester: test, stranger: other-domain}
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [tester, stranger]}
  - {type: test.thing.renamed, class: domain, owner: test, producers: [tester]}
  - {type: test.thing.renamed, version: 2, class: domain, owner: test, producers: [tester]}
  - {type: test.thing.make.requested, kind: command, class: domain, owner: test, producers: ["*"], idempotency_key: data.idempotencyKey}
  - {type: test.zombie.raised, class: domain, owner: test, producers: [tester]}
  - {type: other-domain.thing.created, class: domain, owner: other-domain, producers: [other]}
`

func catalog(tb testing.TB) *events.Catalog {
	tb.Helper()
	c, err := events.ParseCatalog([]byte(catalogYAML))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func stager(tb testing.TB, schema string) *outbox.Stager {
	tb.Helper()
	s, err := outbox.NewStager(outbox.Config{Schema: schema, Catalog: catalog(tb), Producer: "tester", Instance: "tester-1", Env: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// fixture is a migrated database with a stager.
type fixture struct {
	*testing.T
	ctx  context.Context
	pool *pgxpool.Pool
	*outbox.Stager
	desk *outbox.Desk
}

func setup(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	pool := pgtest.Pool(t)
	if err := outbox.Migrate(ctx, pool, "journeyman"); err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, ctx: ctx, pool: pool, Stager: stager(t, ""), desk: outbox.NewDesk("journeyman")}
}

// stage commits one transaction with the messages; the first statements run before the staging and extra after it.
func (f *fixture) stage(o events.Origin, msgs []events.Message, extra ...string) error {
	return f.stageOn(f.pool, o, msgs, extra...)
}

type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func (f *fixture) stageOn(db batcher, o events.Origin, msgs []events.Message, extra ...string) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	if err := f.Queue(b, o, msgs); err != nil {
		return err
	}
	for _, sql := range extra {
		b.Queue(sql)
	}
	b.Queue("COMMIT")
	if err := db.SendBatch(f.ctx, b).Close(); err != nil {
		return err
	}
	f.Wake()
	return nil
}

func created(key string, n int) events.Message {
	return events.Message{Type: "test.thing.created", BusinessKey: key, Data: map[string]any{"n": n}}
}

func renamed(key string, n int) events.Message {
	return events.Message{Type: "test.thing.renamed", BusinessKey: key, Data: map[string]any{"n": n}}
}

func origin(id string) events.Origin {
	return events.Origin{OperationID: id, BusinessKey: "B-1", CorrelationID: "c-1", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
}

// relay starts a relay with fast settings; the returned function stops it and waits.
func (f *fixture) relay(pub events.Publisher, edit ...func(*outbox.RelayConfig)) (r *outbox.Relay, stop func()) {
	f.Helper()
	cfg := outbox.RelayConfig{Poll: 5 * time.Millisecond, Lease: 3 * time.Second, Stager: f.Stager, MaxBackoff: 50 * time.Millisecond}
	for _, e := range edit {
		e(&cfg)
	}
	r, err := outbox.NewRelay(f.pool, pub, cfg)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				f.Errorf("relay ended with %v", err)
			}
		})
	}
	f.Cleanup(stop)
	return r, stop
}

// broker is a Publisher that keeps what it is given. refuse may fail records first.
type broker struct {
	mu     sync.Mutex
	log    []events.Record
	change chan struct{}
	refuse func(r events.Record) error
}

func newBroker() *broker { return &broker{change: make(chan struct{})} }

func (b *broker) Publish(_ context.Context, records []events.Record) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(records))
	stopped := map[string]bool{}
	for i, r := range records {
		switch {
		case stopped[r.Key]:
			errs[i] = events.ErrHeldBack
		case b.refuse != nil:
			errs[i] = b.refuse(r)
		}
		if errs[i] != nil {
			stopped[r.Key] = true
			continue
		}
		b.log = append(b.log, r)
	}
	close(b.change)
	b.change = make(chan struct{})
	return errs
}

func (b *broker) records() []events.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

func (b *broker) setRefuse(fn func(events.Record) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = fn
}

// wait blocks until what was published satisfies ok.
func (f *fixture) wait(b *broker, what string, ok func([]events.Record) bool) []events.Record {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 20*time.Second)
	defer cancel()
	for {
		b.mu.Lock()
		log, change := slices.Clone(b.log), b.change
		b.mu.Unlock()
		if ok(log) {
			return log
		}
		select {
		case <-change:
		case <-ctx.Done():
			f.Fatalf("waited in vain for %s; published: %v", what, brief(log))
		}
	}
}

func atLeast(n int) func([]events.Record) bool {
	return func(log []events.Record) bool { return len(log) >= n }
}

// eventually polls a real condition.
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

// brief shows key/sequence of the last records.
func brief(log []events.Record) []string {
	log = log[max(0, len(log)-60):]
	var out []string
	for _, r := range log {
		out = append(out, r.Key+"/"+r.Header(events.HeaderSequence))
	}
	return out
}

func sequence(r events.Record) int {
	n, _ := strconv.Atoi(r.Header(events.HeaderSequence))
	return n
}

// inversions counts first deliveries of a key that come after a first delivery with a higher sequence, and gaps.
func inversions(log []events.Record) int {
	last, bad := map[string]int{}, 0
	seen := map[string]bool{}
	for _, r := range log {
		id := r.Header(events.HeaderEventID)
		if seen[id] {
			continue
		}
		seen[id] = true
		n := sequence(r)
		if n != last[r.Key]+1 {
			bad++
		}
		last[r.Key] = max(last[r.Key], n)
	}
	return bad
}

// sameShard gives n keys that share a shard.
func sameShard(n int) []string {
	by := map[int16][]string{}
	for i := 0; ; i++ {
		k := fmt.Sprintf("K-%d", i)
		s := events.Shard(k)
		by[s] = append(by[s], k)
		if len(by[s]) == n {
			return by[s]
		}
	}
}

// number is the n of a message's data.
func number(tb testing.TB, r events.Record) int {
	tb.Helper()
	e, err := events.ParseEnvelope(r.Body)
	if err != nil {
		tb.Fatal(err)
	}
	var data struct{ N int }
	if err := e.Decode(&data); err != nil {
		tb.Fatal(err)
	}
	return data.N
}
