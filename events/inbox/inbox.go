package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Handler applies one message inside tx, which holds the inbox row already. A
// nil error is SUCCESS, an *outcome.Error says its class, any other error is
// RETRYABLE, a panic FATAL. Events emitted on tx are staged in the same
// transaction. It must branch on m.MessageVersion only among the versions its
// [Route] lists.
type Handler func(ctx context.Context, tx *outbox.Tx, m events.Received) error

// Route binds a handler to message types.
type Route struct {
	Types    []string // patterns with "*" (see events.Match), at least one must be in the catalog
	Versions []int    // versions the handler knows; others go to inbox_dead with an alert (spec E6). Empty means {1}
	Handler  Handler
}

// Config configures an [Inbox]. Group, Catalog and Concurrency must be set.
type Config struct {
	Group   string          // consumer group, also the name in the inbox's tables
	Catalog *events.Catalog // required
	Schema  string          // PostgreSQL schema, "" means "journeyman"
	DedupBy DedupBy         // "" means what the catalog says for the type
	Stager  *outbox.Stager  // required when handlers emit; nil refuses messages

	Concurrency    int           // handlers at once, at least 1; a key is handled by one at a time
	MaxInFlight    int           // records fetched and not committed, 0 means 16 per handler
	HandlerTimeout time.Duration // deadline of one handler, 0 means 10 s
	CommitEvery    time.Duration // how often offsets are committed, 0 means 100 ms
	Sweep          time.Duration // how often due retries are looked for, 0 means 500 ms
	Keep           time.Duration // how long inbox rows are kept, 0 means 30 days; at least 14 days (spec D2)
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
	Dead      func(messageType, messageID, reason string, parked bool) // alert
	Paused    func(err error)                                          // the database cannot be reached
	Resumed   func(after time.Duration)
}

// Inbox is one member of a consumer group. Make one with [New].
type Inbox struct {
	sub    events.Subscriber
	db     *pgxpool.Pool
	cfg    Config
	routes []Route
}

// New checks the configuration and the routes against the catalog (spec E3)
// and refuses all that is wrong at once.
func New(sub events.Subscriber, db *pgxpool.Pool, cfg Config, routes ...Route) (*Inbox, error) {
	if err := postgres.CheckSchema(cfg.Schema); err != nil {
		return nil, errors.Join(fmt.Errorf("inbox: %w", err))
	}
	return &Inbox{sub: sub, db: db, cfg: cfg, routes: routes}, nil
}

// Run consumes until ctx is cancelled, then finishes what it took, commits the
// offsets and returns nil, at the latest after DrainTimeout.
func (i *Inbox) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
