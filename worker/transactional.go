package worker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// runTx executes a transactional operation. As long as the fate of a commit is unknown it claims again, which waits for the
// truth (path rule 2); it never reports a failure then.
func (r *Runtime) runTx(ctx context.Context, t *task) result {
	return r.untilKnown(ctx, t, func() (result, bool) { return r.tryTx(ctx, t) })
}

// mostUnknown bounds how often one run claims again after commits of unknown fate.
const mostUnknown = 6

func (r *Runtime) untilKnown(ctx context.Context, t *task, try func() (result, bool)) result {
	for n := 1; ; n++ {
		res, again := try()
		if !again {
			return res
		}
		r.taskLog(t).Warn().Int("try", n).Msg("fate of a commit unknown, claiming again")
		if n == mostUnknown || !r.reachable(ctx) {
			return result{kind: dropped, reason: "unknown commit"}
		}
	}
}

// reachable waits until the database gives a connection, or ctx ends.
func (r *Runtime) reachable(ctx context.Context) bool {
	for n := 1; ctx.Err() == nil; n++ {
		conn, err := r.pool.Acquire(ctx)
		if err == nil {
			conn.Release()
			return true
		}
		if pause(ctx, r.cfg.PollBackoff.Wait(n)) != nil {
			break
		}
	}
	return false
}

// tryTx is one transaction. unknown = its fate is.
func (r *Runtime) tryTx(ctx context.Context, t *task) (res result, unknown bool) {
	return r.enterTx(ctx, t, false)
}

// enterTx is tryTx. twin = one was seen and is waited for.
func (r *Runtime) enterTx(ctx context.Context, t *task, twin bool) (res result, unknown bool) {
	pc, err := r.pool.Acquire(ctx)
	if err != nil {
		return notStarted(err), false
	}
	defer pc.Release()
	conn := pc.Conn()
	clean := context.WithoutCancel(ctx)
	b, e := &pgx.Batch{}, entry{}
	b.Queue("BEGIN")
	free := true
	waits := twin || t.inSaga() || rule.Off(8) // for a twin, or at the saga's gate: as long as that is bounded
	if waits {
		r.store.QueueEnter(b, t.meta.OperationID, r.lockWait, t.meta.Cluster, t.meta.ProcessInstanceKey, &e.used)
	} else {
		r.store.QueueEnterFree(b, t.meta.OperationID, t.meta.Cluster, t.meta.ProcessInstanceKey, &free, &e.used)
	}
	e.gate = r.queueGate(b, t)
	r.store.QueueEntered(b, t.meta.OperationID, &e.op, &e.found)
	if waits {
		r.enterEnd(b)
	} else {
		b.Queue("SAVEPOINT " + savepoint)
	}
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		rollback(clean, conn)
		if waited(err) {
			return result{kind: busy, reason: "claim held"}, false
		}
		return notStarted(err), false
	}
	if !free {
		rollback(clean, conn)
		pc.Release()
		return r.enterTx(ctx, t, true)
	}
	fence := int64(0)
	t.entered = !e.found
	if e.found && !rule.Off(1) {
		var done bool
		if res, fence, done = r.seenTx(ctx, conn, t, &e); done {
			return res, res.kind == again
		}
	} else {
		if t.commitErr != nil { // the claim was free: the commit had failed, and would again
			rollback(clean, conn)
			return result{kind: retry, err: outcome.Classify(t.commitErr)}, false
		}
		fence = e.op.Fence // without rule 1 the row of another
	}
	crash.Point("worker.claimed", t.meta.OperationID)
	return r.handleTx(ctx, conn, t, e, fence)
}

// seenTx deals with an operation that was claimed before; done = nothing more to run.
func (r *Runtime) seenTx(ctx context.Context, conn *pgx.Conn, t *task, e *entry) (res result, fence int64, done bool) {
	clean, op := context.WithoutCancel(ctx), e.op
	end, err := r.known(t, op)
	if err != nil {
		rollback(clean, conn)
		return result{kind: retry, err: outcome.Classify(err)}, 0, true
	}
	switch {
	case end != nil:
		rollback(clean, conn)
		return r.answerOnly(ctx, t, *end), 0, true
	case op.State != dedup.Done:
		rollback(clean, conn)
		return r.answerOnly(ctx, t, *fatal("shape", "operation %s is under way as an external one; this worker's handler for %q is transactional", t.meta.OperationID, t.meta.Type)), 0, true
	case !r.resolved(ctx, t, op):
		return r.replay(ctx, conn, t, op, false), 0, true
	case !op.UndoneAt.IsZero():
		return r.replay(ctx, conn, t, op, true), 0, true
	}
	f, err := r.rerun(ctx, conn, t, op, "", false, &e.used)
	if err != nil {
		rollback(clean, conn)
		return notStarted(err), 0, true
	}
	if !f.Won {
		rollback(clean, conn)
		return result{kind: busy, reason: "another run after the retry"}, 0, true
	}
	return result{}, f.Fence, false
}

