package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
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
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/audit"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
)

// stage is everything a run needs, started.
type stage struct {
	cfg     Config
	table   *table
	pool    *pgxpool.Pool
	brokers []string
	grpc    string
	rest    string // base URL
	api     string // base URL
	console string // line for the reader, "" without a console

	app     *app.App
	view    *bookingView
	watch   *watch
	topics  []string
	workers *workers
	player  *player
	clocks  *clocks

	closers []func() error // in the order of starting
}

// newStage starts everything but the worker process, or nothing.
func newStage(ctx context.Context, cfg Config, script []Booking) (_ *stage, err error) {
	s := &stage{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.table = newTable(cfg.Out, cfg.Terminal, s.footer)
	dir, err := os.MkdirTemp("", "jmdemo-")
	if err != nil {
		return nil, err
	}
	s.onClose(func() error { return os.RemoveAll(dir) })
	logFile, err := s.openLog(dir)
	if err != nil {
		return nil, err
	}
	log := zerolog.New(logFile).With().Timestamp().Str("service_name", "journeyman-demo").Logger()

	if err := s.startDatabase(ctx); err != nil {
		return nil, err
	}
	catalog, err := app.Catalog()
	if err != nil {
		return nil, err
	}
	broker, err := startBroker(catalog)
	if err != nil {
		return nil, err
	}
	s.onClose(func() error { broker.Close(); return nil })
	s.brokers, s.topics = broker.ListenAddrs(), topicNames(catalog)

	eng, err := engine.Start(engine.Config{Log: log.Level(zerolog.WarnLevel)})
	if err != nil {
		return nil, err
	}
	s.onClose(eng.Close)
	s.grpc, s.rest = eng.Addr(), "http://"+eng.RESTAddr()
	s.clocks = &clocks{db: s.pool, schemas: []string{postgres.DefaultSchema, sagas.DefaultRecordSchema}, engine: eng}

	world, err := suppliers.Start(suppliers.Config{Now: func() time.Time { return time.Now().Add(s.clocks.offset()) }, Log: log})
	if err != nil {
		return nil, err
	}
	s.onClose(world.Close)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.api = "http://" + lis.Addr().String()
	appCfg := app.Config{
		Pool: s.pool, Gateway: s.grpc, Plaintext: true, REST: s.rest, Brokers: s.brokers, Cluster: "demo-" + eng.Incarnation(), Env: "demo",
		Suppliers: app.Suppliers{
			Flight: world.URL(suppliers.Flight), Hotel: world.URL(suppliers.Hotel), Transfer: world.URL(suppliers.Transfer), Payment: world.URL(suppliers.Payment),
		},
		Callback: s.api, CallbackSecret: []byte(rand.Text()), Log: log,
	}
	if cfg.Reach != nil {
		appCfg.Suppliers = cfg.Reach(appCfg.Suppliers)
	}
	if s.app, err = app.New(appCfg); err != nil {
		return nil, errors.Join(err, lis.Close())
	}
	s.onClose(s.app.Close)
	if err := s.app.Deploy(ctx); err != nil {
		return nil, errors.Join(err, lis.Close())
	}
	if err := s.serveAPI(lis, script, log); err != nil {
		return nil, err
	}
	if cfg.Serve {
		if err := s.serveConsole(appCfg.Cluster, log); err != nil {
			return nil, err
		}
	}
	if s.view, err = newBookingView(ctx, s.pool, s.app.Subscriber(), catalog, log); err != nil {
		return nil, err
	}
	s.watch = newWatch(s.brokers)
	s.player = newPlayer(s, simulated{world})
	killLog := filepath.Join(dir, "kills")
	s.workers = newWorkers(killLog, func(crashAt string) *exec.Cmd { return s.workerCommand(appCfg, crashAt, killLog, logFile) }, s.player.onKill)
	s.player.workers = s.workers
	return s, nil
}

func newPlayer(s *stage, w world) *player {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	s.onClose(func() error { client.CloseIdleConnections(); return nil })
	return &player{
		world: w, watch: s.watch, clocks: s.clocks, table: s.table, brokers: s.brokers,
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
func (s *stage) openLog(dir string) (*os.File, error) {
	name := s.cfg.LogFile
	if name == "" {
		name = filepath.Join(dir, "log")
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	s.onClose(f.Close)
	return f, nil
}

// serveAPI serves the partners' API on loopback until the stage closes.
func (s *stage) serveAPI(lis net.Listener, script []Booking, log zerolog.Logger) error {
	principals := map[string]sagas.Principal{}
	for _, b := range script {
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
			log.Error().Err(err).Msg("API stopped serving")
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
func (s *stage) workerCommand(cfg app.Config, crashAt, killLog string, log io.Writer) *exec.Cmd {
	cmd := exec.Command(s.cfg.Executable, "run", "--until-stdin-closes") //nolint:gosec,noctx // this program; ended by workers
	cmd.Env = append(os.Environ(),
		"JOURNEYMAN_DSN="+s.pool.Config().ConnString(), "JOURNEYMAN_ZEEBE="+cfg.Gateway, "JOURNEYMAN_ZEEBE_PLAINTEXT=true", "JOURNEYMAN_REST="+cfg.REST,
		"JOURNEYMAN_CLUSTER="+cfg.Cluster, "JOURNEYMAN_KAFKA="+cfg.Brokers[0], "JOURNEYMAN_ENV="+cfg.Env, "JOURNEYMAN_CALLBACK="+cfg.Callback,
		"JOURNEYMAN_CALLBACK_SECRET="+string(cfg.CallbackSecret),
		"JOURNEYMAN_FLIGHT="+cfg.Suppliers.Flight, "JOURNEYMAN_HOTEL="+cfg.Suppliers.Hotel,
		"JOURNEYMAN_TRANSFER="+cfg.Suppliers.Transfer, "JOURNEYMAN_PAYMENT="+cfg.Suppliers.Payment,
		"JOURNEYMAN_CALL_TIMEOUT=2s", "JOURNEYMAN_JOB_TIMEOUT=11s", "JOURNEYMAN_RECORDS=false", "JOURNEYMAN_LOG_LEVEL=info",
		"CRASH_AT="+crashAt, "CRASH_LOG="+killLog,
	)
	cmd.Env = append(cmd.Env, s.cfg.WorkerEnv...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

// services are the loops that run beside the play.
func (s *stage) services() []func(context.Context) error {
	return []func(context.Context) error{
		s.view.inbox.Run,
		func(ctx context.Context) error { return s.watch.run(ctx, s.topics) },
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
