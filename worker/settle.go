package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// settle writes an effect down, in one transaction with outcome, events and answer. The row stays locked to the fence.
func (r *Runtime) settle(ctx context.Context, t *task, h *hold, doc json.RawMessage) (result, bool) {
	pc, err := r.pool.Acquire(ctx)
	if err != nil {
		return result{kind: retry, err: outcome.Classify(err)}, false
	}
	defer pc.Release()
	conn := pc.Conn()
	clean := context.WithoutCancel(ctx)
	b, e := &pgx.Batch{}, entry{}
	r.begin(b)
	lock := r.store.QueueLock(b, t.meta.OperationID, h.fence, h.op.State)
	e.gate = r.queueGate(b, t)
	r.store.QueueUsed(b, t.meta.Cluster, t.meta.ProcessInstanceKey, &e.used)
	r.enterEnd(b)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		rollback(clean, conn)
		if waited(err) {
			return result{kind: busy, reason: "lock held"}, false
		}
		return result{kind: retry, err: outcome.Classify(err)}, false
	}
	if !lock.Won {
		rollback(clean, conn)
		return result{kind: dropped, reason: "lease lost"}, false
	}
	if t.commitErr != nil { // still to be settled: the commit had failed, and would again
		rollback(clean, conn)
		return result{kind: retry, err: outcome.Classify(t.commitErr)}, false
	}
	var end *outcome.Error
	if e.gate != nil {
		end = outcome.Classify(e.gate())
	}
	tx := outbox.NewTx(conn)
	var out json.RawMessage
	if end == nil {
		hctx, cancel := context.WithTimeout(ctx, r.cfg.HandlerTimeout)
		var err error
		out, err = guarded(r.logOf(t), func() (json.RawMessage, error) { return t.spec.settle(hctx, tx, t.meta, t.input, doc) })
		end = classify(hctx, err)
		cancel()
	}
	if bad := unusable(clean, conn, end); bad != nil {
		pc.Release()
		if bad.Class == outcome.Retryable {
			return result{kind: retry, err: bad, wait: bad.After}, false
		}
		res := r.endUnsettled(ctx, t, h, dedup.EffectKnown, bad)
		return *res, res.kind == again
	}
	w, end := r.judge(t, conn, tx, out, end, e.used)
	w.fence, w.effect, w.result = h.fence, dedup.EffectKnown, doc
	switch {
	case end != nil && end.Class == outcome.Retryable:
		rollback(clean, conn)
		return result{kind: retry, err: end, wait: end.After}, false
	case end != nil && end.Class == outcome.Business && !rule.Off(17):
		rollback(clean, conn)
		pc.Release() // the undo needs connections of its own
		return r.refuse(ctx, t, h, end)
	}
	return r.settleTx(ctx, conn, t, tx, w, end)
}

// refuse deals with a refusal after the effect (path rule 17): it is stored with the effect, the undo runs under its id, and
// only then it is told: an activity that did not complete is never compensated by the engine.
func (r *Runtime) refuse(ctx context.Context, t *task, h *hold, end *outcome.Error) (result, bool) {
	if t.undo != nil || t.spec.opt.undo == nil {
		bad := outcome.Fatalf(outcome.ReasonUndo, "refused with %s after the effect, and there is no compensation for it: %s", end.Code, end.Message)
		res := r.endUnsettled(ctx, t, h, dedup.EffectKnown, bad)
		return *res, res.kind == again
	}
	ok, err := r.store.Refuse(context.WithoutCancel(ctx), r.control, t.meta.OperationID, h.fence, outcomeOf(end), r.cfg.Lease)
	if err != nil {
		return result{kind: retry, err: outcome.Classify(err)}, false
	}
	if !ok {
		return result{kind: dropped, reason: "lease lost"}, false
	}
	h.op.State, h.op.Outcome = dedup.Undoing, outcomeOf(end)
	return r.finishRefusal(ctx, t, h)
}

