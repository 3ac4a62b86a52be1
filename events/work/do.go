package work

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// errFenced: another runner has the item.
var errFenced = errors.New("the item was taken over")

// do brings a claimed item to an end that is in the database. What it cannot
// write down is given back, or found again when the lease ends.
func (r *Runner) do(ctx context.Context, q Queue, c claimed) {
	crash.Point("work.claimed", c.ID)
	start := time.Now()
	oc, err := r.attempt(ctx, q, c)
	switch {
	case errors.Is(err, errFenced):
		r.fenced(c)
	case err != nil:
		r.about(r.cfg.Log.Warn(), c).Err(err).Msg("work: no attempt")
		_ = insist(ctx, q.Lease, func(ctx context.Context) error { // the lease ends by itself otherwise
			_, err := r.db.Exec(ctx, r.sql.release, c.row, c.fence)
			return err
		})
	case oc == nil:
		if r.cfg.Hooks.Done != nil {
			r.cfg.Hooks.Done(q.Name, max(0, start.Sub(c.NotBefore)), time.Since(start))
		}
	default:
		if err := insist(ctx, q.Lease, func(ctx context.Context) error { return r.settle(ctx, q, c, oc) }); err != nil {
			r.about(r.cfg.Log.Warn(), c).Err(err).Msg("work: write down the end of an attempt; it is made again when the lease ends")
		}
	}
}

// insist tries to write something down until it is, or the lease is over anyhow.
// When the drain's time is up it tries once more.
func insist(ctx context.Context, lease time.Duration, write func(ctx context.Context) error) error {
	began := time.Now()
	for tries := 0; ; tries++ {
		err := func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			return write(ctx)
		}()
		rest := min(time.Second, 20*time.Millisecond<<min(tries, 8))
		if err == nil || ctx.Err() != nil || time.Since(began)+rest > lease {
			return err
		}
		t := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// attempt makes one attempt. Neither outcome nor error: it is done. An error says nothing of the task.
func (r *Runner) attempt(ctx context.Context, q Queue, c claimed) (*outcome.Error, error) {
	switch {
	case c.fence-int64(c.attempts) > lostLimit:
		return outcome.Fatalf(ReasonCrashLoop, "%d claims ended neither in an outcome nor in an error", lostLimit), nil
	case c.unread != nil:
		return outcome.NewBusiness(ReasonPayload, c.unread.Error()), nil
	}
	if q.Call != nil {
		result, err := guarded(ctx, q.Timeout, r.cfg.Log, func(ctx context.Context) (any, error) { return q.Call(ctx, c.Task) })
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return outcome.Classify(err), nil
		}
		c.Result = result
		crash.Point("work.called", c.ID)
	}
	conn, err := r.db.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	if err := r.begin(ctx, conn, q, c); err != nil {
		rollback(conn)
		return nil, err
	}
	crash.Point("work.begun", c.ID)
	tx := outbox.NewTx(conn)
	_, err = guarded(ctx, q.Timeout, r.cfg.Log, func(ctx context.Context) (any, error) { return nil, q.Handler(ctx, tx, c.Task) })
	switch {
	case ctx.Err() != nil:
		rollback(conn)
		return nil, ctx.Err()
	case tx.Refused() != nil:
		err = outcome.NewFatal(tx.Refused())
	case conn.Conn().IsClosed() && !errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("connection lost under the handler: %w", err)
	}
	if err != nil {
		rollback(conn)
		return outcome.Classify(err), nil
	}
	b := &pgx.Batch{}
	b.Queue(r.sql.done, c.row)
	if msgs := tx.Messages(); len(msgs) > 0 {
		if err := r.stage(b, c, msgs); err != nil {
			rollback(conn)
			return outcome.Fatalf(ReasonEmit, "%v", err), nil
		}
	}
	oc, err := commit(ctx, conn, b)
	if oc == nil && err == nil {
		crash.Point("work.committed", c.ID)
		if len(tx.Messages()) > 0 {
			r.cfg.Stager.Wake()
		}
	}
	return oc, err
}

