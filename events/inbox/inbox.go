package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Handler applies one message inside tx, which holds the inbox row already. A
// nil error is SUCCESS; any other error is what outcome.Classify says, a panic
// FATAL. Events emitted on tx are staged in the same transaction. It may be run
// again for the same message as long as it did not succeed. It must not keep
// tx, and it branches on m.MessageVersion only among the versions of its [Route].
type Handler func(ctx context.Context, tx *outbox.Tx, m events.Received) error

// Route binds a handler to message types.
type Route struct {
	Types    []string // patterns with "*" (see events.Match), each must fit a type in the catalog
	Versions []int    // versions the handler knows; others go to inbox_dead with an alert (spec E6). Empty means 1
	Handler  Handler
	Batch    BatchHandler // in place of Handler: takes several messages at a time; must not emit
	Replay   ReplayPolicy // what the handler does with messages that it may have handled before; the zero value refuses them

	no int // tells routes apart
}

// Config configures an [Inbox]. Group, Catalog and Concurrency must be set.
type Config struct {
	Group   string          // consumer group, also the name in the inbox's tables and in the catalog's consumers
	Catalog *events.Catalog // required
	Schema  string          // PostgreSQL schema, "" means "journeyman"
	DedupBy DedupBy         // "" means what the catalog says for the type
	Stager  *outbox.Stager  // required when handlers emit: a handler that emits without is FATAL
	Codec   events.Codec    // reads bodies of wire confluent; required when a route takes one
	Keys    seal.Keys       // required when the catalog encrypts a class
	Emits   []string        // types that the handlers emit: one that Stager may not stage refuses to start

	Concurrency    int           // handlers at once, at least 1; a key is handled by one at a time
	MaxInFlight    int           // records fetched and not finished, 0 means 16 per handler
	HandlerTimeout time.Duration // deadline of one handler, 0 means 10 s; a transaction whose process stands still is ended by the server five seconds later
	MaxBytes       int           // largest message in bytes of body and headers, 0 means 1 MiB, at least 1000; a larger one is dead as "too_large", unread
	Batch          int           // messages that may share a transaction, 0 means 64, 1 switches that off; handlers do not notice
	CommitEvery    time.Duration // how often offsets are committed, 0 means 100 ms
	Sweep          time.Duration // how often due retries are looked for, 0 means 500 ms
	Keep           time.Duration // how long inbox rows are kept, 0 means 30 days; at least 14 days (spec D2)
	GapLimit       time.Duration // how long a message of a strict order waits for a missing one, then it is parked; 0 means 10 min
	JoinLate       bool          // strict orders may begin anywhere with keys the group has not seen: for a group made after the broker dropped old records
	DrainTimeout   time.Duration // how long Run waits for handlers after cancel, 0 means 15 s

	Hooks Hooks
	Log   zerolog.Logger // the zero value logs nothing
}

// DedupBy says which id of a message identifies a repeat (spec D2).
type DedupBy string

// The ways to recognise a repeat.
const (
	ByCatalog     DedupBy = ""             // as the catalog's idempotency_key says
	ByEventID     DedupBy = "event_id"     // the same publication again
	ByOperationID DedupBy = "operation_id" // the same business operation again
)

// Hooks are called by the inbox's goroutines and must return quickly. Nil ones are not called.
type Hooks struct {
	Handled   func(messageType string, class outcome.Class, took time.Duration)
	Duplicate func(messageType string)
	Retrying  func(messageType string, attempt int, after time.Duration, err error)
	Held      func(messageType string, waitsFor int64)                 // a message of a strict order waits for the one with that sequence
	Dead      func(messageType, messageID, reason string, parked bool) // alert (spec E7, E8)
	Paused    func(err error)                                          // alert: database or broker cannot be reached
	Resumed   func(after time.Duration)
	Refused   func(messageType, messageID, replayID string) // a replayed message was passed over: the route does not take replays
}

