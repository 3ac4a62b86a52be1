package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/vitrip/journeyman/test/bench/rig"
)

type settings struct {
	quick       bool
	jobs        int
	rounds      int
	old         int
	only        string
	dir         string
	concurrency int
	active      int
	cpuprofile  string
	memprofile  string
	statements  bool
}

func (s settings) wants(part string) bool {
	return s.only == "" || strings.Contains(","+s.only+",", ","+part+",")
}

// serverSettings of PostgreSQL: what tells of statements costs some of what is measured.
func (s settings) serverSettings() []string {
	if !s.statements {
		return nil
	}
	return []string{"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track_planning=on"}
}

func main() {
	var s settings
	var serveE, quiet bool
	var idleAddr, dsn string
	var types int
	flag.BoolVar(&s.quick, "quick", false, "coarse figures in under a minute")
	flag.IntVar(&s.jobs, "jobs", 0, "jobs of one run (0 = 4000, quick 1500)")
	flag.IntVar(&s.rounds, "rounds", 0, "rounds of alternating runs (0 = 5, quick 2)")
	flag.IntVar(&s.old, "old", 0, "old operations for old_rows_ratio (0 = 1000000, quick 100000; soak: 10000000)")
	flag.StringVar(&s.only, "only", "", "comma-separated parts: hand, single, grouped, batch, bare, river, dbos, replay, old, latency, idle")
	flag.StringVar(&s.dir, "dir", "", "folder on the disk to measure, for the database (empty = temporary folder)")
	flag.IntVar(&s.concurrency, "concurrency", 8, "transactions at once")
	flag.IntVar(&s.active, "active", 400, "MaxJobsActive")
	flag.StringVar(&s.cpuprofile, "cpuprofile", "", "write a profile of this process to a file")
	flag.StringVar(&s.memprofile, "memprofile", "", "write what this process allocated to a file")
	flag.BoolVar(&s.statements, "statements", false, "tell on stderr where the server's time goes (slows it down)")
	flag.BoolVar(&quiet, "quiet", false, "no progress on stderr")
	flag.BoolVar(&serveE, "serve-engine", false, "internal: be the engine's process")
	flag.StringVar(&idleAddr, "serve-idle", "", "internal: be a worker with idle job types, at this gateway")
	flag.StringVar(&dsn, "dsn", "", "internal: database of -serve-idle")
	flag.IntVar(&types, "types", 200, "internal: job types of -serve-idle")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case serveE:
		err = serveEngine(os.Stdin, os.Stdout)
	case idleAddr != "":
		err = serveIdle(ctx, os.Stdin, os.Stdout, idleAddr, dsn, types)
	default:
		progress := io.Writer(os.Stderr)
		if quiet {
			progress = io.Discard
		}
		err = run(ctx, s, progress)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker benchmark:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, progress io.Writer) (err error) {
	pick := func(v *int, full, quick int) {
		if *v == 0 {
			*v = full
			if s.quick {
				*v = quick
			}
		}
	}
	pick(&s.jobs, 4000, 1500)
	pick(&s.rounds, 5, 2)
	pick(&s.old, 1_000_000, 100_000)
	b := &bench{concurrency: s.concurrency, active: s.active, progress: progress, tell: s.statements}
	if b.db, err = rig.Start(ctx, s.dir, s.serverSettings()...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.db.Stop()) }()
	if b.engine, err = startEngine(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.engine.stop()) }()
	if b.pool, err = rig.Pool(ctx, b.db.DSN, s.concurrency+4); err != nil {
		return err
	}
	defer b.pool.Close()
	if b.control, err = rig.Pool(ctx, b.db.DSN, 4); err != nil {
		return err
	}
	defer b.control.Close()
	if _, err := b.pool.Exec(ctx, `CREATE TABLE room (operation_id text, offer text, seats int, minor bigint);`+handwrittenTables); err != nil {
		return err
	}
	if s.cpuprofile != "" {
		f, err := os.Create(s.cpuprofile)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // a profile
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if s.memprofile != "" {
		f, err := os.Create(s.memprofile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, pprof.Lookup("allocs").WriteTo(f, 0), f.Close()) }()
	}
	began := time.Now()
	r := rig.Report{"jobs_per_run": s.jobs, "rounds": s.rounds, "concurrency": s.concurrency, "max_jobs_active": s.active, "cores": runtime.NumCPU(), "old_rows": s.old}
	for _, part := range []func(context.Context, *bench, settings, rig.Report) error{compare, aged, latency, idleTypes} {
		if err := part(ctx, b, s, r); err != nil {
			return err
		}
	}
	r["seconds"] = rig.Round(time.Since(began).Seconds())
	return r.Print(os.Stdout)
}
