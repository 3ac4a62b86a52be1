package inbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// deliver brings one delivery to an end that is in the database: applied, seen
// before, waiting, buried. It reports false when ctx ended first. Trouble with
// the database is no attempt: it waits and starts over, and the inbox row tells
// whether a commit whose answer was lost had happened.
func (i *Inbox) deliver(ctx, work context.Context, d events.Delivery) bool {
	for tries := 1; ; tries++ {
		err := i.receive(work, d, tries)
		if err == nil {
			i.pause.end(i)
			return true
		}
		if !errors.Is(err, errTwin) {
			i.pause.begin(i, err)
		}
		rest(ctx, tries)
		if ctx.Err() != nil {
			return false
		}
	}
}

// errTwin: another transaction holds the same message and did not end in time.
var errTwin = errors.New("another transaction holds the message")

// errLost: the connection broke under the handler.
var errLost = errors.New("connection lost")

// maxLost is how often a message may lose its connection before that counts as
// the handler's failure: a statement that crashes its backend must not go on for ever.
const maxLost = 10

func (i *Inbox) receive(ctx context.Context, d events.Delivery, tries int) error {
	m, skip, err := i.open(d)
	if skip {
		return nil
	}
	if err != nil {
		return i.bury(ctx, m, outcome.Classify(err))
	}
	i.read(ctx, &m)
	conn, err := i.db.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	state, err := i.begin(ctx, conn, &m)
	if err != nil {
		return err
	}
	switch state {
	case waits:
		return i.follow(ctx, conn, m)
	case missing:
		filled, err := i.hold(ctx, conn, m)
		conn.Release()
		if err != nil || !filled {
			return err
		}
		return i.receive(ctx, d, tries)
	}
	oc, err := i.apply(ctx, conn, m, state, nil)
	if errors.Is(err, errLost) && tries >= maxLost {
		oc, err = outcome.NewRetryable(err, 0), nil
	}
	if err != nil || oc == nil {
		return err
	}
	conn.Release() // settle takes its own: holding one while waiting for another could starve a small pool
	return i.settle(ctx, m, oc)
}

// standing is what the inbox knows of a message when its transaction begins.
type standing int

const (
	fresh    standing = iota // the inbox row is ours, in this transaction
	repeated                 // applied before, same content
	conflict                 // applied before under this id, other content (spec W8)
	waits                    // an older message of its key is waiting for a retry
	missing                  // a message before it in its strict order has not come
	late                     // its strict order went on without it
)

// begin opens the transaction in one round trip and writes the inbox row.
func (i *Inbox) begin(ctx context.Context, conn *pgxpool.Conn, m *message) (standing, error) {
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue("SET LOCAL lock_timeout = '5s'")
	b.Queue(i.idle)
	behind := false
	if m.retry == 0 && m.entry.Class.Ordered() && !m.order.strict {
		b.Queue(i.sql.behind, i.cfg.Group, m.Key).QueryRow(func(row pgx.Row) error { return row.Scan(&behind) })
	}
	return i.enter(ctx, conn, m, b, &behind)
}

// enter adds the inbox row to a batch that began a transaction, and sends it.
func (i *Inbox) enter(ctx context.Context, conn *pgxpool.Conn, m *message, b *pgx.Batch, behind *bool) (standing, error) {
	inserted := false
	i.queueLock(b, m)
	b.Queue(i.sql.insert, i.cfg.Group, m.id, m.print).Exec(func(tag pgconn.CommandTag) error {
		inserted = tag.RowsAffected() == 1
		return nil
	})
	b.Queue("SET LOCAL lock_timeout TO DEFAULT")
	err := conn.SendBatch(ctx, b).Close()
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55P03" {
		i.rollback(conn)
		return 0, errTwin
	}
	if err != nil {
		return 0, err
	}
	crash.Point("inbox.begun", m.env.MessageID)
	switch {
	case behind != nil && *behind:
		return waits, nil
	case i.gap(*m, m.order.last):
		return missing, nil
	case inserted && m.late():
		return late, nil
	case inserted:
		return fresh, nil
	}
	var stored []byte
	if err := conn.QueryRow(ctx, i.sql.print, i.cfg.Group, m.id).Scan(&stored); err != nil {
		return 0, err // also when it was purged just now: start over
	}
	if string(stored) != string(m.print) {
		i.cfg.Log.Error().Str("event_id", m.env.MessageID).Str("business_key", m.Key).Hex("stored", stored).Hex("received", m.print).
			Msg("inbox: same id with other content")
		return conflict, nil
	}
	return repeated, nil
}

