package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/semaphore"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// Worker activates jobs of all types of its Mux, runs their handlers and answers the engine. Make one with [New], call Run once.
type Worker struct {
	rt     *Runtime
	conn   gateway
	sender *zeebe.Sender
	cfg    Config
	tracer trace.Tracer

	slots  *semaphore.Weighted // Concurrency; a job that must run alone takes all of them (path rule 7)
	lanes  *semaphore.Weighted // shared transactions, see lanesOf
	active atomic.Int64        // jobs received and not done, never above MaxJobsActive

	mu   sync.Mutex
	held map[*held]struct{} // received and not done, for the extender
	free chan struct{}      // a slot of MaxJobsActive came free

	began    time.Time // as counted by fillWait
	waiting  []*waiter // for a slot, in order; may be taken along
	watch    watch
	breakers map[string]*breaker // by job type
	rates    rates
	intakes  []*intake
	ran      atomic.Bool
	force    chan struct{} // closed by Force
	forced   sync.Once
}

// New makes a worker for the tables of cfg.Schema behind pool. All mistakes in mux and cfg are reported at once. The worker
// opens a small pool of its own for control statements; Run closes it.
func New(conn *zeebe.Conn, pool *pgxpool.Pool, mux *Mux, cfg Config) (*Worker, error) {
	if conn == nil {
		return nil, errors.New("connection: nil")
	}
	return newWorker(conn, pool, mux, cfg)
}

func newWorker(conn gateway, pool *pgxpool.Pool, mux *Mux, cfg Config) (*Worker, error) {
	if mux == nil {
		mux = NewMux()
	}
	cfg = cfg.withDefaults()
	limits := cfg.checkWorker(pool, len(mux.Types()))
	if limits == nil && len(mux.forward) == 0 {
		limits = errors.New("mux: no handler")
	}
	rt, err := NewRuntime(pool, mux, cfg, conn.Cluster())
	if err := errors.Join(limits, err); err != nil {
		if rt != nil {
			rt.Close()
		}
		return nil, err
	}
	w := &Worker{began: time.Now(), rt: rt, conn: conn, cfg: cfg, tracer: cfg.TracerProvider.Tracer(tracerName), held: map[*held]struct{}{}, free: make(chan struct{}, 1), force: make(chan struct{})}
	w.slots, w.lanes = semaphore.NewWeighted(int64(cfg.Concurrency)), semaphore.NewWeighted(int64(lanesOf(cfg.Concurrency)))
	w.breakers = map[string]*breaker{}
	for _, t := range mux.Types() {
		w.intakes = append(w.intakes, newIntake(t))
		w.breakers[t] = newBreaker(cfg.NoBreaker, cfg.BreakerBackoff)
	}
	acked, err := Acknowledged(cfg.Schema)
	if err != nil {
		rt.Close()
		return nil, err
	}
	w.sender, err = zeebe.NewSender(zeebe.SenderConfig{Pool: rt.control, Gateway: conn, Queue: rt.queue, Acked: acked, Log: cfg.Log})
	if err != nil {
		rt.Close()
		return nil, err
	}
	rt.send = func(ctx context.Context, q *zeebe.Queued) {
		// A recorded outcome is sent whatever the job's deadline and the worker's drain say (path rule 6). The connection bounds each call.
		_ = w.sender.Send(context.WithoutCancel(ctx), q) // the row is there: the sweep sends it again
	}
	rt.direct = func(ctx context.Context, c zeebe.Command) error {
		return w.sender.Tell(context.WithoutCancel(ctx), c)
	}
	rt.active = func(ctx context.Context, jobKey int64) (bool, error) {
		err := conn.UpdateJobTimeout(ctx, jobKey, cfg.JobTimeout)
		if zeebe.IsFailedPrecondition(err) || zeebe.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	return w, nil
}

// Acknowledged is for zeebe.SenderConfig.Acked of a sender that runs apart from a worker: it keeps with the operation, in schema
// ("" = "journeyman"), that the engine has its ThrowError or FailJob(0) (path rule 5). A worker's own sender has it.
func Acknowledged(schema string) (func(b *pgx.Batch, acked []zeebe.Queued), error) {
	store, err := dedup.New(schema)
	if err != nil {
		return nil, err
	}
	return func(b *pgx.Batch, acked []zeebe.Queued) {
		var ids []string
		var keys []int64
		for _, c := range acked {
			if c.OperationID != "" && (c.Kind == zeebe.KindThrow || (c.Kind == zeebe.KindFail && c.Retries <= 0)) {
				ids, keys = append(ids, c.OperationID), append(keys, c.JobKey)
			}
		}
		if len(ids) > 0 {
			store.QueueAnswered(b, ids, keys)
		}
	}, nil
}

// Runtime gives the worker's runtime: look-ups, undo, sweeps.
func (w *Worker) Runtime() *Runtime { return w.rt }

// Sender gives the worker's command sender, which sends all commands of the cluster.
func (w *Worker) Sender() *zeebe.Sender { return w.sender }

// Active is the number of jobs received and not done.
func (w *Worker) Active() int { return int(w.active.Load()) }

// Run works until ctx is cancelled, then drains: it stops activating, hands back untouched jobs with their retries unchanged,
// also those that the gateway had pushed and nobody had read, lets running handlers finish for Config.DrainTimeout, writes down
// what was acknowledged, and returns nil. An error means that handlers had to be cut off; their jobs come back when their time-out
// passes. A handler that ignores even its context is left behind: Run returns two seconds later. Run may be called once.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return errors.New("worker: Run was called before")
	}
	stuck := false
	defer func() {
		if stuck { // something still holds a connection; the process is about to end
			go w.rt.Close()
			return
		}
		w.rt.Close()
	}()
	if err := w.rt.store.Beat(ctx, w.rt.control, w.rt.process); err != nil {
		if ctx.Err() != nil {
			return nil // cancelled before anything was taken
		}
		return fmt.Errorf("worker: %w", err)
	}
	// Three lives: polling ends with ctx; handlers are cut off after the drain; sender and heartbeat outlive both.
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	last, end := context.WithCancel(context.WithoutCancel(ctx))
	var outer, sweeps, polls, jobs sync.WaitGroup
	outer.Go(func() { _ = w.sender.Run(last) })
	outer.Go(func() { w.beat(last) })
	outer.Go(func() { w.extend(last) })
	outer.Go(func() { w.guard(last) })
	sweeps.Go(func() { w.lookout(ctx) })
	sweeps.Go(func() { _ = w.rt.Run(ctx) })
	for _, b := range w.breakers {
		b.begin(ctx)
	}
	for _, in := range w.intakes {
		var own sync.WaitGroup
		if w.streams(in.jobType) {
			in.begin()
			own.Go(func() { w.stream(ctx, hard, in, &jobs) })
		}
		own.Go(func() { w.poll(ctx, hard, in, &jobs) })
		polls.Go(func() {
			own.Wait()
			close(in.shut)
		})
	}
	var drainEnd time.Time // the drain begins with the end of ctx, not with that of the streams
	polls.Go(func() { <-ctx.Done(); drainEnd = time.Now().Add(w.cfg.DrainTimeout) })
	polls.Wait() // after ctx
	drained := make(chan struct{})
	go func() {
		jobs.Wait()
		sweeps.Wait()
		close(drained)
	}()
	err := w.drain(drained, drainEnd)
	if err != nil {
		cut()
		timer := time.NewTimer(cutGrace)
		defer timer.Stop()
		select {
		case <-drained:
		case <-timer.C:
			stuck = true // a handler ignores its context
		}
	}
	byeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if berr := w.rt.store.Bye(byeCtx, w.rt.control, w.rt.process); berr != nil {
		w.cfg.Log.Warn().Err(berr).Msg("heartbeat not ended; it runs out by itself")
	}
	end()
	outer.Wait()
	w.cfg.Log.Info().Int("active", w.Active()).Msg("worker drained")
	return err
}

