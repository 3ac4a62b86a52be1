package worker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// jobTimes notes when jobs were given out, by poll or by stream, and when the engine was asked to leave one to its worker for longer.
type jobTimes struct {
	mu           sync.Mutex
	given, asked []time.Time
	until        []time.Time // that extensions asked for
}

// watchJobs puts a jobTimes before the engine. refuse = no extension gets there.
func (s *site) watchJobs(refuse bool) *jobTimes {
	s.t.Helper()
	n := &jobTimes{}
	s.behind(&proxy{edit: func(*pb.ActivatedJob) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.given = append(n.given, time.Now())
	}}, zeebe.Config{})
	s.eng.Intercept("UpdateJobTimeout", func(ctx context.Context, in any, next func(context.Context) (any, error)) (any, error) {
		timeout := time.Duration(in.(*pb.UpdateJobTimeoutRequest).GetTimeout()) * time.Millisecond //nolint:forcetypeassert // of this method
		n.mu.Lock()
		n.asked, n.until = append(n.asked, time.Now()), append(n.until, time.Now().Add(timeout))
		n.mu.Unlock()
		if refuse {
			return nil, status.Error(codes.Unavailable, "no leader")
		}
		return next(ctx)
	})
	return n
}

// counts gives how many activations and extensions there were so far.
func (n *jobTimes) counts() (given, asked int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.given), len(n.asked)
}

// reached waits for a signal.
func (s *site) reached(what string, c <-chan struct{}) {
	s.t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		s.t.Fatalf("never reached: %s", what)
	}
}

// desk is another system that answers its first call when it is let go.
type desk struct {
	called, goOn   chan struct{}
	calls, settles atomic.Int64
}

func newDesk() *desk { return &desk{called: make(chan struct{}), goOn: make(chan struct{})} }

