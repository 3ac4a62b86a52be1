package archive

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the archive's tables in schema up to date, in one transaction.
// The tables of package outbox must be there. Safe to call from many processes at once.
func Migrate(ctx context.Context, db outbox.Beginner, schema string) error {
	return postgres.MigrateFolder(ctx, db, schema, "archive", migrations, "migrations")
}

// Config configures an [Archiver]. The zero value works.
type Config struct {
	Schema string // PostgreSQL schema, "" means "journeyman"

	PartRows    int           // rows of one object, 0 means 50,000
	PartBytes   int           // bodies of one object before compression, 0 means 32 MB; an object may be one page (16 MB) larger
	RowsPerSec  int           // most rows archived per second, in bursts of one object; 0 means no limit
	After       time.Duration // how long a day must be over, 0 means 10 min
	Poll        time.Duration // how often days are looked for, 0 means 10 min
	StepTimeout time.Duration // deadline of one step, 0 means 5 min

	Hooks Hooks
	Log   zerolog.Logger // the zero value logs nothing
}

// Hooks are called by the archiver's goroutine and must return quickly. Nil ones are not called.
type Hooks struct {
	Wrote    func(day string, rows int64, bytes int64) // one object, committed
	Verified func(day string, rows int64)              // a day is archived
	Failed   func(err error)                           // alert: a step failed, it is tried again at the next poll
}

// Archiver copies days of the event log that are over to a [Store]. Any number
// may run; one at a time does a step. Make one with [New].
type Archiver struct {
	db    *pgxpool.Pool
	store Store
	cfg   Config
	sql   statements
	log   *outbox.Log
	limit *rate.Limiter
}

// New checks the configuration and refuses all that is wrong with it at once.
func New(db *pgxpool.Pool, store Store, cfg Config) (*Archiver, error) {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&cfg.After, 10*time.Minute)
	set(&cfg.Poll, 10*time.Minute)
	set(&cfg.StepTimeout, 5*time.Minute)
	cfg.Schema = postgres.SchemaOr(cfg.Schema)
	if cfg.PartRows == 0 {
		cfg.PartRows = 50_000
	}
	if cfg.PartBytes == 0 {
		cfg.PartBytes = 32 << 20
	}
	errs := []error{postgres.CheckSchema(cfg.Schema)}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(db != nil, "pool: missing")
	check(store != nil, "store: missing")
	check(cfg.PartRows >= 1 && cfg.PartRows <= 1_000_000, "part rows %d, want 1 to 1000000", cfg.PartRows)
	check(cfg.PartBytes >= 1 && cfg.PartBytes <= 1<<30, "part bytes %d, want 1 to 1 GB", cfg.PartBytes)
	check(cfg.RowsPerSec >= 0, "rows per second %d, want 0 or more", cfg.RowsPerSec)
	check(cfg.After > 0 && cfg.Poll > 0 && cfg.StepTimeout > 0, "after %v, poll %v, step timeout %v, want above 0", cfg.After, cfg.Poll, cfg.StepTimeout)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	a := &Archiver{db: db, store: store, cfg: cfg, sql: render(cfg.Schema), log: outbox.NewLog(cfg.Schema), limit: rate.NewLimiter(rate.Inf, 0)}
	if cfg.RowsPerSec > 0 {
		a.limit = rate.NewLimiter(rate.Limit(cfg.RowsPerSec), cfg.PartRows)
	}
	return a, nil
}

