package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		select {
		case r.newDay <- struct{}{}:
		default:
		}
		return fn(ctx)
	}
	return err
}

// keepLog makes, drops and indexes days of the event log once an hour, and when a day had to be made on demand.
// Every relay tries, one of them does it.
func (r *Relay) keepLog(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		err := r.days(ctx, false)
		if err == nil {
			err = errors.Join(r.dropDays(ctx, false), r.indexDays(ctx))
		}
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn().Err(err).Msg("outbox relay: event log days")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.newDay:
		}
	}
}

// days makes the partitions of today and the next days, under a lock that one
// process holds. With wait it waits for that lock, otherwise it leaves the work
// to the holder.
func (r *Relay) days(ctx context.Context, wait bool) error {
	return r.withLog(ctx, wait, func(tx pgx.Tx, names []string, today time.Time) error {
		for _, sql := range missingDays(r.cfg.Schema, names, today) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("event log: %s: %w", sql, err)
			}
		}
		return nil
	})
}

// dropDays drops the days past the retention, each in a transaction of its own.
// Where the log is archived, a day whose archive is not verified stays, and one
// that no longer holds what was archived goes back to the archive.
func (r *Relay) dropDays(ctx context.Context, wait bool) error {
	var old []string
	if err := r.withLog(ctx, wait, func(_ pgx.Tx, names []string, today time.Time) error {
		old = pastDays(names, today.Add(-r.cfg.LogRetention))
		return nil
	}); err != nil {
		return err
	}
	var errs []error
	for _, name := range old {
		errs = append(errs, r.withLog(ctx, wait, func(tx pgx.Tx, names []string, _ time.Time) error {
			if !slices.Contains(names, name) {
				return nil // another process dropped it since
			}
			return r.dropDay(ctx, tx, name)
		}))
	}
	return errors.Join(errs...)
}

func (r *Relay) dropDay(ctx context.Context, tx pgx.Tx, name string) error {
	day, err := time.Parse(dayName, name)
	if err != nil {
		return err
	}
	// Nobody writes to a day that is over; the lock keeps it so until it is gone.
	if _, err := tx.Exec(ctx, fmt.Sprintf(`LOCK TABLE %s.%s IN SHARE MODE`, r.cfg.Schema, name)); err != nil {
		return fmt.Errorf("event log %s: %w", name, err)
	}
	var archived, verified, whole bool
	if err := tx.QueryRow(ctx, r.sql.dayStands, day).Scan(&archived, &verified, &whole); err != nil {
		return fmt.Errorf("event log %s: %w", name, err)
	}
	switch {
	case archived && !verified:
		r.cfg.Log.Warn().Str("day", name).Msg("outbox relay: event log day is past its retention and kept: its archive is not verified")
		return nil
	case archived && !whole:
		r.cfg.Log.Error().Str("day", name).Msg("outbox relay: event log day is kept: it does not hold what was archived")
		_, err := tx.Exec(ctx, r.sql.dayReopen, day)
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf(`DROP TABLE %s.%s`, r.cfg.Schema, name)); err != nil {
		return fmt.Errorf("event log %s: %w", name, err)
	}
	_, err = tx.Exec(ctx, r.sql.dayDropped, day)
	return err
}

// withLog runs fn with the log's partitions and the database's day, under the log's lock.
func (r *Relay) withLog(ctx context.Context, wait bool, fn func(tx pgx.Tx, names []string, today time.Time) error) error {
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
		return fn(tx, names, today)
	})
}

const dayName = "event_log_20060102"

// pastDays gives the partitions of days before oldest. Names it does not know are left alone.
func pastDays(names []string, oldest time.Time) []string {
	var past []string
	for _, name := range names {
		if d, err := time.Parse(dayName, name); err == nil && d.Before(oldest) {
			past = append(past, name)
		}
	}
	return past
}

// missingDays gives the statements that make the days that names lack.
func missingDays(schema string, names []string, today time.Time) []string {
	var sql []string
	have := map[string]bool{}
	for _, name := range names {
		have[name] = true
	}
	for i := range daysAhead + 1 {
		d := today.AddDate(0, 0, i)
		name := d.Format(dayName)
		if have[name] {
			continue
		}
		sql = append(sql, fmt.Sprintf(`CREATE TABLE %s.%s PARTITION OF %s.event_log FOR VALUES FROM ('%s 00:00+00') TO ('%s 00:00+00')`,
			schema, name, schema, d.Format(time.DateOnly), d.AddDate(0, 0, 1).Format(time.DateOnly)),
			fmt.Sprintf(`CREATE TRIGGER event_log_no_truncate BEFORE TRUNCATE ON %s.%s FOR EACH STATEMENT EXECUTE FUNCTION %s.event_log_append_only()`, schema, name, schema))
	}
	return sql
}
