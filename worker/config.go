package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// Stager is the part of [outbox.Stager] that the runtime composes its round trips with.
type Stager interface {
	Check(msgs ...events.Message) error
	Queue(b *pgx.Batch, o events.Origin, msgs []events.Message, keys ...string) error
	Wake()
}

// The states of an element instance that matter behind an answer that was not accepted (path rule 14). "" = not known (yet).
const (
	ElementActive     = "ACTIVE"
	ElementCompleted  = "COMPLETED"
	ElementTerminated = "TERMINATED"
)

// Elements tells the state of an element instance; [rest.Client] is one. An instance that is not found (yet) is "" without an error.
//
// [rest.Client]: https://pkg.go.dev/github.com/vitrip/journeyman/zeebe/rest#Client
type Elements interface {
	ElementState(ctx context.Context, elementInstanceKey int64) (string, error)
}

// JobStates tells the last state of a job; [rest.Client] is one. Elements that can tell it too lets the runtime see whether a BPMN error
// had arrived: its task is TERMINATED then as it is when something else ended it. A job that is not found (yet) is "" without an error.
//
// [rest.Client]: https://pkg.go.dev/github.com/vitrip/journeyman/zeebe/rest#Client
type JobStates interface {
	JobState(ctx context.Context, jobKey int64) (string, error)
}

// The states of a job that matter there.
const (
	jobErrorThrown = "ERROR_THROWN"
	jobCanceled    = "CANCELED"
)

// ElementsFunc makes Elements from a function.
type ElementsFunc func(ctx context.Context, elementInstanceKey int64) (string, error)

// ElementState calls f.
func (f ElementsFunc) ElementState(ctx context.Context, elementInstanceKey int64) (string, error) {
	return f(ctx, elementInstanceKey)
}

// Budget policies (spec Z14) for a process instance whose completed variables pass BudgetLimit.
const (
	BudgetWarn   = "warn"
	BudgetRefuse = "refuse"
)

// Config is for [New] and [NewRuntime]. MaxJobsActive and Concurrency must be set for a worker; other zero fields get the default named.
type Config struct {
	MaxJobsActive int    // jobs received and not yet answered, all types together (Zeebe maxJobsActive); at least one per job type
	Concurrency   int    // handlers at once; needs as many pool connections
	Name          string // worker name shown by the engine; "" = "journeyman"
	Schema        string // PostgreSQL schema; "" = "journeyman"
	Group         int    // most jobs of fast transactional handlers that share a transaction (path rule 26); 1 = none do, 0 = 32
	Tenants       []string
	PollOnly      bool // no job streams for any type; see the option of the same name for one type

	Stager   Stager        // nil = handlers must not emit
	Saga     Saga          // nil = jobs with a sagaId are FATAL
	Elements Elements      // nil = answers that are gone stay shown as gone
	Waiting  Waiting       // shows jobs that wait and nobody serves; nil = Elements, where it can tell that too
	Control  *pgxpool.Pool // connections for leases and other control statements; nil = a pool of 4 made from the main one

	JobTimeout     time.Duration // a job is ours this long, extended at a third; 30 s
	HandlerTimeout time.Duration // one transaction of a handler; 10 s, under JobTimeout (path rule 8)
	LockTimeout    time.Duration // wait for a twin on the claim; 3 s, under HandlerTimeout
	CallTimeout    time.Duration // one external call; 20 s, under Lease
	Lease          time.Duration // of an external operation, renewed at a third; 30 s
	PollWait       time.Duration // long poll; 10 s
	DrainTimeout   time.Duration // running handlers get this long after cancel; 20 s
	AskFor         time.Duration // how long a call at a system that ignores keys may still land, see the option of the same name; 24 h
	SweepEvery     time.Duration // expired leases and gone answers; 2 s, jittered
	Backoff        outcome.Backoff
	UnknownBackoff outcome.Backoff // for unknown results; 1 s doubling to 1 min
	PollBackoff    outcome.Backoff // for polls and streams that fail; 100 ms doubling to 10 s
	StallAfter     time.Duration   // a slot held longer is reported; twice what a handler may take in all, 1 min by default
	UnservedAfter  time.Duration   // a job that waits longer without being activated is reported; 30 s
	BreakerBackoff outcome.Backoff // between probes of a job type whose jobs fail in masses; 500 ms doubling to 15 s
	NoBreaker      bool            // never slow a job type down because its jobs fail

	BudgetWarn   int           // bytes completed per process instance that are logged; 50 KB
	BudgetLimit  int           // bytes where BudgetPolicy applies; 100 KB
	BudgetPolicy string        // BudgetWarn or BudgetRefuse; "" = BudgetRefuse
	Retain       time.Duration // how long an operation stays after its end; the option of the same name can only prolong it; 30 days
	PurgeUnless  []string      // SQL conditions on operation o under which it stays longer, for example while its saga is open (path rule 25)
	Log          zerolog.Logger

	// TracerProvider makes the spans of jobs (spec V2); nil = the one registered with otel, which does nothing until a program sets one.
	TracerProvider trace.TracerProvider

	groupBudget time.Duration // of all handlers of a shared transaction; groupMost
}

