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

// newRun is the worker process: workers, command sender, relay, saga sweeps and the consumer of the operation records.
func newRun(s Streams) *cobra.Command {
	var f appFlags
	var listen string
	var untilClosed, records bool
	cmd := &cobra.Command{
		Use: "run", Short: "Run the worker process",
		Long: `Run activates the jobs of the travel models, sends recorded answers, relays events to Kafka or NATS,
sweeps up what dead processes left, tells partners by webhook, moves the operation records and archives old ones.
It stages scheduled messages when they are due (--work), copies dead letters to the topics that the catalog names for them
(--dead-letter-topics), archives the event log and the audit chains (--event-archive), and asks the broker how far consumer
groups are behind (--lag-every). Any number of processes may do all of it: each thing is done by one at a time.

SIGTERM or Ctrl-C drains: no new jobs, running ones are finished or handed back, then exit 0.
A second signal ends the process at once; nothing is lost by that.

` + messagesHelp + `

` + secretsHelp + `

With --listen it serves how its workers do, expected throughput beside measured: GET /health as JSON, GET /metrics for
Prometheus. Give it an address that only your own network reaches.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.required(cmd); err != nil {
				return err
			}
			log, err := newLog(s, "journeyman-run", f.level)
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
			cfg, closing, err := f.config(ctx, s, log)
			if err != nil {
				return exit(ExitUsage, err)
			}
			defer closing() //nolint:errcheck // what was archived was written
			return f.runApp(ctx, cfg, func(a *app.App) ([]func(context.Context) error, error) {
				all := []func(context.Context) error{a.Work}
				if records {
					all = append(all, a.Record)
				}
				if listen != "" {
					all = append(all, func(ctx context.Context) error { return serveHealth(ctx, listen, a.WorkerHandler()) })
				}
				return all, nil
			})
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.cfg.Concurrency, "concurrency", 16, "handlers at once")
	fl.IntVar(&f.cfg.MaxJobsActive, "max-jobs-active", 64, "jobs taken and not yet answered")
	fl.DurationVar(&f.cfg.JobTimeout, "job-timeout", 30*time.Second, "a job is ours this long, extended while it runs")
	fl.BoolVar(&records, "records", true, "also move the operation records, which the API answers from")
	fl.StringVar(&listen, "listen", "", "host:port to serve GET /health and GET /metrics of the workers on; none when empty")
	f.addBackground(cmd)
	fl.BoolVar(&untilClosed, "until-stdin-closes", false, "drain when standard input closes: the process that started this one has ended")
	for flag, variable := range map[string]string{
		"concurrency": "CONCURRENCY", "max-jobs-active": "MAX_JOBS_ACTIVE", "job-timeout": "JOB_TIMEOUT", "records": "RECORDS", "listen": "LISTEN",
	} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
	return cmd
}

// lagEvery is how often the broker is asked for the lag of consumer groups where nothing else is said.
const lagEvery = 15 * time.Second

// addBackground declares the flags for what a process does beside jobs and events.
func (f *appFlags) addBackground(cmd *cobra.Command) {
	b, fl := &f.cfg.Background, cmd.Flags()
	fl.BoolVar(&b.Work, "work", true, "also do durable work: scheduled messages are staged when they are due")
	fl.BoolVar(&b.DeadLetters, "dead-letter-topics", true, "also copy dead letters to the catalog's DLQ topics; --replication makes them")
	fl.StringVar(&f.eventArchive, "event-archive", "", "folder or URL (file:///…, s3://…) for the event log and the audit chains; days that are not archived stay in the database then")
	fl.DurationVar(&b.LagEvery, "lag-every", lagEvery, "how often the broker is asked how far consumer groups are behind, for the metrics; 0 never")
	for flag, variable := range map[string]string{"work": "WORK", "dead-letter-topics": "DEAD_LETTER_TOPICS", "event-archive": "EVENT_ARCHIVE", "lag-every": "LAG_EVERY"} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
}

// runApp opens the application and runs what parts gives until ctx ends or one of them fails.
func (f *appFlags) runApp(ctx context.Context, cfg app.Config, parts func(a *app.App) ([]func(context.Context) error, error)) error {
	pool, err := f.db.open(ctx, f.connections)
	if err != nil {
		return err
	}
	defer pool.Close()
	cfg.Pool = pool
	a, err := app.New(cfg)
	if err != nil {
		return exit(ExitUsage, err)
	}
	all, err := parts(a)
	if err != nil {
		return errors.Join(exit(ExitUsage, err), a.Close())
	}
	if err = a.EnsureTopics(ctx); err == nil {
		g, gctx := errgroup.WithContext(ctx)
		for _, run := range all {
			g.Go(func() error { return run(gctx) })
		}
		err = g.Wait()
	}
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
