package audit_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const catalogYAML = `
domains: [test]
messages:
  - {type: test.access.granted, class: audit, owner: test, producers: [tester], partitions: 2}
  - {type: test.contract.signed, class: compliance, owner: test, producers: [tester]}
`

type fixture struct {
	*testing.T
	ctx   context.Context
	pool  *pgxpool.Pool
	stage *outbox.Stager
	keys  *seal.Dir
	dir   string // of the keys
}

// setup gives a database whose ledger has 12 links in two chains, links 1 to 6 each, and 2 messages of class compliance.
func setup(t *testing.T, more string) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	f := &fixture{T: t, ctx: ctx, pool: pgtest.Pool(t)}
	if err := outbox.Migrate(ctx, f.pool, "journeyman"); err != nil {
		t.Fatal(err)
	}
	f.dir = t.TempDir() + "/keys"
	if err := seal.Generate(f.dir, "k1"); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.keys, err = seal.OpenDir(f.dir); err != nil {
		t.Fatal(err)
	}
	cat, err := events.ParseCatalog([]byte(catalogYAML + more))
	if err != nil {
		t.Fatal(err)
	}
	if f.stage, err = outbox.NewStager(outbox.Config{Catalog: cat, Producer: "tester", Instance: "i", Env: "test", Keys: f.keys}); err != nil {
		t.Fatal(err)
	}
	for n := range 6 {
		f.emit("test.access.granted", n)
	}
	for n := range 2 {
		f.write("test.contract.signed", "C", n)
	}
	return f
}

// emit adds a link to each of the two chains.
func (f *fixture) emit(typ string, n int) {
	f.Helper()
	done := map[int]bool{}
	for i := 0; len(done) < 2; i++ {
		key := "K-" + strconv.Itoa(i)
		if p := events.Partition(key, 2); !done[p] {
			done[p] = true
			f.write(typ, key, n)
		}
	}
}

func (f *fixture) write(typ, key string, n int) {
	f.Helper()
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	o := events.Origin{CorrelationID: "c", HTTPIdempotencyKey: "h,1:ü"}
	if err := f.stage.Queue(b, o, []events.Message{{Type: typ, BusinessKey: key, Data: map[string]any{"n": n, "secret": "passport"}}}); err != nil {
		f.Fatal(err)
	}
	b.Queue("COMMIT")
	if err := f.pool.SendBatch(f.ctx, b).Close(); err != nil {
		f.Fatal(err)
	}
}

// tamper does what the guards refuse, as one with all rights could.
func (f *fixture) tamper(sql string) {
	f.Helper()
	if _, err := f.pool.Exec(f.ctx, `SET session_replication_role = replica; `+sql+`; SET session_replication_role = DEFAULT`); err != nil {
		f.Fatal(err)
	}
}

type taker struct{}

func (taker) Publish(_ context.Context, records []events.Record) []error {
	return make([]error, len(records))
}

// publish relays until the event log has n rows.
func (f *fixture) publish(n int) {
	f.Helper()
	r, err := outbox.NewRelay(f.pool, taker{}, outbox.RelayConfig{Keys: f.keys, Poll: 5 * time.Millisecond})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for got := 0; got < n; <-tick.C {
		if err := f.pool.QueryRow(f.ctx, `SELECT count(*) FROM journeyman.event_log`).Scan(&got); err != nil {
			f.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		f.Fatal(err)
	}
}