// begin opens the transaction and makes sure that the item is still ours; from then on nobody can take it over.
func (r *Runner) begin(ctx context.Context, conn *pgxpool.Conn, q Queue, c claimed) error {
	ours := false
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue("SET LOCAL lock_timeout = '5s'")
	// A process that stands still must not hold its item and key for ever.
	b.Queue(fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", (q.Timeout + idleGrace).Milliseconds()))
	if c.Key != "" {
		b.Queue(r.sql.lockKey, c.Queue, c.Key)
	}
	b.Queue(r.sql.own, c.row, c.fence).Exec(func(tag pgconn.CommandTag) error { ours = tag.RowsAffected() == 1; return nil })
	b.Queue("SET LOCAL lock_timeout TO DEFAULT")
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if !ours {
		return errFenced
	}
	return nil
}

const idleGrace = 5 * time.Second

// guarded calls a function of the user with its deadline and turns a panic into an error.
func guarded(ctx context.Context, timeout time.Duration, log zerolog.Logger, fn func(ctx context.Context) (any, error)) (out any, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			log.Error().Bytes("stack", debug.Stack()).Msg("work: handler panicked")
			err = outcome.Panicked(v)
		}
		if err == nil && ctx.Err() != nil {
			err = ctx.Err()
		} else if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
		}
	}()
	return fn(ctx)
}

func (r *Runner) stage(b *pgx.Batch, c claimed, msgs []events.Message) error {
	if r.cfg.Stager == nil {
		return errors.New("handler emitted messages, but the runner has no stager")
	}
	o := c.Origin
	o.IDSeed = "work/" + c.Queue + "/" + c.ID
	if o.BusinessKey == "" {
		o.BusinessKey = c.Key
	}
	return r.cfg.Stager.Queue(b, o, msgs)
}

// commit ends the transaction and says what is known (path rule 2).
func commit(ctx context.Context, conn *pgxpool.Conn, b *pgx.Batch) (*outcome.Error, error) {
	switch f, err := postgres.Commit(ctx, conn.Conn(), b); {
	case f == postgres.Committed:
		return nil, nil //nolint:nilnil // committed
	case errors.Is(err, postgres.ErrAborted):
		return outcome.NewRetryable(fmt.Errorf("%w: the handler passed over a failed statement", err), 0), nil
	case f == postgres.Unknown:
		return nil, fmt.Errorf("commit: %w", err)
	default:
		rollback(conn)
		return outcome.Classify(err), nil
	}
}

// rollback ends the transaction, also when the process is on its way out.
func rollback(conn *pgxpool.Conn) { postgres.Rollback(context.Background(), conn.Conn()) }

// settle writes down an attempt that failed, if the item is still ours.
func (r *Runner) settle(ctx context.Context, q Queue, c claimed, oc *outcome.Error) error {
	if oc.Class == outcome.Retryable && c.Attempt < q.PoisonedAfter {
		wait := max(q.Retry[min(c.Attempt, len(q.Retry))-1], oc.After)
		wait += rand.N(wait/10 + 1) //nolint:gosec // jitter needs no secrecy
		tag, err := r.db.Exec(ctx, r.sql.again, c.row, c.fence, cut(oc.Error()), wait)
		if err == nil && tag.RowsAffected() == 0 {
			r.fenced(c)
		} else if err == nil {
			r.about(r.cfg.Log.Warn(), c).Err(oc).Int("attempt", c.Attempt).Dur("retry_after", wait).Msg("work: item will be tried again")
			if r.cfg.Hooks.Retrying != nil {
				r.cfg.Hooks.Retrying(q.Name, c.Attempt, wait, oc)
			}
		}
		return err
	}
	state, reason := "dead", oc.Reason
	switch {
	case oc.Class == outcome.Business:
		state, reason = "parked", oc.Code
	case oc.Class == outcome.Retryable:
		reason = ReasonPoisoned
	case reason == "":
		reason = "fatal"
	}
	tag, err := r.db.Exec(ctx, r.sql.bury, c.row, c.fence, state, string(oc.Class), cut(reason), cut(oc.Error()))
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		r.fenced(c)
		return nil
	}
	r.about(r.cfg.Log.Error(), c).Err(oc).Str("reason", reason).Str("state", state).Msg("work: item in quarantine, a person must decide")
	if r.cfg.Hooks.Dead != nil {
		r.cfg.Hooks.Dead(q.Name, c.ID, reason, state == "parked")
	}
	return nil
}

func (r *Runner) fenced(c claimed) {
	r.about(r.cfg.Log.Warn(), c).Msg("work: the item was taken over or cancelled meanwhile; nothing was committed")
	if r.cfg.Hooks.Fenced != nil {
		r.cfg.Hooks.Fenced(c.Queue, c.ID)
	}
}

func (r *Runner) about(e *zerolog.Event, c claimed) *zerolog.Event {
	return e.Str("queue", c.Queue).Str("item", c.ID).Str("key", c.Key).Int64("fence", c.fence).
		Str("operation_id", c.Origin.OperationID).Str("correlation_id", c.Origin.CorrelationID).Str("trace_id", events.TraceID(c.Origin.Traceparent))
}

// cut makes an error text storable, and bounds it.
func cut(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
	if len(text) > 2000 {
		text = strings.ToValidUTF8(text[:2000], "")
	}
	return text
}
