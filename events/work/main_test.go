package work_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// Variables with which the test binary starts itself as a runner that dies.
const (
	envChild = "JOURNEYMAN_TEST_WORK_CHILD" // DSN
	envArm   = "JOURNEYMAN_TEST_WORK_ARM"
)

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		fmt.Fprintln(os.Stderr, "child ended:", child())
		os.Exit(3)
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

// child is a runner process: it runs until it is killed.
func child() error {
	if err := crash.Arm(os.Getenv(envArm), ""); err != nil {
		return err
	}
	pool, err := pgxpool.New(context.Background(), os.Getenv(envChild))
	if err != nil {
		return err
	}
	stager, err := newStager()
	if err != nil {
		return err
	}
	r, err := work.NewRunner(pool, work.Config{Stager: stager, Poll: 10 * time.Millisecond},
		work.Queue{Name: "test", Concurrency: 2, Handler: apply, Timeout: 100 * time.Millisecond, Lease: 500 * time.Millisecond}, work.Messages(1))
	if err != nil {
		return err
	}
	return r.Run(context.Background())
}

const catalogYAML = `
domains: [test]
messages:
  - {type: test.quote.expired, class: domain, owner: test, producers: [tester], consumers: []}
`

func newStager() (*outbox.Stager, error) {
	c, err := events.ParseCatalog([]byte(catalogYAML))
	if err != nil {
		return nil, err
	}
	return outbox.NewStager(outbox.Config{Catalog: c, Producer: "tester", Instance: "i", Env: "test"})
}

type fixture struct {
	*testing.T
	ctx    context.Context
	dsn    string
	pool   *pgxpool.Pool
	store  *work.Store
	desk   *work.Desk
	stager *outbox.Stager
}

func setup(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	f := &fixture{T: t, ctx: ctx, dsn: pgtest.DSN(t), desk: work.NewDesk("journeyman")}
	var err error
	if f.pool, err = pgxpool.New(ctx, f.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, work.Migrate} {
		if err := migrate(ctx, f.pool, "journeyman"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.pool.Exec(ctx, `CREATE TABLE applied (n bigserial, queue text, id text, key text)`); err != nil {
		t.Fatal(err)
	}
	if f.store, err = work.NewStore("", nil); err != nil {
		t.Fatal(err)
	}
	if f.stager, err = newStager(); err != nil {
		t.Fatal(err)
	}
	return f
}

// apply is a handler that writes a row.
func apply(ctx context.Context, tx *outbox.Tx, t work.Task) error {
	_, err := tx.Exec(ctx, `INSERT INTO applied (queue, id, key) VALUES ($1, $2, $3)`, t.Queue, t.ID, t.Key)
	return err
}

func (f *fixture) queue(h work.Handler) work.Queue {
	return work.Queue{Name: "test", Concurrency: 4, Handler: h, Retry: []time.Duration{20 * time.Millisecond, 20 * time.Millisecond}}
}

// run starts a runner; the returned function stops it and waits.
func (f *fixture) run(cfg work.Config, queues ...work.Queue) (stop func()) {
	f.Helper()
	cfg.Poll = 10 * time.Millisecond
	if cfg.Stager == nil {
		cfg.Stager = f.stager
	}
	r, err := work.NewRunner(f.pool, cfg, queues...)
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
				f.Errorf("runner ended with %v", err)
			}
		})
	}
	f.Cleanup(stop)
	return stop
}

// put puts items in one transaction.
func (f *fixture) put(items ...work.Item) {
	f.Helper()
	if err := pgx.BeginFunc(f.ctx, f.pool, func(tx pgx.Tx) error { return f.store.Put(f.ctx, tx, items...) }); err != nil {
		f.Fatal(err)
	}
}

func item(id string) work.Item {
	return work.Item{Queue: "test", ID: id, Payload: map[string]any{"id": id}}
}

func keyed(key string, n int) work.Item {
	it := item(fmt.Sprintf("%s-%d", key, n))
	it.Key = key
	return it
}

func (f *fixture) advance(by time.Duration) {
	f.Helper()
	if err := postgres.AdvanceClock(f.ctx, f.pool, "journeyman", by); err != nil {
		f.Fatal(err)
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

// order gives the ids of the applied items of a key in the order of application.
func (f *fixture) order(key string) string {
	f.Helper()
	var s string
	if err := f.pool.QueryRow(f.ctx, `SELECT coalesce(string_agg(id, ' ' ORDER BY n), '') FROM applied WHERE key = $1`, key).Scan(&s); err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fixture) quarantine() []work.Quarantined {
	f.Helper()
	list, err := f.desk.Quarantine(f.ctx, f.pool, "", 100)
	if err != nil {
		f.Fatal(err)
	}
	return list
}