// apply runs the handler in the transaction and commits it. A nil outcome with
// a nil error means that the message is done; otherwise nothing was committed.
// finish adds statements before the events and the COMMIT.
func (i *Inbox) apply(ctx context.Context, conn *pgxpool.Conn, m message, state standing, finish func(*pgx.Batch)) (*outcome.Error, error) {
	switch state {
	case repeated:
		i.cfg.Log.Info().Str("event_id", m.env.MessageID).Str("business_key", m.Key).Msg("inbox: duplicate")
		if i.cfg.Hooks.Duplicate != nil {
			i.cfg.Hooks.Duplicate(m.env.MessageType)
		}
		if finish == nil && (!m.order.strict || m.late()) {
			i.rollback(conn)
			return nil, nil //nolint:nilnil // done without outcome
		}
	case conflict:
		i.rollback(conn)
		return outcome.Fatalf(outcome.ReasonConflict, "same id as a message applied before, but other content"), nil
	}
	if state == late {
		i.rollback(conn)
		return outcome.NewBusiness(ReasonLate, fmt.Sprintf("its key went on to sequence %d without it", m.order.last)), nil
	}
	start := time.Now()
	tx := outbox.NewTx(conn)
	if state == fresh {
		if oc, err := i.handle(ctx, conn, tx, m); oc != nil || err != nil {
			i.rollback(conn)
			if oc != nil {
				i.tell(m, oc.Class, start)
			}
			return oc, err
		}
	}
	b := &pgx.Batch{}
	i.queueAdvance(b, m)
	if finish != nil {
		finish(b)
	}
	if msgs := tx.Messages(); len(msgs) > 0 {
		if err := i.stage(b, m, msgs); err != nil {
			i.rollback(conn)
			return outcome.Fatalf(ReasonEmit, "%v", err), nil
		}
	}
	oc, err := i.commitTx(ctx, conn, b)
	if oc == nil && err == nil {
		crash.Point("inbox.committed", m.env.MessageID)
		if len(tx.Messages()) > 0 {
			i.cfg.Stager.Wake()
		}
		i.tell(m, outcome.Success, start)
	}
	return oc, err
}

func (i *Inbox) stage(b *pgx.Batch, m message, msgs []events.Message) error {
	if i.cfg.Stager == nil {
		return errors.New("handler emitted messages, but the inbox has no stager")
	}
	return i.cfg.Stager.Queue(b, i.origin(m), msgs)
}

// commitTx ends the transaction and says what is known (path rule 2): committed
// only when COMMIT answered COMMIT, not committed only when the server refused a
// statement; all else is an error, and the inbox row will tell.
func (i *Inbox) commitTx(ctx context.Context, conn *pgxpool.Conn, b *pgx.Batch) (*outcome.Error, error) {
	switch f, err := postgres.Commit(ctx, conn.Conn(), b); {
	case f == postgres.Committed:
		return nil, nil //nolint:nilnil // committed
	case errors.Is(err, postgres.ErrAborted):
		return outcome.NewRetryable(fmt.Errorf("%w: the handler passed over a failed statement", err), 0), nil
	case f == postgres.Unknown:
		return nil, fmt.Errorf("commit: %w", err)
	default:
		i.rollback(conn)
		return outcome.Classify(err), nil
	}
}

// handle runs the handler with its deadline and turns all its ways to end into an outcome.
func (i *Inbox) handle(ctx context.Context, conn *pgxpool.Conn, tx *outbox.Tx, m message) (*outcome.Error, error) {
	if m.unread != nil {
		return outcome.Classify(m.unread), nil
	}
	if m.replay.refused {
		return outcome.Fatalf(ReasonReplay, "the handler of %s does not take replays", m.env.MessageType), nil
	}
	hctx, cancel := context.WithTimeout(ctx, i.cfg.HandlerTimeout)
	defer cancel()
	err := func() (err error) {
		defer func() {
			if v := recover(); v != nil {
				i.cfg.Log.Error().Str("event_id", m.env.MessageID).Bytes("stack", debug.Stack()).Msg("inbox: handler panicked")
				err = outcome.Panicked(v)
			}
		}()
		return m.route.Handler(hctx, tx, m.received())
	}()
	if ctx.Err() != nil {
		return nil, ctx.Err() // the drain's time is up: no attempt
	}
	if refused := tx.Refused(); refused != nil {
		return outcome.NewFatal(refused), nil
	}
	if conn.Conn().IsClosed() && hctx.Err() == nil {
		return nil, fmt.Errorf("%w under the handler: %w", errLost, err)
	}
	if err == nil && hctx.Err() != nil {
		err = hctx.Err() // pgx closed the connection, or the time is up: either way not committed
	}
	if err == nil && m.replay.again && m.route.Replay == ReplayQuiet {
		tx.Truncate(0)
	}
	return outcome.Classify(err), nil
}

// received is the message as its handler gets it.
func (m message) received() events.Received {
	return events.Received{Envelope: m.env, Position: m.Position, Attempt: m.attempts + 1, Replay: m.env.Metadata.Replay || m.replay.ID != "", ReplayID: m.replay.ID}
}

func (i *Inbox) tell(m message, class outcome.Class, start time.Time) {
	if i.cfg.Hooks.Handled != nil {
		i.cfg.Hooks.Handled(m.env.MessageType, class, time.Since(start))
	}
}

// rollback ends the transaction, also when the process is on its way out.
func (i *Inbox) rollback(conn *pgxpool.Conn) { postgres.Rollback(context.Background(), conn.Conn()) }
