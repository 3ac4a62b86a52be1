package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// Desk is what operators see and do about the inboxes of one schema. Safe for concurrent use.
type Desk struct {
	sql    statements
	order  orderStatements
	groups groupStatements
}

// NewDesk gives the desk of a schema that was checked before.
func NewDesk(schema string) *Desk {
	return &Desk{sql: render(schema), order: renderOrder(schema), groups: renderGroup(schema)}
}

// Waiting is a message that waits for another attempt, or behind one that does.
type Waiting struct {
	Group       string
	ID          int64
	BusinessKey string
	MessageID   string
	Type        string
	Position    events.Position
	Attempts    int
	LastError   string
	First       time.Time
	Next        *time.Time // nil: when the message before it is done
}

// Dead is a message that was set aside, as it came.
type Dead struct {
	ID          int64
	Group       string
	State       string // "dead", or "parked" after a refusal
	BusinessKey string
	MessageID   string
	Type        string
	Position    events.Position
	Headers     []events.Header
	Body        []byte
	Attempts    int
	Class       string
	Reason      string
	Error       string
	Sent        time.Time // the broker's time
	First, Died time.Time
}

// Counts are the numbers of messages by how they stand.
type Counts struct{ Waiting, Dead, Parked int64 }

// Counts counts, for one group or, with "", for all.
func (d *Desk) Counts(ctx context.Context, db outbox.Querier, group string) (Counts, error) {
	var c Counts
	if err := db.QueryRow(ctx, d.sql.counts, group).Scan(&c.Waiting, &c.Dead, &c.Parked); err != nil {
		return c, fmt.Errorf("inbox counts: %w", err)
	}
	return c, nil
}

// Waiting lists messages by group, key and order, for one group or, with "", for all.
func (d *Desk) Waiting(ctx context.Context, db outbox.Querier, group string, limit int) ([]Waiting, error) {
	rows, err := db.Query(ctx, d.sql.waiting, group, limit)
	if err != nil {
		return nil, fmt.Errorf("inbox waiting: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Waiting, error) {
		var w Waiting
		err := row.Scan(&w.Group, &w.ID, &w.BusinessKey, &w.MessageID, &w.Type, &w.Position.Topic, &w.Position.Partition, &w.Position.Offset,
			&w.Attempts, &w.LastError, &w.First, &w.Next)
		return w, err
	})
}

// Dead lists messages that were set aside, the latest first, for one group or, with "", for all.
func (d *Desk) Dead(ctx context.Context, db outbox.Querier, group string, limit int) ([]Dead, error) {
	return d.graves(ctx, db, group, 0, limit)
}

// Show gives one of them. [ErrNotDead] when there is none with that id.
func (d *Desk) Show(ctx context.Context, db outbox.Querier, id int64) (Dead, error) {
	list, err := d.graves(ctx, db, "", id, 1)
	if err == nil && len(list) == 0 {
		err = ErrNotDead
	}
	if err != nil {
		return Dead{}, err
	}
	return list[0], nil
}

func (d *Desk) graves(ctx context.Context, db outbox.Querier, group string, id int64, limit int) ([]Dead, error) {
	rows, err := db.Query(ctx, d.sql.dead, group, id, limit)
	if err != nil {
		return nil, fmt.Errorf("inbox dead: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Dead, error) {
		var m Dead
		var headers []string
		err := row.Scan(&m.ID, &m.Group, &m.State, &m.BusinessKey, &m.MessageID, &m.Type, &m.Position.Topic, &m.Position.Partition, &m.Position.Offset,
			&headers, &m.Body, &m.Attempts, &m.Class, &m.Reason, &m.Error, &m.Sent, &m.First, &m.Died)
		m.Headers = paired(headers)
		return m, err
	})
}

// ErrNotDead is returned for an id that is not in inbox_dead (any more).
var ErrNotDead = errors.New("no such dead or parked message")

// Redrive gives a message back to its group for a new round of attempts, behind
// what waits of its key. Call it in the transaction of the audit row.
func (d *Desk) Redrive(ctx context.Context, tx outbox.Execer, id int64) error {
	return one(tx.Exec(ctx, d.sql.redrive, id))
}

// Drop forgets a message for good.
func (d *Desk) Drop(ctx context.Context, tx outbox.Execer, id int64) error {
	return one(tx.Exec(ctx, d.sql.drop, id))
}

func one(tag pgconn.CommandTag, err error) error {
	if err != nil {
		return fmt.Errorf("inbox: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotDead
	}
	return nil
}
