package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
)

// Expire deletes the objects of exports whose time has come, and says of how many. Deleting is repeated when a process died in
// between; several processes may do it at once.
func (e *Exports) Expire(ctx context.Context) (n int, err error) {
	for {
		found, err := e.expireOne(ctx)
		if err != nil || !found {
			return n, err
		}
		n++
	}
}

func (e *Exports) expireOne(ctx context.Context) (found bool, err error) {
	err = pgx.BeginFunc(ctx, e.cfg.Pool, func(tx pgx.Tx) error {
		var id string
		err := tx.QueryRow(ctx, e.sql.expired).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("expired exports: %w", err)
		}
		found = true
		rows, err := tx.Query(ctx, e.sql.objects, id)
		if err != nil {
			return fmt.Errorf("objects of export %s: %w", id, err)
		}
		objects, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("objects of export %s: %w", id, err)
		}
		for _, name := range objects {
			if err := e.cfg.Objects.Delete(ctx, name); err != nil {
				return fmt.Errorf("expire export %s: %w", id, err)
			}
		}
		if _, err := tx.Exec(ctx, e.sql.dropPages, id); err != nil {
			return fmt.Errorf("expire export %s: %w", id, err)
		}
		if _, err := tx.Exec(ctx, e.sql.expire, id); err != nil {
			return fmt.Errorf("expire export %s: %w", id, err)
		}
		return nil
	})
	return found, err
}

// Run runs [Exports.Expire] every so often until ctx ends. What fails is logged and tried again the next time.
func (e *Exports) Run(ctx context.Context, every time.Duration, log zerolog.Logger) error {
	if every <= 0 {
		return fmt.Errorf("export: every is %v, want more than 0", every)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if n, err := e.Expire(ctx); err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msg("exports could not be expired")
		} else if n > 0 {
			log.Info().Int("exports", n).Msg("exports expired")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
