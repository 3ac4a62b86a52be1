package inbox

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
)

// settle writes down the end of an attempt at a message from the broker that did not succeed (spec E7, E8).
func (i *Inbox) settle(ctx context.Context, m message, oc *outcome.Error) error {
	attempt := m.attempts + 1
	if outage(oc) {
		wait := restFor(m.entry)
		args, err := i.waiting(m, m.attempts, oc.Error(), &wait)
		if err == nil {
			_, err = i.db.Exec(ctx, i.sql.schedule, args...)
		}
		if err == nil {
			i.tellRetry(m, attempt, wait, oc)
		}
		return err
	}
	if oc.Class == outcome.Retryable && attempt < m.entry.PoisonedAfter {
		wait := delay(m.entry, attempt, oc.After)
		args, err := i.waiting(m, attempt, oc.Error(), &wait)
		if err == nil {
			_, err = i.db.Exec(ctx, i.sql.schedule, args...)
		}
		if err != nil {
			return err
		}
		i.tellRetry(m, attempt, wait, oc)
		return nil
	}
	return i.bury(ctx, m, oc)
}

// follow puts the message behind the older one of its key that waits. The
// transaction that begin opened is given up. Should the older one be done by
// now, the message starts over.
func (i *Inbox) follow(ctx context.Context, conn *pgxpool.Conn, m message) error {
	i.rollback(conn)
	for {
		var still bool
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, i.sql.lockKey, i.cfg.Group, m.Key); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, i.sql.behind, i.cfg.Group, m.Key).Scan(&still); err != nil || !still {
				return err
			}
			args, err := i.waiting(m, 0, "waits behind an older message of its key", nil)
			if err == nil {
				_, err = tx.Exec(ctx, i.sql.schedule, args...)
			}
			return err
		})
		if err != nil || still {
			return err
		}
		state, err := i.begin(ctx, conn, &m)
		if err != nil {
			return err
		}
		if state == waits {
			i.rollback(conn)
			continue
		}
		oc, err := i.apply(ctx, conn, m, state, nil)
		if err != nil || oc == nil {
			return err
		}
		conn.Release()
		return i.settle(ctx, m, oc)
	}
}

// waiting gives the parameters of the statement schedule.
func (i *Inbox) waiting(m message, attempts int, why string, wait *time.Duration) ([]any, error) {
	body, err := i.atRest(m)
	return []any{
		i.cfg.Group, m.Key, m.env.MessageID, clean(m.env.MessageType), m.entry.Class.Ordered() && !m.order.strict, m.Position.Topic, m.Position.Partition, m.Position.Offset,
		flat(m.Headers), body, m.Time, attempts, cut(why), since(m), wait,
	}, err
}

// delay is the wait after the n-th attempt: the catalog's, longer when the
// outcome asks for it, with up to a tenth on top so that messages that failed together do not come back together.
func delay(e events.Entry, attempt int, after time.Duration) time.Duration {
	d := max(e.Retry[min(attempt, len(e.Retry))-1], after)
	return d + rand.N(d/10+1) //nolint:gosec // jitter needs no secrecy
}

// bury writes a message of the broker to inbox_dead: the parking lot for a refusal, else dead.
func (i *Inbox) bury(ctx context.Context, m message, oc *outcome.Error) error {
	state, reason, args, err := i.grave(m, oc)
	if err == nil {
		_, err = i.db.Exec(ctx, i.sql.bury, args...)
	}
	if err != nil {
		return err
	}
	i.tellDead(m, state, reason, oc)
	return nil
}

func (i *Inbox) grave(m message, oc *outcome.Error) (state, reason string, args []any, err error) {
	state, reason = "dead", oc.Reason
	switch {
	case oc.Class == outcome.Business:
		state, reason = "parked", oc.Code
	case oc.Class == outcome.Retryable && reason == ReasonSchemaID:
	case oc.Class == outcome.Retryable:
		reason = ReasonPoisoned
	case reason == "":
		reason = "fatal"
	}
	body, err := i.atRest(m)
	return state, reason, []any{
		i.cfg.Group, state, clean(m.Key), clean(m.env.MessageID), clean(m.env.MessageType), m.Position.Topic, m.Position.Partition, m.Position.Offset,
		flat(m.Headers), body, m.Time, m.attempts + 1, string(oc.Class), clean(reason), cut(oc.Error()), since(m),
	}, err
}

func since(m message) any {
	if m.first.IsZero() {
		return nil
	}
	return m.first
}

func (i *Inbox) tellRetry(m message, attempt int, wait time.Duration, oc *outcome.Error) {
	i.about(i.cfg.Log.Warn(), m).Err(oc).Int("attempt", attempt).Dur("retry_after", wait).Msg("inbox: message will be tried again")
	if i.cfg.Hooks.Retrying != nil {
		i.cfg.Hooks.Retrying(m.env.MessageType, attempt, wait, oc)
	}
}

func (i *Inbox) tellDead(m message, state, reason string, oc *outcome.Error) {
	i.about(i.cfg.Log.Error(), m).Err(oc).Str("reason", reason).Str("state", state).Msg("inbox: message set aside, a person must decide")
	if i.cfg.Hooks.Dead != nil {
		i.cfg.Hooks.Dead(m.env.MessageType, m.env.MessageID, reason, state == "parked")
	}
}

func (i *Inbox) about(e *zerolog.Event, m message) *zerolog.Event {
	return e.Str("group", i.cfg.Group).Str("event_id", m.env.MessageID).Str("event_type", m.env.MessageType).Str("topic", m.Position.Topic).
		Int("partition", m.Position.Partition).Int64("offset", m.Position.Offset).Str("business_key", m.Key).
		Str("correlation_id", m.env.Metadata.CorrelationID).Str("trace_id", m.env.TraceID).
		Str("process_instance_id", m.env.Metadata.ProcessInstanceID).Str("operation_id", m.env.Metadata.OperationID)
}

// cut bounds an error text, at a character's boundary.
func cut(text string) string {
	text = clean(text)
	n := 2000
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}