// beatEvery and deadAfter are the heartbeat of the crash-loop guard.
const (
	beatEvery = 3 * time.Second
	deadAfter = 15 * time.Second
)

func (w *Worker) beat(ctx context.Context) {
	for pause(ctx, beatEvery) == nil {
		if err := w.rt.store.Beat(ctx, w.rt.control, w.rt.process); err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn().Err(err).Msg("heartbeat failed")
		}
	}
}

// extend makes held jobs ours for longer when a third of their time is over, until their SLA (path rule 8). A lost extension
// changes nothing: what is committed is a fact, and the engine takes it from anyone.
func (w *Worker) extend(ctx context.Context) {
	for pause(ctx, w.cfg.JobTimeout/9) == nil {
		now := time.Now()
		w.mu.Lock()
		var due []*held
		for h := range w.held {
			if now.Sub(h.extended()) > w.cfg.JobTimeout/3 && h.extensible(now) {
				due = append(due, h)
			}
		}
		w.mu.Unlock()
		slices.SortFunc(due, func(a, b *held) int { return a.extended().Compare(b.extended()) })
		for _, h := range due {
			at := time.Now()
			timeout := min(w.cfg.JobTimeout, h.last().Sub(at))
			if timeout <= 0 {
				continue
			}
			err := w.conn.UpdateJobTimeout(ctx, h.job.Key, timeout)
			switch {
			case err == nil:
				h.extend(at, timeout)
			case ctx.Err() == nil:
				w.cfg.Log.Debug().Err(err).Int64("job_key", h.job.Key).Msg("job not extended")
			}
		}
	}
}

func (w *Worker) backoffOf(t string) outcome.Backoff {
	if s := w.rt.mux.forward[t]; s != nil && s.opt.backoff != nil {
		return *s.opt.backoff
	}
	return w.cfg.Backoff
}