// RetainDefault is how long an operation stays after its end where nobody says otherwise (spec D1): the zero of Config.Retain.
const RetainDefault = 30 * 24 * time.Hour

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if c.Name == "" {
		c.Name = "journeyman"
	}
	if c.Group == 0 {
		c.Group = 32
	}
	if c.Schema == "" {
		c.Schema = postgres.DefaultSchema
	}
	def(&c.JobTimeout, 30*time.Second)
	def(&c.HandlerTimeout, 10*time.Second)
	def(&c.LockTimeout, 3*time.Second)
	def(&c.CallTimeout, 20*time.Second)
	def(&c.Lease, 30*time.Second)
	def(&c.PollWait, 10*time.Second)
	def(&c.DrainTimeout, 20*time.Second)
	def(&c.AskFor, 24*time.Hour)
	def(&c.SweepEvery, 2*time.Second)
	def(&c.Retain, RetainDefault)
	def(&c.groupBudget, groupMost)
	def(&c.StallAfter, 2*(c.HandlerTimeout+c.CallTimeout))
	def(&c.UnservedAfter, 30*time.Second)
	if c.Backoff == (outcome.Backoff{}) {
		c.Backoff = outcome.DefaultBackoff()
	}
	if c.UnknownBackoff == (outcome.Backoff{}) {
		c.UnknownBackoff = outcome.DefaultBackoff()
	}
	if c.PollBackoff == (outcome.Backoff{}) {
		c.PollBackoff = outcome.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Second, Factor: 2, Floor: 20 * time.Millisecond}
	}
	if c.BreakerBackoff == (outcome.Backoff{}) {
		c.BreakerBackoff = outcome.Backoff{Min: 500 * time.Millisecond, Max: 15 * time.Second, Factor: 2, Floor: 100 * time.Millisecond}
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	if c.BudgetWarn == 0 {
		c.BudgetWarn = 50 << 10
	}
	if c.BudgetLimit == 0 {
		c.BudgetLimit = 100 << 10
	}
	if c.BudgetPolicy == "" {
		c.BudgetPolicy = BudgetRefuse
	}
	return c
}