// rerun opens a recorded refusal or failure again after an operator's retry, in the open transaction.
func (r *Runtime) rerun(ctx context.Context, conn *pgx.Conn, t *task, op dedup.Operation, owner string, call bool, used *int64) (*dedup.Fenced, error) {
	meta, err := json.Marshal(t.meta)
	if err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	b.Queue("ROLLBACK TO SAVEPOINT " + savepoint)
	f := r.store.QueueRerun(b, dedup.Take{OperationID: op.OperationID, Fence: op.Fence, JobContext: t.jobContext(), Owner: owner, Lease: r.cfg.Lease, Meta: meta, Call: call})
	r.store.QueueDropAttempts(b, t.meta.Cluster, t.meta.Key)
	if used != nil {
		r.store.QueueUsed(b, t.meta.Cluster, t.meta.ProcessInstanceKey, used)
	}
	b.Queue("SAVEPOINT " + savepoint)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	if f.Won {
		t.retries = op.OperatorRetries + 1
		r.taskLog(t).Info().Str("audit", "operator retry").Str("class_before", string(op.Class)).Str("reason_before", op.Reason).Int("operator_retries", op.OperatorRetries+1).
			Msg("operation runs afresh after an operator's retry")
	}
	return f, nil
}

// handleTx runs the handler and writes what came of it.
func (r *Runtime) handleTx(ctx context.Context, conn *pgx.Conn, t *task, e entry, fence int64) (result, bool) {
	clean := context.WithoutCancel(ctx)
	tx := outbox.NewTx(conn)
	var doc json.RawMessage
	var end *outcome.Error
	var attached []events.Message
	if e.gate != nil {
		if end = outcome.Classify(e.gate()); end != nil && end.Code == CodeSagaNotMine {
			rollback(clean, conn) // not recorded: the instance that owns the saga runs this operation
			return r.answerOnly(ctx, t, outcomeOf(end)), false
		}
	}
	if end == nil {
		hctx, cancel := context.WithTimeout(ctx, r.limitOf(t))
		var err error
		began := time.Now()
		doc, err = guarded(r.logOf(t), func() (json.RawMessage, error) { return t.spec.run(hctx, tx, t.meta, t.input) })
		end = classify(hctx, err)
		cancel()
		if p := r.paces[t.meta.Type]; p != nil {
			p.record(time.Since(began))
		}
		attached = eventsOf(err)
	}
	if bad := unusable(clean, conn, end); bad != nil {
		if bad.Class == outcome.Retryable {
			return result{kind: retry, err: bad, wait: bad.After}, false
		}
		return r.answerOnly(ctx, t, outcomeOf(bad)), false
	}
	w, end := r.judge(t, conn, tx, doc, end, e.used)
	if end != nil && end.Class == outcome.Retryable {
		rollback(clean, conn)
		return result{kind: retry, err: end, wait: end.After}, false
	}
	w.fence = fence
	w.effect = dedup.EffectNone
	w.attached = attached
	return r.settleTx(ctx, conn, t, tx, w, end)
}

// settleTx settles the savepoint and sends the second round trip.
func (r *Runtime) settleTx(ctx context.Context, conn *pgx.Conn, t *task, tx *outbox.Tx, w write, end *outcome.Error) (result, bool) {
	clean := context.WithoutCancel(ctx)
	keep := end == nil || end.Keep || (rule.Off(3) && end.Class == outcome.Business)
	if !keep {
		tx.Truncate(0)
		if conn.PgConn().TxStatus() == 'E' { // no statement can be prepared in a failed transaction
			if _, err := conn.Exec(clean, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
				rollback(clean, conn)
				return result{kind: retry, err: outcome.Classify(err)}, false
			}
		}
	}
	b := &pgx.Batch{}
	if !keep {
		b.Queue("ROLLBACK TO SAVEPOINT " + savepoint)
	}
	b.Queue("RELEASE SAVEPOINT " + savepoint)
	w.msgs = tx.Messages()
	if end != nil && end.Class == outcome.Business {
		w.msgs = append(w.msgs[:len(w.msgs):len(w.msgs)], w.attached...)
	}
	q, err := r.queueWrite(b, t, w)
	if err != nil {
		// The refusal of an event, decided before the commit: record it instead of the outcome.
		bad := outcome.Classify(err)
		if end != nil && end.Class == outcome.Fatal {
			rollback(clean, conn)
			return result{kind: retry, err: bad}, false
		}
		w.out, w.result = outcomeOf(bad), nil
		return r.settleTx(ctx, conn, t, tx, w, bad)
	}
	f, err := commit(ctx, conn, b, t.meta.OperationID)
	switch f {
	case committed:
		if r.cfg.Stager != nil {
			r.cfg.Stager.Wake()
		}
		r.logEnd(t, w.out)
		return result{kind: answered, queued: q, left: w.out, err: o2err(w.out), unsent: r.tell(ctx, t, q)}, false
	case notCommitted:
		rollback(clean, conn)
		if t.entered && dedup.ClaimedElsewhere(err) {
			return result{kind: busy, reason: "claimed elsewhere"}, false
		}
		return result{kind: retry, err: outcome.Classify(err)}, false
	default:
		if postgres.IsRefusal(err) {
			t.commitErr = err
		}
		_ = conn.Close(clean)
		return result{kind: again}, true
	}
}

func (r *Runtime) logEnd(t *task, o dedup.Outcome) {
	if o.Class == outcome.Success && r.log.GetLevel() > zerolog.DebugLevel {
		return
	}
	l := r.taskLog(t)
	ev := l.Debug()
	switch o.Class {
	case outcome.Business:
		ev = l.Info()
	case outcome.Fatal:
		ev = l.Error()
	}
	ev.Str("class", string(o.Class)).Str("reason", o.Reason).Str("code", o.Code).Msg("operation ended")
}
