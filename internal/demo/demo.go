// Package demo is the zero-setup demonstration: it starts everything on this
// machine, plays a script of bookings while it breaks things, and audits the
// run from the outside (package audit).
//
// In this process: a private PostgreSQL's parent, the Kafka broker, the
// embedded engine, the suppliers, the HTTP API and one Kafka consumer. In a
// second process, which is killed again and again: workers, relay, sweeps.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/audit"
)

// Config says what to play and where to show it. Script and Executable must be set.
type Config struct {
	Script        fs.FS     // *.json at its root, see LoadScript
	Executable    string    // this program, started again as the worker process: "<Executable> run"
	Bookings      int       // in all; 0 = the script and a few generated ones
	Seed          int64     // of the generated bookings
	DSN           string    // PostgreSQL server; "" = a private one
	FetchPostgres bool      // install PostgreSQL's programs when there are none
	Serve         bool      // stay up until ctx ends
	Out           io.Writer // table and messages
	Terminal      bool      // Out can be redrawn
	LogFile       string    // JSON lines of all processes; "" = dropped
	WorkerEnv     []string  // further environment of the worker process, for tests that break it

	// Reach changes where the worker process finds the suppliers: the seam for networks of tests. nil = directly.
	Reach func(app.Suppliers) app.Suppliers
	// Settle is how long sweeps may take after the last booking until what they have not done counts; 0 = 20 s.
	Settle time.Duration
}

// Limits of a run.
const (
	generated    = 12               // bookings beyond the script in a default run
	atOnce       = 12               // bookings side by side
	bookingLimit = 60 * time.Second // real time until a booking counts as stuck
	settleLimit  = 20 * time.Second // Config.Settle where it is 0
	moreForKills = 3                // rounds of further bookings for kill points that were not met
)

// Run plays the demo and returns what the audit says. It blocks until all is
// stopped and removed again. An error means that the run could not be made or
// finished; faults it found are in the report. When ctx ends early the error is ctx's.
func Run(ctx context.Context, cfg Config) (audit.Report, error) {
	script, err := LoadScript(cfg.Script)
	if err != nil {
		return audit.Report{}, err
	}
	load, err := generate(cfg, script)
	if err != nil {
		return audit.Report{}, err
	}
	s, err := newStage(ctx, cfg, script)
	if err != nil {
		return audit.Report{}, err
	}
	report, err := s.perform(ctx, script, load)
	return report, errors.Join(err, s.close())
}

// perform runs the background services and the play beside each other.
func (s *stage) perform(ctx context.Context, script, load []Booking) (report audit.Report, err error) {
	services, stop := context.WithCancel(ctx)
	defer stop()
	g, gctx := errgroup.WithContext(services)
	for _, run := range s.services() {
		g.Go(func() error { return run(gctx) })
	}
	report, err = s.playAndJudge(gctx, script, load)
	if err == nil && s.cfg.Serve {
		err = s.serve(gctx, report)
	}
	stop()
	if bad := g.Wait(); bad != nil && ctx.Err() == nil {
		return report, bad // why the play was cancelled
	}
	if ctx.Err() != nil && !s.cfg.Serve {
		return report, ctx.Err()
	}
	return report, err
}

func (s *stage) playAndJudge(ctx context.Context, script, load []Booking) (audit.Report, error) {
	start := time.Now()
	stopDrawing := s.drawLive(ctx)
	defer stopDrawing()
	for _, b := range append(script[:len(script):len(script)], load...) {
		s.table.add(b.Name)
	}
	planned := points(killPlan(script))
	if err := s.player.play(ctx, script, load, atOnce); err != nil {
		return audit.Report{}, err
	}
	for round := range moreForKills {
		left := s.workers.planned()
		if len(left) == 0 {
			break
		}
		s.workers.loosen()
		more, err := extra(len(left), template(script), 1000*(round+1))
		if err != nil {
			return audit.Report{}, err
		}
		if err := s.player.together(ctx, more, 1); err != nil {
			return audit.Report{}, err
		}
	}
	report, err := s.settle(ctx, planned, start)
	stopDrawing()
	return report, err
}

// settle audits until the run is clean or the sweeps have had their time.
func (s *stage) settle(ctx context.Context, planned []string, start time.Time) (audit.Report, error) {
	deadline := time.NewTimer(cmp.Or(s.cfg.Settle, settleLimit))
	defer deadline.Stop()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for late := false; ; {
		in, err := s.collect(ctx, planned)
		if err != nil {
			return audit.Report{}, err
		}
		in.Wall = time.Since(start)
		if report := audit.Examine(in); report.Clean() || late {
			return report, nil
		}
		select {
		case <-ctx.Done():
			return audit.Report{}, ctx.Err()
		case <-deadline.C:
			late = true
		case <-again.C:
		}
	}
}

// collect reads the four sources of the audit.
func (s *stage) collect(ctx context.Context, planned []string) (audit.Input, error) {
	staged, err := audit.ReadWitness(ctx, s.pool)
	if err != nil {
		return audit.Input{}, err
	}
	applied, err := s.view.applied(ctx)
	if err != nil {
		return audit.Input{}, err
	}
	history, err := s.player.engine.Read(ctx)
	if err != nil {
		return audit.Input{}, err
	}
	records, err := audit.Log{Brokers: s.brokers}.Read(ctx) // after the witness: what it lacks then was not published in time
	if err != nil {
		return audit.Input{}, err
	}
	return audit.Input{
		Bookings: s.player.outcomes(), Effects: s.player.world.effects(), Staged: staged, Records: records,
		Instances: history.Instances, Elements: history.Elements, Incidents: history.Incidents, Jobs: history.Jobs,
		Applied: applied, Kills: s.workers.killed(), Planned: planned,
	}, nil
}

func (s *stage) serve(ctx context.Context, report audit.Report) error {
	if err := PrintReport(s.cfg.Out, report); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.cfg.Out, "\nAPI      %s/v1/operations   (Authorization: Bearer %s)\n%sengine   gRPC %s, REST %s\nstop with Ctrl-C\n",
		s.api, token("acme"), s.console, s.engine.Addr(), s.rest)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
