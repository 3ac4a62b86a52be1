package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/audit"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
)

// stage is everything a run needs, started.
type stage struct {
	cfg     Config
	script  []Booking
	dir     string // for files of this run
	logFile *os.File
	log     zerolog.Logger
	table   *table

	pool    *pgxpool.Pool
	catalog *events.Catalog
	brokers []string
	engine  *engine.Engine
	rest    string // base URL of the engine's REST API
	world   *suppliers.World
	api     string // base URL of ours
	console string // line for the reader, "" without a console

	appCfg  app.Config
	app     *app.App
	view    *bookingView
	watch   *watch
	workers *workers
	player  *player
	clocks  *clocks

	closers []func() error // in the order of starting
}

// newStage starts everything but the worker process, or nothing.
func newStage(ctx context.Context, cfg Config, script []Booking) (_ *stage, err error) {
	s := &stage{cfg: cfg, script: script}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.table = newTable(cfg.Out, cfg.Terminal, s.footer)
	if s.dir, err = os.MkdirTemp("", "jmdemo-"); err != nil {
		return nil, err
	}
	s.onClose(func() error { return os.RemoveAll(s.dir) })
	for _, start := range []func(context.Context) error{s.openLog, s.startDatabase, s.startBroker, s.startEngine, s.startSuppliers, s.startApp} {
		if err := start(ctx); err != nil {
			return nil, err
		}
	}
	if s.view, err = newBookingView(ctx, s.pool, s.app.Subscriber(), s.catalog, s.log); err != nil {
		return nil, err
	}
	s.watch = newWatch(s.brokers)
	s.player = newPlayer(s)
	killLog := filepath.Join(s.dir, "kills")
	s.workers = newWorkers(killLog, func(crashAt string) *exec.Cmd { return s.workerCommand(crashAt, killLog) }, s.player.onKill)
	s.player.workers = s.workers
	return s, nil
}

func (s *stage) startBroker(context.Context) error {
	var err error
	if s.catalog, err = app.Catalog(); err != nil {
		return err
	}
	broker, err := startBroker(s.catalog)
	if err != nil {
		return err
	}
	s.onClose(func() error { broker.Close(); return nil })
	s.brokers = broker.ListenAddrs()
	return nil
}

func (s *stage) startEngine(context.Context) error {
	var err error
	if s.engine, err = engine.Start(engine.Config{Log: s.log.Level(zerolog.WarnLevel), HistoryLimit: -1}); err != nil {
		return err
	}
	s.onClose(s.engine.Close)
	s.rest = "http://" + s.engine.RESTAddr()
	s.clocks = &clocks{db: s.pool, schemas: []string{postgres.DefaultSchema, sagas.DefaultRecordSchema}, engine: s.engine}
	return nil
}

func (s *stage) startSuppliers(context.Context) error {
	var err error
	s.world, err = suppliers.Start(suppliers.Config{Now: func() time.Time { return time.Now().Add(s.clocks.offset()) }, Log: s.log})
	if err != nil {
		return err
	}
	s.onClose(s.world.Close)
	return nil
}

// startApp connects the application, deploys the models and serves API and console.
func (s *stage) startApp(ctx context.Context) error {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.api = "http://" + lis.Addr().String()
	s.appCfg = app.Config{
		Pool: s.pool, Gateway: s.engine.Addr(), Plaintext: true, REST: s.rest, Brokers: s.brokers, Cluster: "demo-" + s.engine.Incarnation(), Env: "demo",
		Suppliers: app.Suppliers{
			Flight: s.world.URL(suppliers.Flight), Hotel: s.world.URL(suppliers.Hotel),
			Transfer: s.world.URL(suppliers.Transfer), Payment: s.world.URL(suppliers.Payment),
		},
		Callback: s.api, CallbackSecret: []byte(rand.Text()), Log: s.log,
	}
	if s.cfg.Reach != nil {
		s.appCfg.Suppliers = s.cfg.Reach(s.appCfg.Suppliers)
	}
	if s.app, err = app.New(s.appCfg); err != nil {
		return errors.Join(err, lis.Close())
	}
	s.onClose(s.app.Close)
	if err := s.app.Deploy(ctx); err != nil {
		return errors.Join(err, lis.Close())
	}
	if err := s.serveAPI(lis); err != nil {
		return err
	}
	if s.cfg.Serve {
		return s.serveConsole(s.appCfg.Cluster, s.log)
	}
	return nil
}

func newPlayer(s *stage) *player {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	s.onClose(func() error { client.CloseIdleConnections(); return nil })
	return &player{
		world: simulated{s.world}, watch: s.watch, clocks: s.clocks, table: s.table, brokers: s.brokers,
		engine: audit.Engine{Address: s.rest, Client: client}, within: bookingLimit, tick: 20 * time.Millisecond,
		partner: func(tenant string) partner { return partner{base: s.api, token: token(tenant), client: client} },
		ended:   map[string]answer{}, pending: map[string]*pending{},
	}
}

