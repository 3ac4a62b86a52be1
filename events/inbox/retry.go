package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/outcome"
)

// sweep runs messages whose wait is over, until ctx ends. Every member of the
// group sweeps; a row lock gives each message to one of them.
func (i *Inbox) sweep(ctx, work context.Context) {
	tick := time.NewTicker(i.cfg.Sweep)
	defer tick.Stop()
	unstick := time.Time{}
	for {
		more := true
		for more && i.gate.wait(ctx) {
			var err error
			if more, err = i.round(ctx, work); err != nil && ctx.Err() == nil {
				i.cfg.Log.Warn().Err(err).Msg("inbox: sweep of retries")
				more = false
			}
		}
		if time.Since(unstick) > time.Minute {
			unstick = time.Now()
			if _, err := i.db.Exec(ctx, i.sql.unstick, i.cfg.Group); err != nil && ctx.Err() == nil {
				i.cfg.Log.Warn().Err(err).Msg("inbox: sweep of retries")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// round runs what is due now, several keys at a time, and reports whether to look again at once.
func (i *Inbox) round(ctx, work context.Context) (bool, error) {
	rows, err := i.db.Query(ctx, i.sql.due, i.cfg.Group, 4*i.cfg.Concurrency)
	if err != nil {
		return false, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return false, err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	ran := 0
	slots := make(chan struct{}, i.cfg.Concurrency)
	for _, id := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if !i.gate.enter(ctx, 1) {
				return
			}
			defer i.gate.leave(1)
			took, err := i.rerun(work, id)
			mu.Lock()
			defer mu.Unlock()
			if took {
				ran++
			}
			if err != nil && !errors.Is(err, errTwin) {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return ran > 0 && len(errs) == 0, errors.Join(errs...)
}

// rerun makes the next attempt at one waiting message, if it is still due and
// nobody else has it. An error means trouble with the database: no attempt.
func (i *Inbox) rerun(ctx context.Context, id int64) (took bool, err error) {
	conn, err := i.db.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	m, err := i.take(ctx, conn, id)
	if errors.Is(err, pgx.ErrNoRows) {
		i.rollback(conn)
		return false, nil
	}
	if err != nil {
		i.rollback(conn)
		return false, err
	}
	finish := func(b *pgx.Batch) { i.finish(b, m) }
	i.unrest(&m)
	opened, skip, bad := i.open(m.Delivery)
	opened.attempts, opened.retry, opened.first, opened.order.held = m.attempts, m.retry, m.first, m.order.held
	m = opened
	switch {
	case skip: // the handler is gone since: it has no say any more
		b := &pgx.Batch{}
		finish(b)
		_, err := i.commitTx(ctx, conn, b)
		return true, err
	case bad != nil:
		return true, i.endRetry(ctx, conn, m, outcome.Classify(bad))
	}
	i.read(ctx, &m)
	b := &pgx.Batch{}
	b.Queue("SET LOCAL lock_timeout = '5s'")
	b.Queue(i.idle)
	state, err := i.enter(ctx, conn, &m, b, nil)
	if err != nil {
		return false, err
	}
	if state == missing {
		_, err := i.hold(ctx, conn, m)
		return true, err
	}
	oc, err := i.apply(ctx, conn, m, state, finish)
	if err != nil || oc == nil {
		return true, err
	}
	// The attempt is over and rolled back, the row's lock with it. Another member
	// may have taken the row since; every change below depends on what is there.
	return true, i.endRetry(ctx, conn, m, oc)
}

// take opens a transaction and locks the row.
func (i *Inbox) take(ctx context.Context, conn *pgxpool.Conn, id int64) (message, error) {
	m := message{retry: id}
	var headers []string
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(i.sql.take, i.cfg.Group, id).QueryRow(func(row pgx.Row) error {
		return row.Scan(&m.Key, &headers, &m.Body, &m.Position.Topic, &m.Position.Partition, &m.Position.Offset, &m.Time, &m.attempts, &m.first, &m.order.held)
	})
	err := conn.SendBatch(ctx, b).Close()
	m.Topic, m.Headers = m.Position.Topic, paired(headers)
	return m, err
}

// finish removes the waiting row and lets the next message of its key go.
func (i *Inbox) finish(b *pgx.Batch, m message) {
	b.Queue(i.sql.lockKey, i.cfg.Group, clean(m.Key))
	b.Queue(i.sql.done, i.cfg.Group, m.retry)
	b.Queue(i.sql.next, i.cfg.Group, clean(m.Key))
}

// endRetry writes down an attempt that did not succeed.
func (i *Inbox) endRetry(ctx context.Context, conn *pgxpool.Conn, m message, oc *outcome.Error) error {
	i.rollback(conn) // the transaction may still be open
	conn.Release()   // or the connection may be closed, when the handler ran out of time
	conn, err := i.db.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	attempt := m.attempts + 1
	if outage(oc) {
		wait := restFor(m.entry)
		tag, err := conn.Exec(ctx, i.sql.rest, i.cfg.Group, m.retry, m.attempts, cut(oc.Error()), wait)
		if err == nil && tag.RowsAffected() == 1 {
			i.tellRetry(m, attempt, wait, oc)
		}
		return err
	}
	if oc.Class == outcome.Retryable && attempt < m.entry.PoisonedAfter {
		wait := delay(m.entry, attempt, oc.After)
		tag, err := conn.Exec(ctx, i.sql.again, i.cfg.Group, m.retry, attempt, cut(oc.Error()), wait)
		if err == nil && tag.RowsAffected() == 1 {
			i.tellRetry(m, attempt, wait, oc)
		}
		return err
	}
	state, reason, args, err := i.grave(m, oc)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(i.sql.bury, args...)
	i.finish(b, m)
	if failed, err := i.commitTx(ctx, conn, b); err != nil || failed != nil {
		return errors.Join(err, asError(failed))
	}
	i.tellDead(m, state, reason, oc)
	return nil
}

func asError(oc *outcome.Error) error {
	if oc == nil {
		return nil
	}
	return oc
}

// purgeBatch bounds a pass of purge.
const purgeBatch = 5000

// purge deletes old inbox rows, some thousand at a time, one member at a time (spec D4).
func (i *Inbox) purge(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := i.purgeOnce(ctx); err != nil && ctx.Err() == nil {
			i.cfg.Log.Warn().Err(err).Msg("inbox: purge")
		}
	}
}

func (i *Inbox) purgeOnce(ctx context.Context) (n int64, err error) {
	err = pgx.BeginFunc(ctx, i.db, func(tx pgx.Tx) error {
		var leader bool
		if err := tx.QueryRow(ctx, i.sql.purgeLock, i.cfg.Group).Scan(&leader); err != nil || !leader {
			return err
		}
		tag, err := tx.Exec(ctx, i.sql.purge, i.cfg.Group, i.cfg.Keep, purgeBatch)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}
