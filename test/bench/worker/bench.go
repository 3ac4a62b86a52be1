package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres"
)

// bench is what all contestants share.
type bench struct {
	engine      *engineProcess
	db          *postgres.Cluster
	pool        *pgxpool.Pool // concurrency connections and four to spare
	control     *pgxpool.Pool // ours: control statements
	concurrency int           // transactions at once
	active      int           // MaxJobsActive
	progress    io.Writer
	tell        bool // where the server's time goes

	end time.Time // when the last job was done, where the engine does not say
}

// contestant runs n jobs to their end. Contestants with Zeebe call done, which waits until the engine has completed all.
type contestant interface {
	run(ctx context.Context, name string, n int, done func() error) error
}

// measured is one run.
type measured struct {
	n      int
	took   time.Duration
	cpu    usage
	allocs uint64
}

func (m measured) rate() float64      { return float64(m.n) / m.took.Seconds() }
func (m measured) cpuPerJob() float64 { return m.cpu.sum().Seconds() * 1e6 / float64(m.n) }

func (b *bench) stamp() { b.end = time.Now() }

// measure loads n jobs and runs them. Clock: from the start of the worker to the last completion. CPU: to its end, so that what
// it does afterwards counts.
func (b *bench) measure(ctx context.Context, c contestant, jobType, prefix string, n int) (measured, error) {
	m := measured{n: n}
	name := prefix
	if jobType != "" {
		name = jobType
		if _, err := b.engine.do(order{Op: "load", Type: jobType, Prefix: prefix, N: n}); err != nil {
			return m, err
		}
	}
	if l, ok := c.(interface {
		load(ctx context.Context, prefix string, n int) error
	}); ok {
		if err := l.load(ctx, prefix, n); err != nil {
			return m, err
		}
	}
	if b.tell {
		if err := b.resetStatements(ctx); err != nil {
			return m, err
		}
	}
	runtime.GC() // the last one's garbage is not this one's
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	meter, err := newMeter(0, b.db.PID())
	if err != nil {
		return m, err
	}
	began := time.Now()
	b.end = time.Time{}
	err = c.run(ctx, name, n, func() error {
		_, err := b.engine.do(order{Op: "wait"})
		b.stamp()
		return err
	})
	if b.end.IsZero() {
		b.stamp()
	}
	m.took = b.end.Sub(began)
	var merr error
	m.cpu, merr = meter.read()
	runtime.ReadMemStats(&after)
	m.allocs = after.Mallocs - before.Mallocs
	if err := errors.Join(err, merr); err != nil {
		return m, fmt.Errorf("%T %s: %w", c, prefix, err)
	}
	fmt.Fprintf(b.progress, "%-12s %5d jobs  %6.0f/s  CPU %4.0f us a job (worker %4.0f, backends %4.0f)  %4d allocations\n", //nolint:errcheck // progress
		prefix, n, m.rate(), m.cpuPerJob(), m.cpu.worker.Seconds()*1e6/float64(n), m.cpu.backends.Seconds()*1e6/float64(n), m.allocs/uint64(n)) //nolint:gosec // positive
	if b.tell {
		return m, b.statements(ctx, n)
	}
	return m, nil
}

// median of values; 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// each maps runs to a figure and gives its median.
func each(runs []measured, f func(measured) float64) float64 {
	var v []float64
	for _, m := range runs {
		v = append(v, f(m))
	}
	return median(v)
}

// ratio gives the median of the ratios of runs of one round.
func ratio(over, under []measured, f func(measured) float64) float64 {
	var v []float64
	for i := range min(len(over), len(under)) {
		v = append(v, f(over[i])/f(under[i]))
	}
	return median(v)
}
