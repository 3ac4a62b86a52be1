package faults

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/audit"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// callTimeout is short, so that a supplier's silence costs little of the test's time.
const callTimeout = 800 * time.Millisecond

const tenant = "acme"

// stage is the whole application with everything around it. Any number of
// bookings may be played on it at once; the clocks are everybody's.
type stage struct {
	testing.TB
	ctx     context.Context
	pool    *pgxpool.Pool
	eng     *engine.Engine
	world   *suppliers.World
	app     *app.App
	conn    *zeebe.Conn
	rest    *rest.Client
	brokers []string
	dsn     string
	apis    []string // base URLs of the partners' API, asked in turn
	asked   atomic.Uint64
	http    *http.Client
	traffic *traffic
	ready   func() bool // false while nothing may be concluded from stillness; nil = never

	mu    sync.Mutex
	ahead time.Duration // of the clocks
	moves int           // of the clocks
}

// setup starts a stage with workers and consumers running. Everything ends with the test.
func setup(t testing.TB) *stage {
	t.Helper()
	return setupWith(t, callTimeout, false)
}

// setupWith is setup with another time-out of calls to suppliers, and with jobs pushed by streams or polled.
func setupWith(t testing.TB, patience time.Duration, streams bool) *stage {
	t.Helper()
	s := surround(t, streams)
	s.startApp(patience)
	s.connect()
	return s
}

// surround starts what is around the application: database, broker, engine, suppliers.
func surround(t testing.TB, streams bool) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Minute)
	t.Cleanup(cancel)
	s := &stage{TB: t, ctx: ctx, dsn: pgtest.DSN(t), http: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	t.Cleanup(s.http.CloseIdleConnections)
	s.pool = openPool(t, s.dsn)
	s.must(app.Migrate(ctx, s.pool, postgres.DefaultSchema, sagas.DefaultRecordSchema))
	s.must(audit.InstallWitness(ctx, s.pool, audit.Outbox{Table: postgres.DefaultSchema + ".outbox", ID: "event_id", BusinessKey: "business_key", Order: "seq"}))
	s.must(installMoves(ctx, s.pool))
	catalog, err := app.Catalog()
	s.must(err)
	s.startBroker(catalog)
	s.eng, err = engine.Start(engine.Config{})
	s.must(err)
	t.Cleanup(func() { s.check(s.eng.Close()) })
	s.traffic = watch(s.eng, streams)
	s.world, err = suppliers.Start(suppliers.Config{Now: func() time.Time { return time.Now().Add(s.offset()) }, CallbackPause: 50 * time.Millisecond})
	s.must(err)
	t.Cleanup(func() { s.check(s.world.Close()) })
	return s
}

// connect opens the test's own ways to the engine.
func (s *stage) connect() {
	s.Helper()
	var err error
	s.rest, err = rest.New(rest.Config{Base: "http://" + s.eng.RESTAddr(), HTTP: s.http})
	s.must(err)
	s.conn, err = zeebe.Dial(zeebe.Config{Address: s.eng.Addr(), Plaintext: true, Cluster: "faults-client"})
	s.must(err)
	s.Cleanup(func() { s.check(s.conn.Close()) })
}

func openPool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 48
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (s *stage) startBroker(catalog *events.Catalog) {
	s.Helper()
	opts := []kfake.Opt{kfake.NumBrokers(1)}
	for _, t := range catalog.Topics() {
		opts = append(opts, kfake.SeedTopics(int32(t.Partitions), t.Name)) //nolint:gosec // a catalog's partitions are few
	}
	cluster, err := kfake.NewCluster(opts...)
	s.must(err)
	s.Cleanup(cluster.Close)
	s.brokers = cluster.ListenAddrs()
}

// startApp starts workers, the consumer of the records and the API.
func (s *stage) startApp(patience time.Duration) {
	s.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.apis = []string{"http://" + lis.Addr().String()}
	log := zerolog.Nop()
	if name := os.Getenv("FAULTS_LOG"); name != "" {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the developer names the file
		s.must(err)
		s.Cleanup(func() { s.check(f.Close()) })
		log = zerolog.New(f).With().Timestamp().Logger()
	}
	s.app, err = app.New(app.Config{
		Pool: s.pool, Gateway: s.eng.Addr(), Plaintext: true, REST: "http://" + s.eng.RESTAddr(), Brokers: s.brokers, Cluster: "faults", Env: "test",
		Suppliers: app.Suppliers{
			Flight: s.world.URL(suppliers.Flight), Hotel: s.world.URL(suppliers.Hotel), Transfer: s.world.URL(suppliers.Transfer), Payment: s.world.URL(suppliers.Payment),
		},
		Callback: s.apis[0], CallbackSecret: []byte("0123456789abcdef0123"), CallTimeout: patience, Concurrency: 32, MaxJobsActive: 96, Log: log,
	})
	s.must(err)
	s.Cleanup(func() { s.check(s.app.Close()) })
	s.must(s.app.Deploy(s.ctx))
	handler, err := s.app.API(map[string]sagas.Principal{"token-" + tenant: {Tenant: tenant}})
	s.must(err)
	server := sagas.Server(handler)
	ctx, stop := context.WithCancel(s.ctx)
	var running sync.WaitGroup
	for name, run := range map[string]func(context.Context) error{
		"work": s.app.Work, "record": s.app.Record, "api": func(context.Context) error { return server.Serve(lis) },
	} {
		running.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
				s.Errorf("%s: %v", name, err)
			}
		})
	}
	s.Cleanup(func() {
		stop()
		s.check(server.Close())
		running.Wait()
	})
}

// advance moves the clocks of database and engine together (path rule 8).
func (s *stage) advance(by time.Duration) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, schema := range []string{postgres.DefaultSchema, sagas.DefaultRecordSchema} {
		s.must(postgres.AdvanceClock(s.ctx, s.pool, schema, by))
	}
	s.eng.AdvanceClock(by)
	s.ahead += by
	s.moves++
}

func (s *stage) offset() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) check(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}

// until waits for a condition without a signal of its own.
func (s *stage) until(what string, within time.Duration, done func() bool) {
	s.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			s.Fatalf("%s: not within %v", what, within)
		case <-s.ctx.Done():
			s.Fatalf("%s: %v", what, s.ctx.Err())
		case <-tick.C:
		}
	}
}