// mux has one external handler, which holds a room at the desk and writes that down.
func (d *desk) mux(opts ...worker.Option) *worker.Mux {
	mux := worker.NewMux()
	mux.Handle("room.hold", worker.External(worker.Remote[hold, map[string]any, map[string]any]{
		Call: func(ctx context.Context, c worker.Call[hold]) (map[string]any, error) {
			if d.calls.Add(1) == 1 {
				close(d.called)
			}
			select {
			case <-d.goOn:
			case <-ctx.Done():
			}
			return map[string]any{"held": c.In.Room}, ctx.Err()
		},
		Resolve: func(context.Context, worker.Call[hold]) (map[string]any, error) { return nil, worker.ErrNotHappened },
		Settle: func(ctx context.Context, tx *worker.Tx, j worker.Job[hold], res map[string]any) (map[string]any, error) {
			d.settles.Add(1)
			_, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1)`, j.OperationID)
			return res, err
		},
	}, append([]worker.Option{worker.NotCompensable("test"), worker.KeyValidFor(time.Hour)}, opts...)...))
	return mux
}

// effects checks that the operation of instance "a" acted, and was settled, once and in its first run.
func (s *site) effects(w *worker.Worker, d *desk) {
	s.t.Helper()
	op, _, err := w.Runtime().Lookup(s.ctx, "a:reserve")
	if err != nil || op.Attempts != 1 {
		s.t.Errorf("settled by run %d, want by the one that was under way; %v", op.Attempts, err)
	}
	if n := s.count(`SELECT count(*) FROM room`); n != 1 || d.calls.Load() != 1 || d.settles.Load() != 1 {
		s.t.Errorf("%d calls, %d settles, %d rooms, want one of each", d.calls.Load(), d.settles.Load(), n)
	}
}

const shortTime = 2 * time.Second

// shortJobs is a worker whose jobs are its own for shortTime.
func (s *site) shortJobs() worker.Config {
	return worker.Config{
		MaxJobsActive: 8, Concurrency: 2, PollWait: time.Second, Elements: s.rest, SweepEvery: 100 * time.Millisecond,
		JobTimeout: shortTime, HandlerTimeout: shortTime / 2, LockTimeout: shortTime / 8,
	}
}

// TestExtension_longCall: a call takes three times as long as a job is ours. The job is extended meanwhile and nobody else gets it (spec W10).
func TestExtension_longCall(t *testing.T) {
	t.Parallel()
	s, d := newSite(t), newDesk()
	n := s.watchJobs(false)
	w := s.run(d.mux(), s.shortJobs())
	k := s.create("a")
	s.reached("the call", d.called)
	begun := time.Now()
	s.until("three time-outs have passed", func() bool { return time.Since(begun) > 3*shortTime })
	close(d.goOn)
	s.instanceIs(k, "COMPLETED")
	if given, asked := n.counts(); given != 1 || asked < 3 {
		t.Errorf("%d activations and %d extensions, want one and an extension for each time-out at least", given, asked)
	}
	s.effects(w, d)
}

// TestExtension_endsAtTheSLA: past its declared SLA a job is not extended any more, however long its call takes (spec W10, W14). Its
// time-out ends and it is given out again; the operation is the first run's all the same.
func TestExtension_endsAtTheSLA(t *testing.T) {
	t.Parallel()
	const sla = shortTime * 9 / 8
	s, d := newSite(t), newDesk()
	n := s.watchJobs(false)
	w := s.run(d.mux(worker.SLA(sla)), s.shortJobs())
	k := s.create("a")
	s.reached("the call", d.called)
	s.until("given out again", func() bool { given, _ := n.counts(); return given >= 2 })
	n.mu.Lock()
	first, second, asked := n.given[0], n.given[1], 0
	for i, at := range n.asked {
		if at.Before(second) {
			asked++
			if after := n.until[i].Sub(first); after > sla+shortTime/8 {
				t.Errorf("extended until %s after it was received, want nothing past the SLA of %s", after, sla)
			}
		}
	}
	n.mu.Unlock()
	if asked == 0 {
		t.Error("not extended at all, want that until the SLA")
	}
	close(d.goOn)
	s.instanceIs(k, "COMPLETED")
	s.effects(w, d)
}

// TestExtension_lost: no extension reaches the engine, so the job of a running handler is given out again. Only a lost lease stops a
// settle (path rules 8 and 20): the run that was under way settles and answers, once, and the other finds that.
func TestExtension_lost(t *testing.T) {
	t.Parallel()
	t.Run("external", func(t *testing.T) {
		t.Parallel()
		s, d := newSite(t), newDesk()
		n := s.watchJobs(true)
		w := s.run(d.mux(), s.shortJobs())
		k := s.create("a")
		s.reached("the call", d.called)
		s.until("given out again", func() bool { given, _ := n.counts(); return given >= 2 })
		close(d.goOn)
		s.instanceIs(k, "COMPLETED")
		if _, asked := n.counts(); asked == 0 {
			t.Error("no extension was tried")
		}
		s.effects(w, d)
		s.until("no answer left", func() bool { return s.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
	})
	t.Run("transactional", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		n := s.watchJobs(true)
		inside, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		s.start(func(context.Context, *worker.Tx, worker.Job[hold]) (map[string]any, error) {
			once.Do(func() { close(inside) })
			<-goOn
			return nil, nil
		}, func(c *worker.Config) { c.JobTimeout, c.HandlerTimeout = 3*shortTime, 3*shortTime-time.Second })
		k := s.create("a")
		s.reached("the handler", inside)
		s.until("an extension is lost", func() bool { _, asked := n.counts(); return asked >= 1 })
		if err := s.eng.AdvanceClock(time.Minute); err != nil { // more than its time-out; the timer beside the task takes an hour
			t.Fatal(err)
		}
		s.until("given out again", func() bool { given, _ := n.counts(); return given >= 2 })
		close(goOn)
		s.instanceIs(k, "COMPLETED")
		if rooms := s.count(`SELECT count(*) FROM room`); rooms != 1 || s.runs.Load() != 1 {
			t.Errorf("%d rooms after %d runs, want one of each", rooms, s.runs.Load())
		}
		s.until("no answer left", func() bool { return s.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
	})
}