func (c Config) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := postgres.CheckSchema(c.Schema); err != nil {
		errs = append(errs, err)
	}
	for name, d := range map[string]time.Duration{
		"job timeout": c.JobTimeout, "handler timeout": c.HandlerTimeout, "lock timeout": c.LockTimeout, "call timeout": c.CallTimeout,
		"lease": c.Lease, "drain timeout": c.DrainTimeout, "ask for": c.AskFor, "sweep every": c.SweepEvery, "retain": c.Retain,
		"stall after": c.StallAfter, "unserved after": c.UnservedAfter,
	} {
		if d < 0 {
			bad("%s %s: want above 0", name, d)
		}
	}
	if c.Group < 1 || c.Group > 200 {
		bad("group %d: want 1 to 200", c.Group)
	}
	if c.PollWait < 0 {
		bad("poll wait %s: want 0 or more", c.PollWait)
	}
	if c.LockTimeout >= c.HandlerTimeout {
		bad("lock timeout %s: want under the handler timeout %s", c.LockTimeout, c.HandlerTimeout)
	}
	if c.HandlerTimeout >= c.JobTimeout {
		bad("handler timeout %s: want under the job timeout %s; longer work is External", c.HandlerTimeout, c.JobTimeout)
	}
	if c.CallTimeout >= c.Lease {
		bad("call timeout %s: want under the lease %s", c.CallTimeout, c.Lease)
	}
	if c.Saga != nil && c.Stager == nil {
		bad("saga: set without a stager, which holds the saga's key lock")
	}
	if c.BudgetWarn < 0 || c.BudgetLimit < c.BudgetWarn {
		bad("budget limit %d: want at least the warning %d, and that 0 or more", c.BudgetLimit, c.BudgetWarn)
	}
	if c.BudgetPolicy != BudgetWarn && c.BudgetPolicy != BudgetRefuse {
		bad("budget policy %q: want %q or %q", c.BudgetPolicy, BudgetWarn, BudgetRefuse)
	}
	for name, b := range map[string]outcome.Backoff{"backoff": c.Backoff, "unknown backoff": c.UnknownBackoff, "poll backoff": c.PollBackoff, "breaker backoff": c.BreakerBackoff} {
		if err := b.Check(); err != nil {
			bad("%s: %w", name, err)
		}
	}
	return errors.Join(errs...)
}

// checkRetention checks that no type's retention is under the worker's (spec D1).
func (c Config) checkRetention(m *Mux) error {
	var errs []error
	for _, t := range slices.Sorted(maps.Keys(m.forward)) {
		if d := m.forward[t].opt.retain; d != 0 && d < c.Retain {
			errs = append(errs, fmt.Errorf("job type %q: Retain %s: want at least the worker's %s", t, d, c.Retain))
		}
	}
	return errors.Join(errs...)
}

// checkWorker checks what only a worker with a connection needs (spec W10).
func (c Config) checkWorker(pool *pgxpool.Pool, types int) error {
	var errs []error
	if c.MaxJobsActive <= 0 {
		errs = append(errs, fmt.Errorf("max jobs active %d: must be set, above 0", c.MaxJobsActive))
	} else if c.MaxJobsActive < types {
		errs = append(errs, fmt.Errorf("max jobs active %d: want at least one for each of the %d job types", c.MaxJobsActive, types))
	}
	if c.Concurrency <= 0 {
		errs = append(errs, fmt.Errorf("concurrency %d: must be set, above 0", c.Concurrency))
	} else if c.MaxJobsActive > 0 && c.MaxJobsActive < c.Concurrency {
		errs = append(errs, fmt.Errorf("max jobs active %d: want at least the concurrency %d", c.MaxJobsActive, c.Concurrency))
	}
	if pool != nil && c.Concurrency > int(pool.Config().MaxConns) {
		errs = append(errs, fmt.Errorf("concurrency %d: the pool has %d connections, want at least as many", c.Concurrency, pool.Config().MaxConns))
	}
	return errors.Join(errs...)
}

// gateway is what the runtime needs of [zeebe.Conn].
type gateway interface {
	zeebe.Gateway
	Activate(ctx context.Context, req zeebe.ActivateRequest) ([]zeebe.Job, error)
	UpdateJobTimeout(ctx context.Context, jobKey int64, d time.Duration) error
	Cluster() string
}
