package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// TrialBatch runs the jobs of trials, all of one [Batch] handler, in one call on conn, which must be in a transaction, and gives
// one end for each, in order. What the call itself fails with rolls all back, and each job is run by itself, as a worker does.
func TrialBatch(ctx context.Context, conn *pgx.Conn, trials ...*Trial) ([]TrialEnd, error) {
	if len(trials) == 0 {
		return nil, errors.New("no jobs; want one or more")
	}
	first, tasks := trials[0], make([]*task, len(trials))
	for i, t := range trials {
		if t.task.spec.batch == nil || t.task.meta.Type != first.task.meta.Type {
			return nil, errors.New("the jobs are not all of one Batch handler")
		}
		tasks[i] = t.task
	}
	if conn.PgConn().TxStatus() != 'T' {
		return nil, errors.New("the connection is in no usable transaction; want one that was begun")
	}
	if _, err := conn.Exec(ctx, "SAVEPOINT "+savepoint); err != nil {
		return nil, err
	}
	tx := outbox.NewTx(conn)
	hctx, cancel := context.WithTimeout(ctx, first.rt.cfg.HandlerTimeout)
	defer cancel()
	ends, err := first.callBatch(hctx, tx, tasks)
	if err == nil {
		err = tx.Refused()
	}
	if err != nil || conn.PgConn().TxStatus() != 'T' {
		return singly(ctx, conn, trials)
	}
	out := make([]TrialEnd, len(trials))
	for i, t := range trials {
		own := outbox.NewTx(conn)
		if ends[i].err == nil {
			own.Emit(ends[i].events...)
		}
		w, end := t.rt.judge(t.task, conn, own, ends[i].doc, classify(hctx, ends[i].err), 0)
		out[i] = TrialEnd{Outcome: end, Output: w.out.Variables, Result: w.result}
		if end == nil {
			out[i].Messages = own.Messages()
		} else if end.Class == outcome.Business {
			out[i].Messages = eventsOf(ends[i].err)
		}
	}
	_, err = conn.Exec(ctx, "RELEASE SAVEPOINT "+savepoint)
	return out, err
}

// callBatch calls the handler. A panic is an error here: the job that causes it shows it when each runs by itself.
func (t *Trial) callBatch(ctx context.Context, tx *Tx, tasks []*task) (ends []batchEnd, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return t.task.spec.batch(ctx, tx, tasks)
}

// singly takes a batch back and runs each of its jobs by itself.
func singly(ctx context.Context, conn *pgx.Conn, trials []*Trial) ([]TrialEnd, error) {
	if _, err := conn.Exec(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "RELEASE SAVEPOINT "+savepoint); err != nil {
		return nil, err
	}
	out := make([]TrialEnd, len(trials))
	for i, t := range trials {
		var err error
		if out[i], err = t.Handle(ctx, conn); err != nil {
			return nil, err
		}
	}
	return out, nil
}
