package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/internal/postgres"
)

// RingerConfig configures a [Ringer]. Stager must be set.
type RingerConfig struct {
	Schema string         // PostgreSQL schema, "" means "journeyman"
	Stager *Stager        // of this process: what it stages wakes the relays
	Every  time.Duration  // least time between two rings, 0 means 3 ms
	Log    zerolog.Logger // the zero value logs nothing
}

// Ringer tells relays of other processes at once that something was staged
// here. After a commit it sends a NOTIFY on a connection of its own: inside the
// business transaction a NOTIFY would queue all commits of the cluster behind
// one lock. Rings of many commits are one. A ring that is lost costs a relay's
// Poll and nothing else. Relays hear it with [RelayConfig].Listen.
type Ringer struct {
	db  *pgxpool.Pool
	cfg RingerConfig
	sql string
}

// NewRinger checks the configuration and refuses all that is wrong with it at once.
func NewRinger(db *pgxpool.Pool, cfg RingerConfig) (*Ringer, error) {
	if cfg.Schema == "" {
		cfg.Schema = postgres.DefaultSchema
	}
	if cfg.Every == 0 {
		cfg.Every = 3 * time.Millisecond
	}
	errs := []error{postgres.CheckSchema(cfg.Schema)}
	if db == nil {
		errs = append(errs, errors.New("pool: missing"))
	}
	if cfg.Stager == nil {
		errs = append(errs, errors.New("stager: missing"))
	}
	if cfg.Every < time.Millisecond || cfg.Every > time.Minute {
		errs = append(errs, fmt.Errorf("every %v, want 1 ms to 1 min", cfg.Every))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("outbox ringer: %w", err)
	}
	return &Ringer{db: db, cfg: cfg, sql: "NOTIFY " + channel(cfg.Schema)}, nil
}

// channel is quoted: a schema's name has letters, digits and underscores only.
func channel(schema string) string { return pgx.Identifier{schema + "_outbox"}.Sanitize() }

// Run rings until ctx is cancelled and returns nil. It survives outages of the
// database: relays poll meanwhile.
func (r *Ringer) Run(ctx context.Context) error {
	woken, stop := r.cfg.Stager.listen()
	defer stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	<-rest.C
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-woken:
		}
		wait := r.cfg.Every
		if err := r.ring(ctx); err != nil && ctx.Err() == nil {
			failures++
			wait = max(wait, backoff(failures, time.Second))
			r.cfg.Log.Warn().Err(err).Dur("retry_after", wait).Msg("outbox ringer: relays of other processes poll meanwhile")
		} else {
			failures = 0
		}
		rest.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-rest.C:
		}
	}
}

func (r *Ringer) ring(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := r.db.Exec(ctx, r.sql, pgx.QueryExecModeSimpleProtocol) // prepares nothing
	return err
}

// listen wakes the lanes at rings of other processes until ctx ends. It holds
// one connection outside the pool.
func (r *Relay) listen(ctx context.Context) {
	for tries := 1; ctx.Err() == nil; tries++ {
		began := time.Now()
		err := r.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			tries = 1
		}
		wait := backoff(tries, r.cfg.MaxBackoff)
		r.cfg.Log.Warn().Err(err).Dur("retry_after", wait).Msg("outbox relay: hears no rings of other processes, polls meanwhile")
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

func (r *Relay) listenOnce(ctx context.Context) error {
	cfg := r.db.Config().ConnConfig
	cfg.OnNotification = func(_ *pgconn.PgConn, _ *pgconn.Notification) { r.wakeAll() } // woken already is fine
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel(r.cfg.Schema)); err != nil {
		return err
	}
	r.wakeAll() // what was rung before we listened
	for {
		// A connection that died without a word is noticed by the next probe.
		wait, cancel := context.WithTimeout(ctx, listenProbe)
		err := conn.PgConn().WaitForNotification(wait)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !pgconn.Timeout(err) {
			return err
		}
		if err != nil && conn.Ping(ctx) != nil {
			return fmt.Errorf("connection lost: %w", err)
		}
	}
}

// listenProbe is how often a silent connection is asked whether it lives.
const listenProbe = 30 * time.Second
