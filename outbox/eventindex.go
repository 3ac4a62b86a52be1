package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// indexDays gives each day of the event log that is over an index by business key, which timelines of sagas read it by, each in a
// transaction of its own. A day that is written to has none: its rows are found by time, and publishing pays for no second index.
func (r *Relay) indexDays(ctx context.Context) error {
	var bare []string
	if err := r.withLog(ctx, false, func(tx pgx.Tx, names []string, today time.Time) error {
		for _, name := range pastDays(names, today) {
			var there bool
			if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, r.cfg.Schema+"."+keyIndex(name)).Scan(&there); err != nil {
				return fmt.Errorf("event log %s: %w", name, err)
			}
			if !there {
				bare = append(bare, name)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	var errs []error
	for _, name := range bare {
		errs = append(errs, r.withLog(ctx, false, func(tx pgx.Tx, _ []string, _ time.Time) error {
			if _, err := tx.Exec(ctx, fmt.Sprintf(`CREATE INDEX IF NOT EXISTS %s ON %s.%s (business_key, logged_at)`, keyIndex(name), r.cfg.Schema, name)); err != nil {
				return fmt.Errorf("event log %s: index by key: %w", name, err)
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

func keyIndex(day string) string { return day + "_key" }