// Run archives until ctx is cancelled, then finishes or gives up the step in
// hand and returns nil. First it switches the database to keep days until they
// are archived, see [outbox.Log.SetArchived].
func (a *Archiver) Run(ctx context.Context) error {
	tick := time.NewTicker(a.cfg.Poll)
	defer tick.Stop()
	on := false
	for {
		var err error
		if !on {
			err = a.log.SetArchived(ctx, a.db, true, "archiver", "an archiver runs")
			on = err == nil
		}
		if err == nil {
			_, err = a.Pass(ctx)
		}
		if err != nil && ctx.Err() == nil {
			a.cfg.Log.Error().Err(err).Msg("archive: step failed")
			if a.cfg.Hooks.Failed != nil {
				a.cfg.Hooks.Failed(err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Done counts what a pass did. Other processes' steps are not in it.
type Done struct {
	Rows  int64 `json:"rows"`
	Parts int   `json:"parts"`
	Bytes int64 `json:"bytes"`
	Days  int   `json:"days"` // verified
}

// Pass archives every day that is over and returns when none is left, another
// process does the work, or a step fails. What it has done stays done.
func (a *Archiver) Pass(ctx context.Context) (Done, error) {
	var done Done
	settled, err := a.log.Settle(ctx, a.db)
	if err != nil {
		return done, fmt.Errorf("archive: %w", err)
	}
	for {
		more, err := a.step(ctx, settled.Add(-a.cfg.After), &done)
		if err != nil {
			return done, fmt.Errorf("archive: %w", err)
		}
		if !more {
			return done, nil
		}
	}
}

// step does one piece of work in one transaction that holds the lock. The
// connection has no snapshot while it talks to the store, so vacuum goes on.
func (a *Archiver) step(ctx context.Context, over time.Time, done *Done) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.StepTimeout)
	defer cancel()
	var after func()
	err = pgx.BeginFunc(ctx, a.db, func(tx pgx.Tx) error {
		var leader bool
		if err := tx.QueryRow(ctx, a.sql.lock).Scan(&leader); err != nil || !leader {
			return err
		}
		if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		var day time.Time
		err := tx.QueryRow(ctx, a.sql.next, over).Scan(&day)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("next day: %w", err)
		}
		more = true
		after, err = a.work(ctx, tx, day, done)
		if err != nil {
			return fmt.Errorf("day %s: %w", day.Format(time.DateOnly), err)
		}
		return nil
	})
	if err == nil && after != nil {
		after()
	}
	return more && err == nil, err
}

// work writes the next part of a day, else checks the next unchecked one, else seals the day.
// What it returns is to be called after the commit.
func (a *Archiver) work(ctx context.Context, tx pgx.Tx, day time.Time, done *Done) (func(), error) {
	n, at := 0, outbox.LogCursor{At: day}
	err := tx.QueryRow(ctx, a.sql.lastPart, day).Scan(&n, &at.At, &at.ID)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	rows, err := a.rows(ctx, tx, at, day.AddDate(0, 0, 1))
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		return a.write(ctx, tx, day, n+1, rows, done)
	}
	err = tx.QueryRow(ctx, a.sql.unverified, day).Scan(&n)
	if err == nil {
		return nil, a.verify(ctx, tx, day, n)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	return a.seal(ctx, tx, day, done)
}

func (a *Archiver) rows(ctx context.Context, tx pgx.Tx, at outbox.LogCursor, until time.Time) ([]outbox.Logged, error) {
	var rows []outbox.Logged
	size := 0
	for len(rows) < a.cfg.PartRows && size < a.cfg.PartBytes {
		page, err := a.log.Page(ctx, tx, at, outbox.LogFilter{Until: until}, min(5000, a.cfg.PartRows-len(rows)))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			size += len(r.Body)
		}
		rows, at = append(rows, page...), page[len(page)-1].Cursor()
	}
	return rows, nil
}

func (a *Archiver) write(ctx context.Context, tx pgx.Tx, day time.Time, n int, rows []outbox.Logged, done *Done) (func(), error) {
	if err := a.limit.WaitN(ctx, len(rows)); err != nil {
		return nil, err
	}
	name := day.Format(time.DateOnly)
	content, p, err := pack(name, n, rows)
	if err != nil {
		return nil, err
	}
	if err := a.create(ctx, p.Name, content); err != nil {
		return nil, err
	}
	crash.Point("archive.part.written", p.Name)
	types, err := json.Marshal(p.Types)
	if err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	b.Queue(a.sql.insertPart, day, n, p.Name, p.Rows, p.Bytes, p.SHA256, p.First.At, p.First.ID, p.Last.At, p.Last.ID, p.IDSum, string(types))
	b.Queue(a.sql.addDay, day, p.Rows, p.IDSum)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	return func() {
		crash.Point("archive.part.committed", p.Name)
		done.Rows, done.Parts, done.Bytes = done.Rows+p.Rows, done.Parts+1, done.Bytes+p.Bytes
		a.cfg.Log.Info().Str("object", p.Name).Int64("rows", p.Rows).Int64("bytes", p.Bytes).Msg("archive: part written")
		if a.cfg.Hooks.Wrote != nil {
			a.cfg.Hooks.Wrote(name, p.Rows, p.Bytes)
		}
	}, nil
}

// create writes an object. One that exists was left by a step that was cut off: it is taken when it is the same.
func (a *Archiver) create(ctx context.Context, name string, content []byte) error {
	err := a.store.Create(ctx, name, content)
	if !errors.Is(err, ErrExists) {
		return err
	}
	old, err := a.store.Read(ctx, name)
	if err != nil {
		return err
	}
	if hash(old) != hash(content) {
		return fmt.Errorf("%s: %w with other content; it is not ours to replace", name, ErrExists)
	}
	return nil
}

func (a *Archiver) verify(ctx context.Context, tx pgx.Tx, day time.Time, n int) error {
	parts, err := a.parts(ctx, tx, day, n)
	if err != nil {
		return err
	}
	for _, p := range parts {
		content, err := a.store.Read(ctx, p.Name)
		if err != nil {
			return err
		}
		if err := unpack(content, p, func(outbox.Logged) error { return nil }); err != nil {
			return fmt.Errorf("archive is damaged: %w", err)
		}
	}
	_, err = tx.Exec(ctx, a.sql.markPart, day, n)
	return err
}

func (a *Archiver) parts(ctx context.Context, tx pgx.Tx, day time.Time, n int) ([]Part, error) {
	rows, err := tx.Query(ctx, a.sql.parts, day, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Part, error) {
		var p Part
		var types string
		if err := row.Scan(&p.Name, &p.Rows, &p.Bytes, &p.SHA256, &p.First.At, &p.First.ID, &p.Last.At, &p.Last.ID, &p.IDSum, &types); err != nil {
			return p, err
		}
		p.First.At, p.Last.At = p.First.At.UTC(), p.Last.At.UTC()
		return p, json.Unmarshal([]byte(types), &p.Types)
	})
}
