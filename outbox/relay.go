package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
)

// RelayConfig configures a [Relay]. The zero value works.
type RelayConfig struct {
	Schema string // PostgreSQL schema, "" means "journeyman"
	Owner  string // unique per relay, "" means a random name

	Lanes          int           // goroutines with a share of the shards each, 0 means 2
	Batch          int           // rows read at once by a lane, 0 means 1000
	Poll           time.Duration // wait between looks when nothing wakes the relay, 0 means 100 ms
	Lease          time.Duration // how long a shard stays ours without renewal, 0 means 15 s
	ProduceTimeout time.Duration // deadline of one publish, below half of Lease; 0 means 5 s, or a third of Lease
	MaxBackoff     time.Duration // longest wait between tries in an outage, 0 means 5 s
	TopicGrace     time.Duration // how long an unknown topic may take to appear before its key is parked, 0 means 10 s

	NoEventLog   bool          // keep nothing of what was published
	LogRetention time.Duration // how long the event log keeps rows, in whole days; 0 means 30 days
	KeyRetention time.Duration // how long a key that nothing is staged for is remembered, 0 means 400 days; at least 30 days. Later it begins anew, above where it ended

	Stager *Stager   // of the same process, to be woken at commit and to tell of dropped messages; may be nil
	Listen bool      // hear the [Ringer]s of other processes, over one connection outside the pool, not through a pooler of transactions
	Keys   seal.Keys // opens encrypted bodies, nil means those of Stager; a body whose key is missing parks its key

	ShedEvery time.Duration // how often dropped analytical messages are told of, 0 means 5 s
	Hooks     Hooks
	Log       zerolog.Logger // the zero value logs nothing
}

// Hooks are called by the relay's goroutines and must return quickly. Nil ones are not called.
type Hooks struct {
	Published func(topic string, n int, oldest time.Duration) // after the delete; age of the oldest of them since it was staged
	Failed    func(topic string, n int, err error)            // a publish failed and will be tried again
	Parked    func(businessKey, eventID, reason string)       // alert: an operator must decide (spec O4)
	Paused    func(reason string)                             // alert: nothing can be published (spec R5)
	Resumed   func(after time.Duration)
	Shed      func(topic string, n int64) // alert: analytical messages were dropped because of the backlog (spec E4)
}

// Relay publishes staged rows. Make one with [NewRelay].
type Relay struct {
	db     *pgxpool.Pool
	pub    events.Publisher
	cfg    RelayConfig
	sql    statements
	own    shards
	lanes  []*lane
	outage outage
	stats  counters
	newDay chan struct{} // a day of the event log was made on demand: look for old ones

	running atomic.Bool
}

// NewRelay checks the configuration and refuses all that is wrong with it at once.
func NewRelay(db *pgxpool.Pool, pub events.Publisher, cfg RelayConfig) (*Relay, error) {
	cfg = cfg.withDefaults()
	errs := []error{postgres.CheckSchema(cfg.Schema)}
	if db == nil {
		errs = append(errs, errors.New("pool: missing"))
	}
	if pub == nil {
		errs = append(errs, errors.New("publisher: missing"))
	}
	errs = append(errs, cfg.validate()...)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("outbox relay: %w", err)
	}
	r := &Relay{db: db, pub: pub, cfg: cfg, sql: render(cfg.Schema), own: shards{held: map[int16]lease{}}, newDay: make(chan struct{}, 1)}
	for no := range cfg.Lanes {
		r.lanes = append(r.lanes, &lane{
			Relay: r, no: no, woken: make(chan struct{}, 1), slow: map[int16]slow{}, absent: map[string]time.Time{},
		})
	}
	return r, nil
}

func (c RelayConfig) withDefaults() RelayConfig {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if c.Schema == "" {
		c.Schema = postgres.DefaultSchema
	}
	if c.Owner == "" {
		c.Owner = "relay-" + events.NewID()
	}
	if c.Lanes == 0 {
		c.Lanes = 2
	}
	if c.Batch == 0 {
		c.Batch = 1000
	}
	set(&c.Poll, 100*time.Millisecond)
	set(&c.Lease, 15*time.Second)
	set(&c.ProduceTimeout, min(5*time.Second, c.Lease/3))
	set(&c.MaxBackoff, 5*time.Second)
	set(&c.TopicGrace, 10*time.Second)
	set(&c.LogRetention, 30*day)
	set(&c.KeyRetention, 400*day)
	set(&c.ShedEvery, 5*time.Second)
	if c.Keys == nil && c.Stager != nil {
		c.Keys = c.Stager.cfg.Keys
	}
	return c
}

const day = 24 * time.Hour

func (c RelayConfig) validate() []error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Lanes >= 1 && c.Lanes <= events.Shards, "lanes %d, want 1 to %d", c.Lanes, events.Shards)
	check(c.Batch >= 1 && c.Batch <= 10_000, "batch %d, want 1 to 10000", c.Batch)
	check(c.Poll >= time.Millisecond && c.Poll <= time.Minute, "poll %v, want 1 ms to 1 min", c.Poll)
	check(c.Lease >= time.Second && c.Lease <= 10*time.Minute, "lease %v, want 1 s to 10 min", c.Lease)
	check(c.ProduceTimeout > 0 && c.ProduceTimeout*2 <= c.Lease, "produce timeout %v, want above 0 and at most half of the lease, %v", c.ProduceTimeout, c.Lease)
	check(c.MaxBackoff >= 10*time.Millisecond && c.MaxBackoff <= 5*time.Minute, "max backoff %v, want 10 ms to 5 min", c.MaxBackoff)
	check(c.ShedEvery > 0, "shed every %v, want above 0", c.ShedEvery)
	check(c.TopicGrace > 0, "topic grace %v, want above 0", c.TopicGrace)
	check(c.LogRetention >= day && c.LogRetention%day == 0, "log retention %v, want whole days, at least one", c.LogRetention)
	check(c.KeyRetention >= 30*day, "key retention %v, want at least 30 days", c.KeyRetention)
	return errs
}

// Run relays until ctx is cancelled, then finishes the batches in flight, gives
// its shards back and returns nil. It survives outages of database and broker
// by waiting, at most MaxBackoff at a time.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("outbox relay: runs already")
	}
	defer r.running.Store(false)
	var wg sync.WaitGroup
	if !r.cfg.NoEventLog {
		wg.Go(func() { r.keepLog(ctx) })
	}
	wg.Go(func() { r.keep(ctx) })
	wg.Go(func() { r.keepKeys(ctx) })
	if r.cfg.Listen {
		wg.Go(func() { r.listen(ctx) })
	}
	for _, l := range r.lanes {
		wg.Go(func() { l.run(ctx) })
	}
	if r.cfg.Stager != nil {
		wg.Go(func() { r.hear(ctx) })
		if _, ok := r.cfg.Stager.cfg.Catalog.Entry(DroppedType, 1); ok {
			wg.Go(func() { r.tellShed(ctx) })
		}
	}
	wg.Wait()
	if err := r.leave(ctx); err != nil {
		r.cfg.Log.Warn().Err(err).Msg("outbox relay: shards not given back, their leases will end by themselves")
	}
	return nil
}

// hear passes the stager's wake-ups on to the lanes.
func (r *Relay) hear(ctx context.Context) {
	woken, stop := r.cfg.Stager.listen()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-woken:
			r.wakeAll()
		}
	}
}

func (r *Relay) wakeAll() {
	for _, l := range r.lanes {
		select {
		case l.woken <- struct{}{}:
		default: // already woken
		}
	}
}
