package replay

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed catalog.yaml
var catalog []byte

// Migrate brings the tables of replays in schema up to date, in one
// transaction. Safe to call from many processes at once.
func Migrate(ctx context.Context, db outbox.Beginner, schema string) error {
	return postgres.MigrateFolder(ctx, db, schema, "replay", migrations, "migrations")
}

// Catalog is the catalog of the events that replays emit, to be merged with the service's own.
func Catalog() (*events.Catalog, error) { return events.ParseCatalog(catalog) }

// Config is for [New]. DB and Stager must be set.
type Config struct {
	DB     *pgxpool.Pool
	Schema string         // "" means "journeyman"
	Stager *outbox.Stager // stages the replay's own events; its catalog must have those of [Catalog]

	Batch         int            // messages of one transaction, 0 means 500
	ProgressEvery int64          // messages between two progress events, 0 means 10,000
	Progress      func(r Replay) // called after each batch; must return quickly; may be nil
	// Audit writes a start ("replay.start") or cancel ("replay.cancel") elsewhere too, in its transaction; an error undoes it. nil means not.
	Audit func(ctx context.Context, tx pgx.Tx, action, reason string, p Replay) error
	Log   zerolog.Logger // the zero value logs nothing
}

// Runner runs replays. Safe for concurrent use.
type Runner struct {
	cfg Config
	sql statements
}

// New checks the configuration and refuses all that is wrong with it at once.
func New(cfg Config) (*Runner, error) {
	cfg.Schema = postgres.SchemaOr(cfg.Schema)
	if cfg.Batch == 0 {
		cfg.Batch = 500
	}
	if cfg.ProgressEvery == 0 {
		cfg.ProgressEvery = 10_000
	}
	errs := []error{postgres.CheckSchema(cfg.Schema)}
	if cfg.DB == nil {
		errs = append(errs, errors.New("pool: missing"))
	}
	if cfg.Stager == nil {
		errs = append(errs, errors.New("stager: missing"))
	} else {
		errs = append(errs, cfg.Stager.Declare(typeStarted, typeProgressed, typeCompleted))
	}
	if cfg.Batch < 1 || cfg.Batch > 10_000 || cfg.ProgressEvery < 1 {
		errs = append(errs, fmt.Errorf("batch %d, want 1 to 10000; progress every %d, want 1 or more", cfg.Batch, cfg.ProgressEvery))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return &Runner{cfg: cfg, sql: render(cfg.Schema)}, nil
}

// Replay is one replay as it stands. Its JSON field names are stable.
type Replay struct {
	ID         string            `json:"id"`
	Actor      string            `json:"actor"`
	Reason     string            `json:"reason"`
	Source     string            `json:"source"`
	Target     string            `json:"target"`
	Mode       events.ReplayMode `json:"mode"`
	Filter     Filter            `json:"filter"`
	Rate       int               `json:"rate"`
	State      string            `json:"state"` // running, paused, completed, failed, cancelled
	Place      string            `json:"place"`
	Delivered  int64             `json:"delivered"`
	Suppressed int64             `json:"suppressed"`
	Error      string            `json:"error,omitempty"`
	Started    time.Time         `json:"started"`
	Updated    time.Time         `json:"updated"`
	Ended      *time.Time        `json:"ended,omitempty"`
}

// States of a replay. Running is also the state of one whose process was killed.
const (
	Running   = "running"
	Paused    = "paused"
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled"
)

// Conditions to test for with errors.Is.
var (
	ErrNotFound = errors.New("no such replay")
	ErrEnded    = errors.New("replay has ended")
	ErrTaken    = errors.New("replay was taken over by another runner, or cancelled")
)

// Request says what to replay. Actor, Reason, Source, Target and Mode must be set.
type Request struct {
	Actor  string
	Reason string
	Source Source
	Target Target
	Mode   events.ReplayMode
	Filter Filter
	Rate   int // messages a second, 0 means no limit
}

func (r Request) check() error {
	var errs []error
	for name, text := range map[string]string{"actor": r.Actor, "reason": r.Reason} {
		if strings.TrimSpace(text) == "" || len(text) > 500 || strings.ContainsRune(text, 0) {
			errs = append(errs, fmt.Errorf("%s: %d characters, want 1 to 500 that say who or why", name, len(text)))
		}
	}
	if r.Source == nil || r.Target == nil {
		errs = append(errs, errors.New("source and target: want both"))
	}
	if !r.Mode.Valid() {
		errs = append(errs, fmt.Errorf("mode %q, want %q or %q", r.Mode, events.ReplayMissing, events.ReplayAgain))
	} else if r.Target != nil {
		errs = append(errs, r.Target.takes(r.Mode))
	}
	if r.Rate < 0 {
		errs = append(errs, fmt.Errorf("rate %d, want 0 or more", r.Rate))
	}
	if !r.Filter.Until.IsZero() && !r.Filter.Until.After(r.Filter.From) {
		errs = append(errs, fmt.Errorf("until %v, want after from, %v", r.Filter.Until, r.Filter.From))
	}
	return errors.Join(errs...)
}

// settle fixes the end of the range.
func settle(ctx context.Context, s Source, f Filter) (Filter, error) {
	at, err := s.Settle(ctx)
	if err != nil {
		return f, err
	}
	if f.Until.IsZero() || f.Until.After(at) {
		f.Until = at
	}
	f.From, f.Until = f.From.UTC(), f.Until.UTC()
	return f, nil
}

// Start records the replay, emits platform.replay.started and runs it to its
// end. When ctx is cancelled the replay is paused and Start returns ctx's error;
// after any other error it is failed. Both can be resumed.
func (r *Runner) Start(ctx context.Context, req Request) (Replay, error) {
	if err := req.check(); err != nil {
		return Replay{}, fmt.Errorf("replay: %w", err)
	}
	f, err := settle(ctx, req.Source, req.Filter)
	if err != nil {
		return Replay{}, fmt.Errorf("replay: %w", err)
	}
	filter, err := json.Marshal(f)
	if err != nil {
		return Replay{}, err
	}
	p := Replay{ID: events.NewID(), Actor: req.Actor, Reason: req.Reason, Source: req.Source.Name(), Target: req.Target.Name(), Mode: req.Mode, Rate: req.Rate}
	if err := pgx.BeginFunc(ctx, r.cfg.DB, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(r.sql.insert, p.ID, p.Actor, p.Reason, p.Source, p.Target, string(p.Mode), string(filter), p.Rate, f.After)
		if err := r.tell(b, typeStarted, p); err != nil {
			return err
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		return r.audit(ctx, tx, "replay.start", p.Reason, p)
	}); err != nil {
		return Replay{}, fmt.Errorf("replay: %w", err)
	}
	r.cfg.Stager.Wake()
	return r.run(ctx, p.ID, 1, req.Source, req.Target)
}

// Resume takes a replay over that was paused, failed, or whose runner died, and
// runs it to its end, from the place it had reached. Source and target must be
// those it was started with. rate replaces the old one unless nil.
func (r *Runner) Resume(ctx context.Context, id string, s Source, t Target, rate *int) (Replay, error) {
	p, err := r.Get(ctx, id)
	if err != nil {
		return p, err
	}
	switch {
	case s == nil || t == nil || s.Name() != p.Source || t.Name() != p.Target:
		return p, fmt.Errorf("replay %s: goes from %s to %s, want the same source and target", id, p.Source, p.Target)
	case rate != nil && *rate < 0:
		return p, fmt.Errorf("replay: rate %d, want 0 or more", *rate)
	}
	var fence int64
	err = r.cfg.DB.QueryRow(ctx, r.sql.resume, id, rate).Scan(&fence)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, fmt.Errorf("replay %s is %s: %w", id, p.State, ErrEnded)
	}
	if err != nil {
		return p, fmt.Errorf("replay %s: %w", id, err)
	}
	return r.run(ctx, id, fence, s, t)
}

