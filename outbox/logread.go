package outbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
)

// Log reads the event log of one schema and says what is archived of it. Safe for concurrent use.
type Log struct{ sql statements }

// NewLog gives the log of a schema that was checked before.
func NewLog(schema string) *Log { return &Log{sql: render(schema)} }

// Logged is one row of the event log: a message as it was published, in the
// form in which the outbox keeps it. [Logged.Record] gives what went to the broker.
type Logged struct {
	LoggedAt    time.Time // when the broker had acknowledged it
	Shard       int16
	ID          int64 // grows per business key in the order of publication
	EventID     string
	Type        string
	Version     int
	Class       events.Class
	Topic       string
	BusinessKey string
	Seq         int64
	OperationID string
	Headers     []string // name, value, name, value, ...
	Body        []byte   // without occurredAt and sequence
	OccurredAt  time.Time
	CreatedAt   time.Time
}

// Record gives the message as it was published, byte for byte. For a body that is encrypted use [Logged.RecordWith].
func (l Logged) Record() (events.Record, error) { return l.RecordWith(nil) }

// RecordWith is [Logged.Record] with the keys that open an encrypted body; the
// error wraps seal.ErrNoKey when the body's key is not among them. A body that was
// encrypted at the broker is encrypted anew, with the current key.
func (l Logged) RecordWith(keys seal.Keys) (events.Record, error) {
	headers, broken := pairs(l.Headers)
	r, err := (&staged{
		shard: l.Shard, id: l.ID, eventID: l.EventID, topic: l.Topic, key: l.BusinessKey, seq: l.Seq,
		headers: headers, broken: broken, body: l.Body, occurred: l.OccurredAt, at: l.CreatedAt,
	}).record(keys)
	if err != nil {
		return r, fmt.Errorf("event log row %d: %w", l.ID, err)
	}
	return r, nil
}

// LogCursor is a place in the log: after the row with this time and id. The zero value is the beginning.
type LogCursor struct {
	At time.Time `json:"at"`
	ID int64     `json:"id"`
}

// Cursor is the place after the row.
func (l Logged) Cursor() LogCursor { return LogCursor{At: l.LoggedAt, ID: l.ID} }

// LogFilter chooses rows. Empty lists choose all.
type LogFilter struct {
	Until time.Time // rows logged before; required, see [Log.Settle]
	Types []string  // patterns, see [events.Match]
	Keys  []string  // business keys
}

// maxPageBytes bounds the bodies of one page.
const maxPageBytes = 16 << 20

// Page gives the next rows after a cursor, at most limit and about 16 MB, in
// the order of (LoggedAt, ID), which is the order of publication of each key as
// long as the database's clock is not set back. Fewer rows than limit do not
// mean the end: no rows do. It locks nothing.
func (l *Log) Page(ctx context.Context, db Querier, after LogCursor, f LogFilter, limit int) ([]Logged, error) {
	if f.Until.IsZero() || limit < 1 {
		return nil, fmt.Errorf("event log page: until %v and limit %d, want both set", f.Until, limit)
	}
	rows, err := db.Query(ctx, l.sql.logPage, after.At, after.ID, f.Until, patterns(f.Types), orNull(f.Keys), limit)
	if err != nil {
		return nil, fmt.Errorf("event log page: %w", err)
	}
	defer rows.Close()
	var page []Logged
	size := 0
	for size < maxPageBytes && rows.Next() {
		var r Logged
		if err := rows.Scan(&r.LoggedAt, &r.Shard, &r.ID, &r.EventID, &r.Type, &r.Version, &r.Class, &r.Topic, &r.BusinessKey, &r.Seq, &r.OperationID,
			&r.Headers, &r.Body, &r.OccurredAt, &r.CreatedAt); err != nil {
			return nil, fmt.Errorf("event log page: %w", err)
		}
		size += len(r.Body)
		page = append(page, r)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("event log page: %w", err)
	}
	return page, nil
}

// patterns turns message type patterns into regular expressions of PostgreSQL, nil for none.
func patterns(types []string) any {
	if len(types) == 0 {
		return nil
	}
	out := make([]string, len(types))
	for i, t := range types {
		parts := strings.Split(t, ".")
		for n, p := range parts {
			switch {
			case p != "*":
				parts[n] = regexp.QuoteMeta(p)
			case n == len(parts)-1:
				parts[n] = ".+"
			default:
				parts[n] = `[^.]+`
			}
		}
		out[i] = "^" + strings.Join(parts, `\.`) + "$"
	}
	return out
}

func orNull(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// settleWithin is how long [Log.Settle] waits for a relay's statement.
const settleWithin = "10s"

// Settle waits until every row that was logged before the time it gives can be
// seen: a row's time is taken before its transaction commits, so reading up to
// "now" would miss rows. It keeps relays from logging for a moment, and fails
// after ten seconds when one of them holds the log that long.
func (l *Log) Settle(ctx context.Context, db Beginner) (time.Time, error) {
	var at time.Time
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '`+settleWithin+`'`); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, l.sql.logNow).Scan(&at); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, l.sql.logSettle)
		return err
	})
	if err != nil {
		return at, fmt.Errorf("settle event log: %w", err)
	}
	return at, nil
}

// LogDay is how one day of the log stands.
type LogDay struct {
	Day        time.Time
	Kept       bool   // its rows are in the database
	State      string // of the archive: "" not archived, "writing", "verified", "dropped"
	Rows       int64  // archived and verified
	VerifiedAt *time.Time
	DroppedAt  *time.Time
}

// Days lists the days of the log, those to come included, by date.
func (l *Log) Days(ctx context.Context, db Querier) ([]LogDay, error) {
	rows, err := db.Query(ctx, l.sql.logDayList)
	if err != nil {
		return nil, fmt.Errorf("event log days: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (LogDay, error) {
		var d LogDay
		err := row.Scan(&d.Day, &d.Kept, &d.State, &d.Rows, &d.VerifiedAt, &d.DroppedAt)
		return d, err
	})
}

// Archived says whether days are kept until their archive is verified.
func (l *Log) Archived(ctx context.Context, db Querier) (bool, error) {
	var on bool
	if err := db.QueryRow(ctx, l.sql.logPolicy).Scan(&on); err != nil {
		return false, fmt.Errorf("event log policy: %w", err)
	}
	return on, nil
}

// SetArchived decides, for all relays of the schema, whether days are kept
// until their archive is verified. Turning it off lets days go unarchived when
// their retention ends, so it needs who and why.
func (l *Log) SetArchived(ctx context.Context, db Execer, on bool, actor, reason string) error {
	if actor == "" || reason == "" {
		return errors.New("event log policy: want an actor and a reason")
	}
	if _, err := db.Exec(ctx, l.sql.logSetPolicy, on, actor, reason); err != nil {
		return fmt.Errorf("event log policy: %w", err)
	}
	return nil
}
