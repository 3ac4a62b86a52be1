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
	quick      bool
	rows       int
	rounds     int
	backlog    int
	only       string
	dir        string
	cpuprofile string
}

func (s settings) wants(part string) bool {
	return s.only == "" || strings.Contains(","+s.only+",", ","+part+",")
}

func main() {
	var s settings
	var quiet, broker bool
	var relay, brokers string
	flag.BoolVar(&s.quick, "quick", false, "coarse figures in under a minute")
	flag.IntVar(&s.rows, "rows", 0, "rows of one drain (0 = 50000, quick 30000)")
	flag.IntVar(&s.rounds, "rounds", 0, "rounds of alternating runs (0 = 5, quick 2)")
	flag.IntVar(&s.backlog, "backlog", 0, "rows of the large backlog (0 = 500000, quick 100000; soak: 5000000)")
	flag.StringVar(&s.only, "only", "", "comma-separated parts: drain, watermill, produce, latency, backlog, staging, inbox, poison")
	flag.StringVar(&s.dir, "dir", "", "folder on the disk to measure, for the database (empty = temporary folder)")
	flag.StringVar(&s.cpuprofile, "cpuprofile", "", "write a profile of this process to a file")
	flag.BoolVar(&quiet, "quiet", false, "no progress on stderr")
	flag.BoolVar(&broker, "serve-broker", false, "internal: be the broker's process")
	flag.StringVar(&relay, "serve-relay", "", "internal: be a relay's process, on this database")
	flag.StringVar(&brokers, "brokers", "", "internal: broker of -serve-relay")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case broker:
		err = serveBroker(os.Stdin, os.Stdout)
	case relay != "":
		err = serveRelay(ctx, os.Stdin, os.Stdout, relay, brokers)
	default:
		progress := io.Writer(os.Stderr)
		if quiet {
			progress = io.Discard
		}
		err = run(ctx, s, progress)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "relay benchmark:", err)
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
	pick(&s.rows, 50_000, 30_000)
	pick(&s.rounds, 5, 2)
	pick(&s.backlog, 500_000, 100_000)
	b := &bench{settings: s, progress: progress}
	if b.db, err = rig.Start(ctx, s.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.db.Stop()) }()
	if b.broker, err = startBroker(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.broker.stop()) }()
	if b.pool, err = rig.Pool(ctx, b.db.DSN, 24); err != nil {
		return err
	}
	defer b.pool.Close()
	if err := b.prepare(ctx); err != nil {
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
	began := time.Now()
	r := rig.Report{"rows": s.rows, "rounds": s.rounds, "backlog_rows": s.backlog, "cores": runtime.NumCPU()}
	for _, part := range []struct {
		name string
		do   func(context.Context, rig.Report) error
	}{{"produce", b.produceLimit}, {"drain", b.drains}, {"backlog", b.backlogs}, {"latency", b.latencies}, {"staging", b.staging}, {"inbox", b.inboxes}, {"poison", b.poisoned}} {
		if !s.wants(part.name) && !(part.name == "drain" && s.wants("watermill")) {
			continue
		}
		start := time.Now()
		if err := part.do(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Fprintf(progress, "%s took %v\n", part.name, time.Since(start).Round(100*time.Millisecond)) //nolint:errcheck // progress
	}
	r["seconds"] = rig.Round(time.Since(began).Seconds())
	return r.Print(os.Stdout)
}