// Get gives one replay, [ErrNotFound] when there is none.
func (r *Runner) Get(ctx context.Context, id string) (Replay, error) {
	if !events.ValidID(id) {
		return Replay{}, fmt.Errorf("replay %q: %w", id, ErrNotFound)
	}
	return r.one(ctx, r.sql.get, id)
}

// List gives the latest replays first, at most limit.
func (r *Runner) List(ctx context.Context, limit int) ([]Replay, error) {
	rows, err := r.cfg.DB.Query(ctx, r.sql.list, limit)
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	return pgx.CollectRows(rows, scanReplay)
}

// Cancel ends a replay for good; its runner stops before its next batch.
func (r *Runner) Cancel(ctx context.Context, id, actor, reason string) (Replay, error) {
	if strings.TrimSpace(actor) == "" || strings.TrimSpace(reason) == "" {
		return Replay{}, errors.New("cancel replay: want an actor and a reason")
	}
	if _, err := r.Get(ctx, id); err != nil {
		return Replay{}, err
	}
	var p Replay
	err := pgx.BeginFunc(ctx, r.cfg.DB, func(tx pgx.Tx) (err error) {
		rows, err := tx.Query(ctx, r.sql.cancel, id, "cancelled by "+actor+": "+reason)
		if err != nil {
			return err
		}
		if p, err = pgx.CollectExactlyOneRow(rows, scanReplay); err != nil {
			return err
		}
		b := &pgx.Batch{}
		if err := r.tell(b, typeCompleted, p); err != nil {
			return err
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		p.Actor = actor
		return r.audit(ctx, tx, "replay.cancel", reason, p)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrEnded
	}
	if err != nil {
		return p, fmt.Errorf("cancel replay %s: %w", id, err)
	}
	r.cfg.Stager.Wake()
	return p, nil
}

func (r *Runner) audit(ctx context.Context, tx pgx.Tx, action, reason string, p Replay) error {
	if r.cfg.Audit == nil {
		return nil
	}
	return r.cfg.Audit(ctx, tx, action, reason, p)
}

func (r *Runner) one(ctx context.Context, sql string, args ...any) (Replay, error) {
	rows, err := r.cfg.DB.Query(ctx, sql, args...)
	if err != nil {
		return Replay{}, fmt.Errorf("replay: %w", err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanReplay)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	return p, err
}

func scanReplay(row pgx.CollectableRow) (Replay, error) {
	var p Replay
	var filter string
	if err := row.Scan(&p.ID, &p.Actor, &p.Reason, &p.Source, &p.Target, &p.Mode, &filter, &p.Rate, &p.State, &p.Place, &p.Delivered, &p.Suppressed,
		&p.Error, &p.Started, &p.Updated, &p.Ended); err != nil {
		return p, err
	}
	return p, json.Unmarshal([]byte(filter), &p.Filter)
}
