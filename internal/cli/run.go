package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/crash"
)

// callbackSecret names the variable that holds the secret of callback addresses: secrets never stand in flags.
const callbackSecret = "JOURNEYMAN_CALLBACK_SECRET"

// newRun is the worker process: workers, command sender, relay, saga sweeps and the consumer of the operation records.
func newRun(s Streams) *cobra.Command {
	var db databaseFlags
	var cfg app.Config
	var level, listen string
	var connections int32
	var untilClosed, records bool
	cmd := &cobra.Command{
		Use: "run", Short: "Run the worker process",
		Long: `Run activates the jobs of the travel models, sends recorded answers, relays events to Kafka,
sweeps up what dead processes left, and moves the operation records.

SIGTERM or Ctrl-C drains: no new jobs, running ones are finished or handed back, then exit 0.
A second signal ends the process at once; nothing is lost by that.

` + callbackSecret + ` holds the secret that signs callback addresses, 16 bytes or more, the same as the API's.

With --listen it serves how its workers do, expected throughput beside measured: GET /health as JSON, GET /metrics.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "dsn", "zeebe", "kafka", "cluster", "flight", "hotel", "transfer", "payment", "callback"); err != nil {
				return err
			}
			log, err := newLog(s, "journeyman-run", level)
			if err != nil {
				return err
			}
			if err := crash.Arm(s.Getenv("CRASH_AT"), s.Getenv("CRASH_LOG")); err != nil {
				return fmt.Errorf("CRASH_AT: %w", err)
			}
			ctx := cmd.Context()
			if untilClosed {
				var cancel context.CancelFunc
				ctx, cancel = untilEOF(ctx, s.In)
				defer cancel()
			}
			cfg.CallbackSecret = []byte(s.Getenv(callbackSecret))
			cfg.Schema, cfg.RecordSchema, cfg.Log = db.schema, db.recordSchema, log
			return runWorkers(ctx, db, connections, records, listen, cfg)
		},
	}
	db.add(cmd)
	f := cmd.Flags()
	f.StringVar(&cfg.Gateway, "zeebe", "", "host:port of the Zeebe gateway's gRPC API")
	f.BoolVar(&cfg.Plaintext, "zeebe-plaintext", false, "connect to the gateway without TLS")
	f.StringVar(&cfg.REST, "rest", "", "base URL of the REST API, to tell orphans from answers that were accepted")
	f.StringVar(&cfg.Cluster, "cluster", "", "name of the Zeebe cluster in our rows; never reuse it for a rebuilt one")
	f.StringSliceVar(&cfg.Brokers, "kafka", nil, "Kafka brokers, host:port, comma-separated")
	f.StringVar(&cfg.Env, "environment", "development", "name of the environment, in events")
	f.StringVar(&cfg.Suppliers.Flight, "flight", "", "base URL of the flight supplier")
	f.StringVar(&cfg.Suppliers.Hotel, "hotel", "", "base URL of the hotel supplier")
	f.StringVar(&cfg.Suppliers.Transfer, "transfer", "", "base URL of the transfer supplier")
	f.StringVar(&cfg.Suppliers.Payment, "payment", "", "base URL of the payment provider")
	f.StringVar(&cfg.Callback, "callback", "", "base URL where suppliers reach our API")
	f.IntVar(&cfg.Concurrency, "concurrency", 16, "handlers at once")
	f.IntVar(&cfg.MaxJobsActive, "max-jobs-active", 64, "jobs taken and not yet answered")
	f.DurationVar(&cfg.JobTimeout, "job-timeout", 30*time.Second, "a job is ours this long, extended while it runs")
	f.DurationVar(&cfg.CallTimeout, "call-timeout", 20*time.Second, "one call of a supplier")
	f.DurationVar(&cfg.RelayLease, "relay-lease", 15*time.Second, "events of a relay that died wait this long at most for another")
	f.BoolVar(&records, "records", true, "also move the operation records, which the API answers from")
	f.Int32Var(&connections, "connections", 32, "largest number of database connections")
	f.StringVar(&listen, "listen", "", "host:port to serve GET /health and GET /metrics of the workers on; none when empty")
	f.StringVar(&level, "log-level", "info", "trace, debug, info, warn, error or disabled")
	f.BoolVar(&untilClosed, "until-stdin-closes", false, "drain when standard input closes: the process that started this one has ended")
	for flag, variable := range map[string]string{
		"zeebe": "JOURNEYMAN_ZEEBE", "zeebe-plaintext": "JOURNEYMAN_ZEEBE_PLAINTEXT", "rest": "JOURNEYMAN_REST", "cluster": "JOURNEYMAN_CLUSTER",
		"kafka": "JOURNEYMAN_KAFKA", "environment": "JOURNEYMAN_ENV", "flight": "JOURNEYMAN_FLIGHT", "hotel": "JOURNEYMAN_HOTEL",
		"transfer": "JOURNEYMAN_TRANSFER", "payment": "JOURNEYMAN_PAYMENT", "callback": "JOURNEYMAN_CALLBACK", "concurrency": "JOURNEYMAN_CONCURRENCY",
		"max-jobs-active": "JOURNEYMAN_MAX_JOBS_ACTIVE", "job-timeout": "JOURNEYMAN_JOB_TIMEOUT", "call-timeout": "JOURNEYMAN_CALL_TIMEOUT", "relay-lease": "JOURNEYMAN_RELAY_LEASE",
		"records":     "JOURNEYMAN_RECORDS",
		"listen":      "JOURNEYMAN_LISTEN",
		"connections": "JOURNEYMAN_CONNECTIONS", "log-level": "JOURNEYMAN_LOG_LEVEL",
	} {
		env(cmd, flag, variable)
	}
	return cmd
}

// runWorkers works until ctx ends.
func runWorkers(ctx context.Context, db databaseFlags, connections int32, records bool, listen string, cfg app.Config) error {
	pool, err := db.open(ctx, connections)
	if err != nil {
		return err
	}
	defer pool.Close()
	cfg.Pool = pool
	a, err := app.New(cfg)
	if err != nil {
		return exit(ExitUsage, err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.Work(gctx) })
	if records {
		g.Go(func() error { return a.Record(gctx) })
	}
	if listen != "" {
		g.Go(func() error { return serveHealth(gctx, listen, a.WorkerHandler()) })
	}
	err = g.Wait()
	if closing := a.Close(); err == nil {
		err = closing
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return exit(ExitWrong, err)
	}
	return nil // drained: stopping by a signal is how this command ends
}

// serveHealth serves h on an address until ctx ends.
func serveHealth(ctx context.Context, address string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 14}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // what it serves takes no time
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("listen %s: %w", address, err)
	}
	return nil
}

// untilEOF ends the context when in is closed by whoever holds its other end.
func untilEOF(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}