// finishRefusal undoes the effect of a refused operation and tells the refusal.
func (r *Runtime) finishRefusal(ctx context.Context, t *task, h *hold) (result, bool) {
	op, found, err := r.store.Lookup(ctx, r.control, t.meta.OperationID)
	if err != nil || !found {
		return result{kind: retry, err: outcome.Classify(errors.Join(err, errors.New("operation to undo not found")))}, false
	}
	ut := r.undoTask(t.spec, op, t.meta, false, "refused with "+op.Code)
	res := r.execute(ctx, ut)
	switch {
	case res.kind == answered && res.left.Class == outcome.Success:
		end := &outcome.Error{Class: op.Class, Reason: op.Reason, Code: op.Code, Message: op.Message}
		if op.Variables != nil {
			if err := json.Unmarshal(op.Variables, &end.Variables); err != nil {
				return result{kind: retry, err: outcome.NewFatal(err)}, false
			}
		}
		last := r.endUnsettled(ctx, t, h, dedup.EffectKnown, end)
		return *last, last.kind == again
	case res.kind == answered:
		last := r.endUnsettled(ctx, t, h, dedup.EffectKnown, outcome.Fatalf(outcome.ReasonUndo, "refused with %s after the effect, and its undo ended %s: %s", op.Code, res.left.Class, res.left.Message))
		return *last, last.kind == again
	default:
		r.letGo(t, h, res.wait, op.Reason, op.Message)
		e := outcome.NewUnknown(errors.New("the undo of a refused effect is not done yet"))
		return result{kind: retry, err: e, wait: max(res.wait, r.cfg.UnknownBackoff.Wait(h.op.Attempts))}, false
	}
}

// endUnsettled records an end without Settle.
func (r *Runtime) endUnsettled(ctx context.Context, t *task, h *hold, effect dedup.Effect, end *outcome.Error) *result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.HandlerTimeout)
	defer cancel()
	pc, err := r.pool.Acquire(ctx)
	if err != nil {
		return &result{kind: retry, err: outcome.Classify(err)}
	}
	defer pc.Release()
	conn := pc.Conn()
	b := &pgx.Batch{}
	r.begin(b)
	lock := r.store.QueueLock(b, t.meta.OperationID, h.fence, h.op.State)
	r.enterEnd(b)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		rollback(ctx, conn)
		return &result{kind: retry, err: outcome.Classify(err)}
	}
	if !lock.Won {
		rollback(ctx, conn)
		return &result{kind: dropped, reason: "lease lost"}
	}
	w := write{fence: h.fence, effect: effect, out: outcomeOf(end), result: h.op.CallResult}
	if effect == dedup.EffectNone {
		w.landing = h.landing(t)
	}
	res, unknown := r.settleTx(ctx, conn, t, outbox.NewTx(conn), w, end)
	if unknown {
		return &result{kind: again}
	}
	return &res
}

var errLeaseLost = errors.New("lease lost")

// keepLease renews the lease at a third of its length, on a control connection, and cancels the context it gives when the
// lease is lost or could not be renewed for too long. stop ends it and waits.
func (r *Runtime) keepLease(ctx context.Context, t *task, h *hold) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		every := time.NewTicker(r.cfg.Lease / 3)
		defer every.Stop()
		sure := h.since // the lease holds at least Lease from here
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			crash.Point("worker.lease.renew", t.meta.OperationID)
			at := time.Now()
			rctx, stop := context.WithTimeout(ctx, r.cfg.Lease/4)
			ok, err := r.store.Renew(rctx, r.control, t.meta.OperationID, h.fence, h.owner(t), r.cfg.Lease)
			stop()
			switch {
			case err == nil && ok:
				sure = at
			case err == nil:
				cancel(errLeaseLost)
				return
			}
			if time.Since(sure) > r.cfg.Lease-r.cfg.Lease/4 {
				cancel(errLeaseLost)
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

func (h *hold) owner(t *task) string {
	if h.sweep {
		return h.op.Owner
	}
	return t.owner
}