// Inbox is one member of a consumer group. Make one with [New].
type Inbox struct {
	sub    events.Subscriber
	db     *pgxpool.Pool
	cfg    Config
	sql    statements
	order  orderStatements
	topics []string
	routes map[string]Route // by message type
	scopes map[string]bool  // order scopes of the routes' types
	pause  pause
	groups groupStatements
	gate   *gate
	singly atomic.Int64 // until when each message has a transaction of its own, in Unix nanoseconds
	idle   string       // statement that bounds how long a transaction may stand still

	running atomic.Bool
}

// idleGrace is how long after its handler's deadline the server ends a
// transaction that stands still: a process that was stopped must not hold its message, and others of its key, for ever.
const idleGrace = 5 * time.Second

const minKeep = 14 * 24 * time.Hour

// New checks the configuration and the routes against the catalog (spec E3)
// and refuses all that is wrong at once: a pattern that fits no type, a type
// in two routes, a version the catalog does not have, a type whose consumers do
// not list the group.
func New(sub events.Subscriber, db *pgxpool.Pool, cfg Config, routes ...Route) (*Inbox, error) {
	cfg = cfg.withDefaults()
	i := &Inbox{sub: sub, db: db, cfg: cfg, sql: render(cfg.Schema), order: renderOrder(cfg.Schema), routes: map[string]Route{}, scopes: map[string]bool{}}
	i.groups, i.gate = renderGroup(cfg.Schema), newGate()
	i.idle = fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", (cfg.HandlerTimeout + idleGrace).Milliseconds())
	errs := []error{postgres.CheckSchema(cfg.Schema)}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(sub != nil, "subscriber: missing")
	check(db != nil, "pool: missing")
	check(cfg.Group != "", "group: empty")
	check(cfg.Catalog != nil, "catalog: missing")
	check(cfg.Catalog == nil || !cfg.Catalog.Encrypts() || cfg.Keys != nil, "keys: missing, and the catalog encrypts a class")
	check(cfg.Concurrency >= 1, "concurrency %d, want 1 or more", cfg.Concurrency)
	check(cfg.Batch >= 1 && cfg.Batch <= 1000, "batch %d, want 1 to 1000", cfg.Batch)
	check(cfg.MaxBytes >= leastMaxBytes, "max bytes %d, want at least %d", cfg.MaxBytes, leastMaxBytes)
	check(cfg.MaxInFlight >= cfg.Concurrency, "max in flight %d, want at least concurrency, %d", cfg.MaxInFlight, cfg.Concurrency)
	check(cfg.Keep >= minKeep, "keep %v, want at least %v (spec D2)", cfg.Keep, minKeep)
	check(slices.Contains([]DedupBy{ByCatalog, ByEventID, ByOperationID}, cfg.DedupBy), "dedup by %q, want %q or %q", cfg.DedupBy, ByEventID, ByOperationID)
	for name, d := range map[string]time.Duration{
		"handler timeout": cfg.HandlerTimeout, "commit every": cfg.CommitEvery, "sweep": cfg.Sweep, "drain timeout": cfg.DrainTimeout, "gap limit": cfg.GapLimit,
	} {
		check(d > 0, "%s %v, want above 0", name, d)
	}
	check(len(routes) > 0, "routes: none")
	switch {
	case len(cfg.Emits) > 0 && cfg.Stager == nil:
		errs = append(errs, fmt.Errorf("handlers emit %v, but stager: missing", cfg.Emits))
	case cfg.Stager != nil:
		errs = append(errs, cfg.Stager.Declare(cfg.Emits...))
	}
	if cfg.Catalog != nil {
		for n, r := range routes {
			r.no = n
			errs = append(errs, i.add(r)...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("inbox %q: %w", cfg.Group, err)
	}
	slices.Sort(i.topics)
	i.topics = slices.Compact(i.topics)
	return i, nil
}

// add takes a route in. All versions of a type are subscribed to, so that one
// the handler does not know is noticed.
func (i *Inbox) add(r Route) (errs []error) {
	if r.Handler != nil && r.Batch != nil {
		return []error{fmt.Errorf("route %v: has a handler and a batch handler, want one", r.Types)}
	}
	if r.Batch != nil {
		r.Handler = r.Batch.one
	}
	if r.Handler == nil || len(r.Types) == 0 {
		return []error{fmt.Errorf("route %v: want a handler and at least one type", r.Types)}
	}
	if len(r.Versions) == 0 {
		r.Versions = []int{1}
	}
	if !slices.Contains([]ReplayPolicy{ReplayRefused, ReplayQuiet, ReplayFull}, r.Replay) {
		errs = append(errs, fmt.Errorf("route %v: replay %q, want nothing, %q or %q", r.Types, r.Replay, ReplayQuiet, ReplayFull))
	}
	known := map[int]bool{}
	mine := map[string]bool{}
	for _, pattern := range r.Types {
		found := i.cfg.Catalog.Match(pattern)
		if len(found) == 0 {
			errs = append(errs, fmt.Errorf("type %s: not in the catalog", pattern))
		}
		for _, e := range found {
			known[e.Version] = true
			if _, taken := i.routes[e.Type]; taken && !mine[e.Type] {
				errs = append(errs, fmt.Errorf("type %s: in two routes", e.Type))
			}
			if !slices.Contains(e.Consumers, i.cfg.Group) && !slices.Contains(e.Consumers, "*") {
				errs = append(errs, fmt.Errorf("type %s v%d: the catalog's consumers do not list %q", e.Type, e.Version, i.cfg.Group))
			}
			if err := i.needsCodec(e); err != nil {
				errs = append(errs, err)
			}
			mine[e.Type] = true
			i.routes[e.Type] = r
			i.topics = append(i.topics, e.Topic)
			for _, other := range i.cfg.Catalog.Scope(e.OrderScope) { // an order is kept by whoever sees all of it
				i.scopes[e.OrderScope] = true
				i.topics = append(i.topics, other.Topic)
			}
		}
	}
	for _, v := range r.Versions {
		if !known[v] {
			errs = append(errs, fmt.Errorf("types %v: version %d is not in the catalog", r.Types, v))
		}
	}
	return errs
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if c.Schema == "" {
		c.Schema = postgres.DefaultSchema
	}
	if c.Batch == 0 {
		c.Batch = 64
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 16 * c.Concurrency
	}
	set(&c.HandlerTimeout, 10*time.Second)
	set(&c.CommitEvery, 100*time.Millisecond)
	set(&c.Sweep, 500*time.Millisecond)
	set(&c.Keep, 30*24*time.Hour)
	set(&c.DrainTimeout, 15*time.Second)
	set(&c.GapLimit, 10*time.Minute)
	return c
}

// Topics lists the topics the inbox subscribes to, sorted.
func (i *Inbox) Topics() []string { return slices.Clone(i.topics) }

// Run consumes until ctx is cancelled, then finishes the messages being
// handled, commits the offsets and returns nil, at the latest after
// DrainTimeout. It survives outages of database and broker by waiting.
func (i *Inbox) Run(ctx context.Context) error {
	if !i.running.CompareAndSwap(false, true) {
		return fmt.Errorf("inbox %q: runs already", i.cfg.Group)
	}
	defer i.running.Store(false)
	// Handlers outlive the cancel of ctx, but not for ever.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	drained := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { i.sweep(ctx, work) })
	wg.Go(func() { i.purge(ctx) })
	wg.Go(func() { i.watch(ctx) })
	wg.Go(func() { i.consume(ctx, work) })
	go func() { wg.Wait(); close(drained) }()
	<-ctx.Done()
	late := time.AfterFunc(i.cfg.DrainTimeout, stop)
	defer late.Stop()
	<-drained
	return nil
}
