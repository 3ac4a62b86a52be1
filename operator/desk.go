package operator

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// Config is for [New]. Pool must be set.
type Config struct {
	Pool    *pgxpool.Pool // the domain database
	Schema  string        // "" = "journeyman"
	Cluster string        // configured name of the engine's cluster (path rule 9); "" = "default"
	// Engine reads the engine's REST API. nil = incidents, element states and models cannot be shown, and say so.
	Engine *rest.Client
	// Stager stages [EventActed] beside each audit row; nil = rows only.
	Stager Stager
	// Sagas closes sagas that were left to a person; nil = [Desk.RemediateSaga] is refused.
	Sagas Remediator
	// Archive holds days of the event log that the database has dropped (events/archive.Reader); nil = their events are missing
	// from timelines, which say so.
	Archive Archive
	// BeginWithin is when a saga that has not begun, or is past its deadline undecided, counts as stuck; 0 = one minute.
	BeginWithin time.Duration
	// UndoWithin is when an undo that has not ended counts as stuck; 0 = ten minutes.
	UndoWithin time.Duration
	Log        zerolog.Logger
}

// Archive reads the event log's archive in order. *archive.Reader is one.
type Archive interface {
	Rows(ctx context.Context, after outbox.LogCursor, until time.Time, fn func(outbox.Logged) error) error
}

// Desk shows and acts. It is safe for concurrent use and starts no goroutines.
type Desk struct {
	cfg   Config
	queue *zeebe.Queue
	store *dedup.Store
	sql   queries
}

// New checks cfg, all mistakes at once. It does not touch database or engine.
func New(cfg Config) (*Desk, error) {
	if cfg.Schema == "" {
		cfg.Schema = postgres.DefaultSchema
	}
	if cfg.Cluster == "" {
		cfg.Cluster = zeebe.DefaultCluster
	}
	if cfg.BeginWithin == 0 {
		cfg.BeginWithin = time.Minute
	}
	if cfg.UndoWithin == 0 {
		cfg.UndoWithin = 10 * time.Minute
	}
	var errs []error
	if cfg.Pool == nil {
		errs = append(errs, errors.New("operator: Pool is nil, want the pool of the domain database"))
	}
	if cfg.BeginWithin < 0 {
		errs = append(errs, fmt.Errorf("operator: BeginWithin is %v, want more than 0", cfg.BeginWithin))
	}
	if cfg.UndoWithin < 0 {
		errs = append(errs, fmt.Errorf("operator: UndoWithin is %v, want more than 0", cfg.UndoWithin))
	}
	if cfg.Stager != nil {
		errs = append(errs, cfg.Stager.Declare(EventActed))
	}
	errs = append(errs, postgres.CheckSchema(cfg.Schema))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	queue, err := zeebe.NewQueue(cfg.Schema, cfg.Cluster)
	if err != nil {
		return nil, err
	}
	store, err := dedup.New(cfg.Schema)
	if err != nil {
		return nil, err
	}
	return &Desk{cfg: cfg, queue: queue, store: store, sql: render(cfg.Schema)}, nil
}

// Cluster is the name of the cluster whose incidents and commands this desk shows.
func (d *Desk) Cluster() string { return d.cfg.Cluster }

// Pool is the domain database, for acts of other packages beside [Desk.Record].
func (d *Desk) Pool() *pgxpool.Pool { return d.cfg.Pool }

//go:embed migrations/*.sql
var migrations embed.FS

// Conn is what Migrate needs: a connection, a pool or a transaction.
type Conn interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Migrate brings the tables of this package up to date ("" = "journeyman"). Safe to call from many processes at once.
func Migrate(ctx context.Context, db Conn, schema string) error {
	return postgres.MigrateFolder(ctx, db, postgres.SchemaOr(schema), "operator", migrations, "migrations")
}