func (s *stage) startDatabase(ctx context.Context) error {
	db, err := openDatabase(ctx, s.cfg.DSN, s.cfg.FetchPostgres, s.cfg.Out)
	if err != nil {
		return err
	}
	s.onClose(db.stop)
	s.table.say("%s", db.what)
	cfg, err := pgxpool.ParseConfig(db.dsn)
	if err != nil {
		return err
	}
	cfg.MaxConns = 24
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	s.onClose(func() error { s.pool.Close(); return nil })
	if err := app.Migrate(ctx, s.pool, postgres.DefaultSchema, sagas.DefaultRecordSchema); err != nil {
		return err
	}
	return audit.InstallWitness(ctx, s.pool, audit.Outbox{
		Table: postgres.DefaultSchema + ".outbox", ID: "event_id", BusinessKey: "business_key", Order: "seq",
	})
}

// openLog opens the log of all processes.
func (s *stage) openLog(context.Context) error {
	name := s.cfg.LogFile
	if name == "" {
		name = filepath.Join(s.dir, "log")
	}
	var err error
	if s.logFile, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil { //nolint:gosec // the user names the file
		return err
	}
	s.onClose(s.logFile.Close)
	s.log = zerolog.New(s.logFile).With().Timestamp().Str("service_name", "journeyman-demo").Logger()
	return nil
}

// serveAPI serves the partners' API on loopback until the stage closes.
func (s *stage) serveAPI(lis net.Listener) error {
	principals := map[string]sagas.Principal{}
	for _, b := range s.script {
		principals[token(b.Tenant)] = sagas.Principal{Tenant: b.Tenant}
	}
	handler, err := s.app.API(principals)
	if err != nil {
		return errors.Join(err, lis.Close())
	}
	server := sagas.Server(handler)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Msg("API stopped serving")
		}
	}()
	s.onClose(func() error {
		err := server.Close()
		<-done
		return err
	})
	return nil
}

// workerCommand starts this program again as the worker process, with everything it needs in its environment.
func (s *stage) workerCommand(crashAt, killLog string) *exec.Cmd {
	cfg := s.appCfg
	cmd := exec.Command(s.cfg.Executable, "run", "--until-stdin-closes") //nolint:gosec,noctx // this program; ended by workers
	cmd.Env = append(os.Environ(),
		"JOURNEYMAN_DSN="+s.pool.Config().ConnString(), "JOURNEYMAN_ZEEBE="+cfg.Gateway, "JOURNEYMAN_ZEEBE_PLAINTEXT=true", "JOURNEYMAN_REST="+cfg.REST,
		"JOURNEYMAN_CLUSTER="+cfg.Cluster, "JOURNEYMAN_KAFKA="+cfg.Brokers[0], "JOURNEYMAN_ENV="+cfg.Env, "JOURNEYMAN_CALLBACK="+cfg.Callback,
		"JOURNEYMAN_CALLBACK_SECRET="+string(cfg.CallbackSecret),
		"JOURNEYMAN_FLIGHT="+cfg.Suppliers.Flight, "JOURNEYMAN_HOTEL="+cfg.Suppliers.Hotel,
		"JOURNEYMAN_TRANSFER="+cfg.Suppliers.Transfer, "JOURNEYMAN_PAYMENT="+cfg.Suppliers.Payment,
		"JOURNEYMAN_CALL_TIMEOUT=2s", "JOURNEYMAN_JOB_TIMEOUT=11s", "JOURNEYMAN_RELAY_LEASE=3s", "JOURNEYMAN_RECORDS=false", "JOURNEYMAN_LOG_LEVEL=info",
		"CRASH_AT="+crashAt, "CRASH_LOG="+killLog,
	)
	cmd.Env = append(cmd.Env, s.cfg.WorkerEnv...)
	cmd.Stdout, cmd.Stderr = s.logFile, s.logFile
	return cmd
}

// services are the loops that run beside the play.
func (s *stage) services() []func(context.Context) error {
	return []func(context.Context) error{
		s.view.inbox.Run,
		func(ctx context.Context) error { return s.watch.run(ctx, topicNames(s.catalog)) },
		s.app.FlushCommands,
		s.app.Record, // here, not in the worker process: kfake never drops a member that dies while it joins a group
		s.workers.run,
	}
}

// token is the static bearer token of a tenant: fine for a demo on loopback, nothing else.
func token(tenant string) string { return "demo-" + tenant }

func (s *stage) footer() string {
	if s.player == nil || s.workers == nil {
		return "starting"
	}
	events, _ := s.watch.seen()
	return fmt.Sprintf("%d of %d bookings ended · %d effects · %d events · %d kills · clocks +%s",
		len(s.player.outcomes()), len(s.table.rows), len(s.player.world.effects()), events, len(s.workers.killed()), s.clocks.offset())
}

// drawLive redraws a live table until the returned function is called, which may be more than once.
func (s *stage) drawLive(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				s.table.finish()
				return
			case <-tick.C:
				s.table.redraw()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (s *stage) onClose(f func() error) { s.closers = append(s.closers, f) }

// close stops everything in the reverse order of starting.
func (s *stage) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}
