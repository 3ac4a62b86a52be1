package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// Config configures a [Runner]. The zero value works for handlers that do not emit.
type Config struct {
	Schema       string          // PostgreSQL schema, "" means "journeyman"
	Owner        string          // this process, as operators see it, "" means a random name
	Stager       *outbox.Stager  // required when handlers emit: a handler that emits without is FATAL
	Keys         seal.Keys       // required when payloads rest encrypted
	Catalog      *events.Catalog // names the queues and says their retry schedule: a queue that it lacks, or that has another, refuses to start (spec E3). nil means that nobody checks
	Poll         time.Duration   // wait between looks for due items, 0 means 200 ms
	DrainTimeout time.Duration   // how long Run waits for handlers after cancel, 0 means 15 s
	Hooks        Hooks
	Log          zerolog.Logger // the zero value logs nothing
}

// Hooks are called by the runner's goroutines and must return quickly. Nil ones are not called.
type Hooks struct {
	Done     func(queue string, late, took time.Duration) // late: since it was due
	Retrying func(queue string, attempt int, after time.Duration, err error)
	Dead     func(queue, id, reason string, parked bool) // alert (spec E8)
	Fenced   func(queue, id string)                      // this runner stood still past its lease and was taken over: nothing of it was committed
	Paused   func(err error)                             // alert: the database cannot be reached; called for each failed look
}

// Runner does the work of some queues. Make one with [NewRunner].
type Runner struct {
	db      *pgxpool.Pool
	cfg     Config
	sql     statements
	queues  []Queue
	running atomic.Bool
}

// NewRunner checks the configuration and the queues and refuses all that is wrong at once.
func NewRunner(db *pgxpool.Pool, cfg Config, queues ...Queue) (*Runner, error) {
	cfg.Schema = postgres.SchemaOr(cfg.Schema)
	if cfg.Owner == "" {
		cfg.Owner = "work-" + events.NewID()
	}
	if cfg.Poll == 0 {
		cfg.Poll = 200 * time.Millisecond
	}
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = 15 * time.Second
	}
	r := &Runner{db: db, cfg: cfg, sql: render(cfg.Schema)}
	errs := []error{postgres.CheckSchema(cfg.Schema)}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(db != nil, "pool: missing")
	check(cfg.Poll >= time.Millisecond, "poll %v, want 1 ms or more", cfg.Poll)
	check(cfg.DrainTimeout > 0, "drain timeout %v, want above 0", cfg.DrainTimeout)
	check(len(queues) > 0, "queues: none")
	seen := map[string]bool{}
	for _, q := range queues {
		errs = append(errs, q.byCatalog(cfg.Catalog))
		q = q.withDefaults()
		errs = append(errs, q.check())
		check(!seen[q.Name], "queue %q: twice", q.Name)
		check(q.Name != MessageQueue || cfg.Stager != nil, "queue %q: stager: missing", q.Name)
		seen[q.Name] = true
		r.queues = append(r.queues, q)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	return r, nil
}

// Run does due work until ctx is cancelled, then finishes the tasks it has and
// returns nil, at the latest after DrainTimeout. It survives outages of the
// database by waiting.
func (r *Runner) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("work: runs already")
	}
	defer r.running.Store(false)
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	for _, q := range r.queues {
		wg.Go(func() { r.serve(ctx, work, q) })
	}
	drained := make(chan struct{})
	go func() { wg.Wait(); close(drained) }()
	<-ctx.Done()
	late := time.AfterFunc(r.cfg.DrainTimeout, stop)
	defer late.Stop()
	<-drained
	return nil
}

// maxRest is the longest wait between looks in an outage.
const maxRest = 5 * time.Second

// serve claims what is due, never more than can begin at once.
func (r *Runner) serve(ctx, work context.Context, q Queue) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, q.Concurrency)
	ended := make(chan struct{}, 1)
	failures := 0
	for ctx.Err() == nil {
		free := q.Concurrency - len(slots)
		var list []claimed
		if free > 0 {
			var err error
			if list, err = r.claim(ctx, q, free); err != nil && ctx.Err() == nil {
				failures++
				r.cfg.Log.Error().Err(err).Str("queue", q.Name).Msg("work: look for due items; tries go on")
				if r.cfg.Hooks.Paused != nil {
					r.cfg.Hooks.Paused(err)
				}
			} else {
				failures = 0
			}
		}
		for _, c := range list {
			slots <- struct{}{}
			wg.Go(func() {
				r.do(work, q, c)
				<-slots
				select {
				case ended <- struct{}{}:
				default:
				}
			})
		}
		if len(list) == free && free > 0 {
			continue // there may be more, or all slots are taken: then wait for one below
		}
		wait := time.NewTimer(min(maxRest, r.cfg.Poll<<min(failures, 8)))
		select {
		case <-ctx.Done():
		case <-wait.C:
		case <-ended: // a slot, and maybe a key, is free
		}
		wait.Stop()
	}
}

// claimed is an item under our lease.
type claimed struct {
	Task
	row, fence int64
	attempts   int
	unread     error
}

func (r *Runner) claim(ctx context.Context, q Queue, n int) ([]claimed, error) {
	rows, err := r.db.Query(ctx, r.sql.claim, q.Name, r.cfg.Owner, q.Lease, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (claimed, error) {
		c := claimed{}
		var body []byte
		c.Queue = q.Name
		err := row.Scan(&c.row, &c.fence, &c.ID, &c.Key, &body, &c.Origin, &c.attempts, &c.NotBefore, &c.Put)
		c.Attempt = c.attempts + 1
		if _, sealed := seal.Sealed(body); sealed && err == nil {
			body, c.unread = seal.Open(r.cfg.Keys, body, bound(c.Queue, c.ID))
		}
		c.Payload = body
		return c, err
	})
}
