package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// keysAtOnce bounds one statement of a sweep, so that no transaction waits long for a key.
const keysAtOnce = 5000

// keysEvery is how often keys are swept.
const keysEvery = time.Hour

// keepKeys sweeps until ctx ends. Every relay tries, one of them does it.
func (r *Relay) keepKeys(ctx context.Context) {
	tick := time.NewTicker(keysEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := r.sweepKeys(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn().Err(err).Msg("outbox relay: sweep keys")
		}
	}
}

// errNotLeader ends a sweep that another relay does.
var errNotLeader = errors.New("another relay sweeps")

// sweepKeys removes keys that were idle for KeyRetention and lie below the floor, raises the floor over those that
// are idle for as long and lie above it (a later sweep removes them), and marks the keys that were used since the last sweep. A key of a strict
// order stays: its consumers count on. It gives the number of keys removed.
func (r *Relay) sweepKeys(ctx context.Context) (removed int64, err error) {
	for {
		n, err := r.sweepStep(ctx, r.sql.keysRemove, r.cfg.KeyRetention, keysAtOnce)
		removed += n
		if err != nil || n < keysAtOnce {
			if errors.Is(err, errNotLeader) {
				return removed, nil
			}
			if err != nil {
				return removed, fmt.Errorf("remove idle keys: %w", err)
			}
			break
		}
	}
	if _, err := r.sweepStep(ctx, r.sql.keysRaise, r.cfg.KeyRetention); err != nil && !errors.Is(err, errNotLeader) {
		return removed, fmt.Errorf("raise the floor of keys: %w", err)
	}
	for {
		n, err := r.sweepStep(ctx, r.sql.keysMark, keysAtOnce)
		if errors.Is(err, errNotLeader) {
			return removed, nil
		}
		if err != nil {
			return removed, fmt.Errorf("mark idle keys: %w", err)
		}
		if n < keysAtOnce {
			return removed, nil
		}
	}
}

// sweepStep runs one statement in a transaction of the leader.
func (r *Relay) sweepStep(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	err = pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		var leader bool
		if err := tx.QueryRow(ctx, r.sql.keysLock).Scan(&leader); err != nil {
			return err
		}
		if !leader {
			return errNotLeader
		}
		tag, err := tx.Exec(ctx, sql, args...)
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}
