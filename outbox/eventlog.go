package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// daysAhead is how many days of the event log exist before they begin.
const daysAhead = 3

const checkViolation = "23514" // also: no partition of relation found for row

// logged runs a statement that writes the event log. When its day is missing,
// because no relay ran for days or a test moved the clock, the day is made and
// the statement run once more. The statement gets the relay's own deadline.
func (r *Relay) logged(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Lease)
	defer cancel()
	err := fn(ctx)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == checkViolation {
		if err := r.days(ctx, true); err != nil {
			return err
		}
		return fn(ctx)
	}
	return err
}

// keepLog makes and drops days of the event log once an hour. Every relay tries, one of them does it.
func (r *Relay) keepLog(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := r.days(ctx, false); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn().Err(err).Msg("outbox relay: event log days")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// days makes the partitions of today and the next days and drops those past
// the retention, under a lock that one process holds. With wait it waits for
// that lock, otherwise it leaves the work to the holder.
func (r *Relay) days(ctx context.Context, wait bool) error {
	return pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '5s'`); err != nil {
			return err
		}
		if wait {
			if _, err := tx.Exec(ctx, r.sql.logLock); err != nil {
				return fmt.Errorf("event log: %w", err)
			}
		} else {
			var leader bool
			if err := tx.QueryRow(ctx, r.sql.logTryLock).Scan(&leader); err != nil || !leader {
				return err
			}
		}
		var today time.Time
		if err := tx.QueryRow(ctx, r.sql.logToday).Scan(&today); err != nil {
			return fmt.Errorf("event log: %w", err)
		}
		rows, err := tx.Query(ctx, r.sql.logDays)
		if err != nil {
			return fmt.Errorf("event log: %w", err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("event log: %w", err)
		}
		for _, sql := range logChanges(r.cfg.Schema, names, today, r.cfg.LogRetention) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("event log: %s: %w", sql, err)
			}
		}
		return nil
	})
}

const dayName = "event_log_20060102"

// logChanges gives the statements that bring the partitions called names up to
// what today and the retention ask for. Names it does not know are left alone.
func logChanges(schema string, names []string, today time.Time, keep time.Duration) []string {
	var sql []string
	have := map[string]bool{}
	oldest := today.Add(-keep)
	for _, name := range names {
		have[name] = true
		if d, err := time.Parse(dayName, name); err == nil && strings.HasPrefix(name, "event_log_") && d.Before(oldest) {
			sql = append(sql, fmt.Sprintf(`DROP TABLE %s.%s`, schema, name))
		}
	}
	for i := range daysAhead + 1 {
		d := today.AddDate(0, 0, i)
		if name := d.Format(dayName); !have[name] {
			sql = append(sql, fmt.Sprintf(`CREATE TABLE %s.%s PARTITION OF %s.event_log FOR VALUES FROM ('%s 00:00+00') TO ('%s 00:00+00')`,
				schema, name, schema, d.Format(time.DateOnly), d.AddDate(0, 0, 1).Format(time.DateOnly)))
		}
	}
	return sql
}
