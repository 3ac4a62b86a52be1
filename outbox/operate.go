package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Querier reads for operators: a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Execer changes things for operators, in their transaction beside the audit row.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Desk is what operators see and do about the outbox of one schema. Safe for concurrent use.
type Desk struct {
	sql     statements
	classes classStatements
}

// NewDesk gives the desk of a schema that was checked before, such as a [Stager]'s.
func NewDesk(schema string) *Desk { return &Desk{sql: render(schema), classes: renderClasses(schema)} }

// Backlog is what waits to be published.
type Backlog struct {
	Topics     []TopicBacklog // with rows, by name
	Rows       int64
	Oldest     time.Duration // age of the oldest row, 0 when there is none
	ParkedKeys int64
	ParkedRows int64
}

// TopicBacklog is the part of one topic.
type TopicBacklog struct {
	Topic, Class string
	Rows         int64
	Oldest       time.Duration
}

// Backlog counts. It reads the whole outbox, which is small unless a relay or the broker is down.
func (d *Desk) Backlog(ctx context.Context, db Querier) (Backlog, error) {
	var b Backlog
	rows, err := db.Query(ctx, d.sql.backlog)
	if err != nil {
		return b, fmt.Errorf("outbox backlog: %w", err)
	}
	var t TopicBacklog
	var age float64
	_, err = pgx.ForEachRow(rows, []any{&t.Topic, &t.Class, &t.Rows, &age}, func() error {
		t.Oldest = max(0, time.Duration(age*float64(time.Second)))
		b.Topics = append(b.Topics, t)
		b.Rows += t.Rows
		b.Oldest = max(b.Oldest, t.Oldest)
		return nil
	})
	if err == nil {
		err = db.QueryRow(ctx, d.sql.backlogParked).Scan(&b.ParkedKeys, &b.ParkedRows)
	}
	if err != nil {
		return b, fmt.Errorf("outbox backlog: %w", err)
	}
	return b, nil
}

// ParkedKey is a key that is held because EventID cannot be published.
type ParkedKey struct {
	BusinessKey string
	EventID     string
	Reason      string
	State       string // "held", or "releasing" while its rows are published
	Since       time.Time
	Rows        int64     // waiting, in order
	Oldest      time.Time // when the first of them was staged
	Type, Topic string    // of the first row
}

// Parked lists parked keys, longest first, at most limit.
func (d *Desk) Parked(ctx context.Context, db Querier, limit int) ([]ParkedKey, error) {
	rows, err := db.Query(ctx, d.sql.parked, limit)
	if err != nil {
		return nil, fmt.Errorf("parked keys: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (ParkedKey, error) {
		var k ParkedKey
		err := row.Scan(&k.BusinessKey, &k.EventID, &k.Reason, &k.State, &k.Since, &k.Rows, &k.Oldest, &k.Type, &k.Topic)
		return k, err
	})
}

// ErrNotParked is returned for a key that is not held, or a row that is not parked under it.
var ErrNotParked = errors.New("not parked")

// Release lets the relay publish the key's parked rows again, in order, before
// newer ones. It returns before that has happened. [ErrNotParked] when the key is not held.
func (d *Desk) Release(ctx context.Context, tx Execer, businessKey string) error {
	return one(tx.Exec(ctx, d.sql.startRelease, businessKey))
}

// Skip takes one row out of a held key for good and keeps it in outbox_skipped
// with the reason. The key stays held: call [Desk.Release] next. Consumers will
// see a gap in the key's sequence.
func (d *Desk) Skip(ctx context.Context, tx Execer, businessKey, eventID, reason string) error {
	return one(tx.Exec(ctx, d.sql.skip, businessKey, eventID, reason))
}

func one(tag pgconn.CommandTag, err error) error {
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotParked
	}
	return nil
}
