package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
)

// Desk is what operators see and do about the queues of one schema. Safe for concurrent use.
type Desk struct{ sql statements }

// NewDesk gives the desk of a schema that was checked before.
func NewDesk(schema string) *Desk { return &Desk{sql: render(schema)} }

// Waiting is an item that waits or is being done.
type Waiting struct {
	Row            int64
	Queue, ID, Key string
	Priority       Priority
	Attempts       int
	LastError      string
	Put, NotBefore time.Time
	Next           time.Time
	Owner          string     // of the last claim
	Lease          *time.Time // nil: nobody is at it
}

// Quarantined is an item that was set aside.
type Quarantined struct {
	Row            int64
	State          string // "dead", or "parked" after a refusal
	Queue, ID, Key string
	Priority       Priority
	Attempts       int
	Class          string
	Reason         string
	Error          string
	Put, NotBefore time.Time
	First, Died    time.Time
	Body           []byte // as it rests, see [Quarantined.Clear]
}

// Clear gives the payload as its handler would read it.
func (q Quarantined) Clear(keys seal.Keys) ([]byte, error) {
	if _, sealed := seal.Sealed(q.Body); !sealed {
		return q.Body, nil
	}
	return seal.Open(keys, q.Body, bound(q.Queue, q.ID))
}

// List gives items by queue and time, of one queue or, with "", of all.
func (d *Desk) List(ctx context.Context, db outbox.Querier, queue string, limit int) ([]Waiting, error) {
	rows, err := db.Query(ctx, d.sql.list, queue, limit)
	if err != nil {
		return nil, fmt.Errorf("work: list: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Waiting, error) {
		var w Waiting
		err := row.Scan(&w.Row, &w.Queue, &w.ID, &w.Key, &w.Priority, &w.Attempts, &w.LastError, &w.Put, &w.NotBefore, &w.Next, &w.Owner, &w.Lease)
		w.Priority--
		return w, err
	})
}

// Quarantine lists what was set aside, the oldest first, of one queue or, with "", of all.
func (d *Desk) Quarantine(ctx context.Context, db outbox.Querier, queue string, limit int) ([]Quarantined, error) {
	return d.quarantined(ctx, db, queue, 0, limit)
}

// Show gives one item of the quarantine. [ErrNotQuarantined] when there is none with that row.
func (d *Desk) Show(ctx context.Context, db outbox.Querier, row int64) (Quarantined, error) {
	list, err := d.quarantined(ctx, db, "", row, 1)
	if err == nil && len(list) == 0 {
		err = ErrNotQuarantined
	}
	if err != nil {
		return Quarantined{}, err
	}
	return list[0], nil
}

func (d *Desk) quarantined(ctx context.Context, db outbox.Querier, queue string, row int64, limit int) ([]Quarantined, error) {
	rows, err := db.Query(ctx, d.sql.quarantined, queue, row, limit)
	if err != nil {
		return nil, fmt.Errorf("work: quarantine: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Quarantined, error) {
		var q Quarantined
		err := row.Scan(&q.Row, &q.State, &q.Queue, &q.ID, &q.Key, &q.Priority, &q.Attempts, &q.Class, &q.Reason, &q.Error, &q.Put, &q.NotBefore, &q.First, &q.Died, &q.Body)
		q.Priority--
		return q, err
	})
}

// ErrNotQuarantined is returned for a row that is not in quarantine (any more).
var ErrNotQuarantined = errors.New("no such item in quarantine")

// Retry gives an item back to its queue for a new round of attempts. Call it in
// the transaction of the audit row. [ErrConflict] when an item of its id was put again since.
func (d *Desk) Retry(ctx context.Context, tx outbox.Execer, row int64) error {
	tag, err := tx.Exec(ctx, d.sql.retry, row)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "23505" {
		return fmt.Errorf("work: retry %d: %w", row, ErrConflict)
	}
	return one(tag, err)
}

// Drop forgets an item of the quarantine for good. Call it in the transaction of the audit row.
func (d *Desk) Drop(ctx context.Context, tx outbox.Execer, row int64) error {
	return one(tx.Exec(ctx, d.sql.drop, row))
}

func one(tag pgconn.CommandTag, err error) error {
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotQuarantined
	}
	return nil
}

// Stat is how a queue stands, by the database's clock.
type Stat struct {
	Queue            string
	Due              int64 // those being done among them
	Scheduled        int64 // due later, not tried yet
	Retrying         int64 // due later, tried before
	Running          int64
	OldestDue        time.Duration // how long the oldest due item has been due
	Dead, Parked     int64
	OldestQuarantine time.Duration
}

// Stats gives how queues stand, one or, with "", all that hold anything. It reads the tables.
func (d *Desk) Stats(ctx context.Context, db outbox.Querier, queue string) ([]Stat, error) {
	rows, err := db.Query(ctx, d.sql.stat, queue)
	if err != nil {
		return nil, fmt.Errorf("work: stats: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Stat, error) {
		var s Stat
		var due, quarantine float64
		err := row.Scan(&s.Queue, &s.Due, &s.Scheduled, &s.Retrying, &s.Running, &due, &s.Dead, &s.Parked, &quarantine)
		s.OldestDue, s.OldestQuarantine = time.Duration(due*float64(time.Second)), time.Duration(quarantine*float64(time.Second))
		return s, err
	})
}

// WriteMetrics writes stats in the Prometheus text format, one label queue (spec E14).
func WriteMetrics(w io.Writer, stats []Stat) error {
	for _, m := range []struct {
		name, help string
		value      func(Stat) float64
	}{
		{"journeyman_work_backlog", "Items that are due.", func(s Stat) float64 { return float64(s.Due) }},
		{"journeyman_work_scheduled", "Items that are due later.", func(s Stat) float64 { return float64(s.Scheduled) }},
		{"journeyman_work_retrying", "Items that wait for another attempt.", func(s Stat) float64 { return float64(s.Retrying) }},
		{"journeyman_work_running", "Items under a lease.", func(s Stat) float64 { return float64(s.Running) }},
		{"journeyman_work_oldest_due_seconds", "For how long the oldest due item has been due.", func(s Stat) float64 { return s.OldestDue.Seconds() }},
		{"journeyman_work_quarantined", "Items that a person must decide about.", func(s Stat) float64 { return float64(s.Dead + s.Parked) }},
		{"journeyman_work_quarantine_oldest_seconds", "For how long the oldest of them has been there.", func(s Stat) float64 { return s.OldestQuarantine.Seconds() }},
	} {
		if _, err := fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name); err != nil {
			return err
		}
		for _, s := range stats {
			if _, err := fmt.Fprintf(w, "%s{queue=%q} %g\n", m.name, s.Queue, m.value(s)); err != nil {
				return err
			}
		}
	}
	return nil
}
