package inbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Strict order (spec E4). A message of an order scope names the one before it of
// its key (header previous_sequence). The group keeps how far it is with each
// key in inbox_order, under a lock held until the message's transaction ends, so
// that members with partitions of different topics take turns too.
// The order is that of one producer: services with databases of their own have no common one.
//
//	                 previous ≤ seq
//	message ────────────────────────────► handler, seq := its sequence, wakes what waited for it
//	   │ previous > seq: a gap
//	   └──► held in inbox_retry ──GapLimit──► parked in inbox_dead, reason gap
//	              │ filled                          │ filled, or Desk.AcceptGap
//	              └────────► due now ◄──────────────┘
//
// A message that fails, is parked or dead does not move seq: what follows it is
// held until it was redriven, or an operator accepts the gap.

// order is a message's place in its scope.
type order struct {
	strict   bool
	scope    string // of the catalog, and the producer: each service numbers its own messages
	held     bool   // it comes from inbox_retry, where it waited for a gap
	previous int64  // -1: the message does not say
	last     int64  // how far the group was when its transaction began
}

// place reads where the message stands in its scope. Messages that are replayed
// come again on purpose and are of no order.
func (m *message) place() error {
	if m.entry.OrderScope == "" || m.env.Metadata.Replay || m.replay.again {
		return nil
	}
	if m.env.Metadata.Sequence < 1 {
		return nil // not from an outbox
	}
	m.order.strict, m.order.previous, m.order.scope = true, -1, m.entry.OrderScope+"@"+clean(m.env.Producer)
	text := m.Header(events.HeaderPreviousSequence)
	if text == "" {
		return nil // staged before its type was ordered strictly
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n >= m.env.Metadata.Sequence {
		return fmt.Errorf("header %s %.40q, want a sequence below the message's own, %d", events.HeaderPreviousSequence, text, m.env.Metadata.Sequence)
	}
	m.order.previous = n
	return nil
}

// gap reports whether a message between last and m is missing.
func (i *Inbox) gap(m message, last int64) bool {
	return m.order.strict && m.order.previous > last && (last > 0 || !i.cfg.JoinLate)
}

// late reports whether the group went on behind the message already.
func (m message) late() bool { return m.order.strict && m.env.Metadata.Sequence <= m.order.last }

// queueLock adds the lock on the key's place to a batch.
func (i *Inbox) queueLock(b *pgx.Batch, m *message) {
	if m.order.strict {
		b.Queue(i.order.lock, i.cfg.Group, m.order.scope, m.Key).QueryRow(func(row pgx.Row) error { return row.Scan(&m.order.last) })
	}
}

// queueAdvance adds what makes m the last finished message of its key.
func (i *Inbox) queueAdvance(b *pgx.Batch, m message) {
	if !m.order.strict {
		return
	}
	args := []any{i.cfg.Group, m.order.scope, m.Key, m.env.Metadata.Sequence}
	b.Queue(i.order.advance, args...)
	b.Queue(i.order.wake, args...)
	b.Queue(i.order.unpark, args...)
}

// hold puts a message with a gap before it aside, or parks one that was held
// for long enough. The transaction of the attempt is given up. It reports true
// when the gap was filled meanwhile: the message starts over.
func (i *Inbox) hold(ctx context.Context, conn *pgxpool.Conn, m message) (filled bool, err error) {
	i.rollback(conn)
	why := fmt.Sprintf("waits for the message with sequence %d of its key", m.order.previous)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var last int64
		if err := tx.QueryRow(ctx, i.order.lock, i.cfg.Group, m.order.scope, m.Key).Scan(&last); err != nil {
			return err
		}
		if filled = !i.gap(m, last); filled {
			return nil
		}
		switch {
		case m.retry == 0:
			args, err := i.waiting(m, 0, why, &i.cfg.GapLimit)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, i.order.hold, append(args, m.order.scope, m.order.previous)...)
			return err
		case m.order.held:
			_, err := tx.Exec(ctx, i.order.park, i.cfg.Group, m.retry, string(outcome.Business), ReasonGap, why)
			return err
		}
		_, err := tx.Exec(ctx, i.order.holdRetry, i.cfg.Group, m.retry, why, i.cfg.GapLimit, m.order.scope, m.order.previous)
		return err
	})
	if err != nil || filled {
		return filled, err
	}
	if m.order.held {
		i.tellDead(m, "parked", ReasonGap, outcome.NewBusiness(ReasonGap, why))
		return false, nil
	}
	i.about(i.cfg.Log.Warn(), m).Int64("waits_for", m.order.previous).Dur("at_most", i.cfg.GapLimit).Msg("inbox: message held, one before it is missing")
	if i.cfg.Hooks.Held != nil {
		i.cfg.Hooks.Held(m.env.MessageType, m.order.previous)
	}
	return false, nil
}

// passOver is the handler of types that only their order scope brings here.
func passOver(context.Context, *outbox.Tx, events.Received) error { return nil }

// ErrNoGap is returned when no message of the key is held or parked because of a gap.
var ErrNoGap = errors.New("no message waits for a missing one")

// AcceptGap lets a group go on with a key although a message is missing: the
// first message that is held or parked behind the gap is applied next, and the
// others follow in order. Should the missing one come after all, it is parked as
// late. Call it in the transaction of the audit row. [ErrNoGap] when nothing waits.
func (d *Desk) AcceptGap(ctx context.Context, tx outbox.Execer, group, businessKey string) error {
	tag, err := tx.Exec(ctx, d.order.accept, group, businessKey)
	if err != nil {
		return fmt.Errorf("inbox: accept gap: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNoGap
	}
	return nil
}
