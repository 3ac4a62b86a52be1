package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// hold is an external operation that this run holds under a lease.
type hold struct {
	op    dedup.Operation
	fence int64
	fresh bool      // nobody has called yet, or certainly to no effect
	lost  bool      // although fresh: of an earlier call the other system only said that it had not seen it
	since time.Time // monotonic, of op.ReadAt
	sweep bool      // found by the sweep: a forward call is never made from there
}

// age is how long the operation has been known, by the database's clock.
func (h *hold) age() time.Duration { return h.op.ReadAt.Sub(h.op.CreatedAt) + time.Since(h.since) }

// runExternal executes an external operation: claim with lease, call, result stored, settle (path rules 16 to 20).
func (r *Runtime) runExternal(ctx context.Context, t *task) result {
	return r.untilKnown(ctx, t, func() (result, bool) {
		h, res := r.enterExternal(ctx, t)
		if h == nil {
			return res, res.kind == again
		}
		return r.drive(ctx, t, h)
	})
}

// enterExternal claims the operation, or takes it over, and commits that before anything is sent. A nil hold means that the
// result stands.
func (r *Runtime) enterExternal(ctx context.Context, t *task) (*hold, result) {
	pc, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, notStarted(err)
	}
	defer pc.Release()
	conn := pc.Conn()
	clean := context.WithoutCancel(ctx)
	c, err := t.claim(dedup.Calling, r)
	if err != nil {
		return nil, result{kind: retry, err: outcome.NewFatal(err)}
	}
	b, e := &pgx.Batch{}, entry{}
	r.begin(b)
	e.claim = r.store.QueueClaim(b, c)
	e.gate = r.queueGate(b, t)
	r.store.QueueRead(b, t.meta.OperationID, &e.op, &e.found)
	r.store.QueueUsed(b, t.meta.Cluster, t.meta.ProcessInstanceKey, &e.used)
	r.enterEnd(b)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		rollback(clean, conn)
		if waited(err) {
			return nil, result{kind: busy, reason: "claim held"}
		}
		return nil, notStarted(err)
	}
	if !e.found {
		rollback(clean, conn)
		return nil, result{kind: busy, reason: "row gone"}
	}
	h := &hold{op: e.op, fence: e.op.Fence, fresh: e.claim.Won, since: time.Now()}
	if !e.claim.Won {
		res, done := r.seenExternal(ctx, conn, t, h)
		if done {
			return nil, res
		}
	}
	if e.gate != nil && h.fresh {
		if end := outcome.Classify(e.gate()); end != nil {
			return nil, r.refuseEntry(ctx, conn, t, h, end)
		}
	}
	f, err := commitQuietly(ctx, conn, &pgx.Batch{})
	switch f {
	case committed:
		crash.Point("worker.claimed", t.meta.OperationID)
		return h, result{}
	case notCommitted:
		rollback(clean, conn)
		return nil, result{kind: retry, err: outcome.Classify(err)}
	default:
		_ = conn.Close(clean)
		return nil, result{kind: again}
	}
}

// refuseEntry records what the saga's gate said, in the claim's own transaction.
func (r *Runtime) refuseEntry(ctx context.Context, conn *pgx.Conn, t *task, h *hold, end *outcome.Error) result {
	if notMine(end) {
		rollback(context.WithoutCancel(ctx), conn)
		return r.answerOnly(ctx, t, outcomeOf(end))
	}
	if end.Class == outcome.Retryable {
		rollback(context.WithoutCancel(ctx), conn)
		return result{kind: retry, err: end, wait: end.After}
	}
	if end.Code == CodeSagaNotMine {
		rollback(context.WithoutCancel(ctx), conn) // not recorded: the instance that owns the saga runs this operation
		return r.answerOnly(ctx, t, outcomeOf(end))
	}
	res, unknown := r.settleTx(ctx, conn, t, outbox.NewTx(conn), write{fence: h.fence, effect: dedup.EffectNone, out: outcomeOf(end), landing: h.landing(t)}, end)
	if unknown {
		return result{kind: again}
	}
	return res
}

// seenExternal deals with an operation that was claimed before, in the open transaction; done = the result stands.
func (r *Runtime) seenExternal(ctx context.Context, conn *pgx.Conn, t *task, h *hold) (res result, done bool) {
	clean := context.WithoutCancel(ctx)
	op := h.op
	end, err := r.known(t, op)
	if err != nil {
		rollback(clean, conn)
		return result{kind: retry, err: outcome.Classify(err)}, true
	}
	if end != nil {
		rollback(clean, conn)
		return r.answerOnly(ctx, t, *end), true
	}
	var f *dedup.Fenced
	t.retries = op.OperatorRetries
	resolved := r.resolved(ctx, t, op)
	h.lost = !op.AskFrom.IsZero()
	switch {
	case op.State == dedup.Done && resolved && op.UndoneAt.IsZero():
		h.fresh = op.Effect == dedup.EffectNone
		f, err = r.rerun(ctx, conn, t, op, t.owner, true, nil)
	case op.State == dedup.Done:
		return r.replay(ctx, conn, t, op, resolved), true
	case op.Owner == t.owner:
		// Our own claim, whose commit had an unknown fate: the lease is ours.
		return result{}, false
	case op.Leased:
		rollback(clean, conn)
		return result{kind: busy, reason: "leased"}, true
	default:
		h.fresh = op.State == dedup.Claimed
		meta, merr := json.Marshal(t.meta)
		if merr != nil {
			meta = nil
		}
		b := &pgx.Batch{}
		f = r.store.QueueTake(b, dedup.Take{OperationID: op.OperationID, Fence: op.Fence, JobContext: t.jobContext(), Owner: t.owner, Lease: r.cfg.Lease, Meta: meta, Call: h.fresh})
		err = conn.SendBatch(ctx, b).Close()
	}
	if err != nil {
		rollback(clean, conn)
		return result{kind: retry, err: outcome.Classify(err)}, true
	}
	if !f.Won {
		rollback(clean, conn)
		return result{kind: busy, reason: "taken"}, true
	}
	h.fence = f.Fence
	if op.State == dedup.Done || op.State == dedup.Claimed {
		h.op.State = dedup.Calling
		if op.Effect == dedup.EffectKnown {
			h.op.State = dedup.Called
		}
	}
	return result{}, false
}

// drive carries a held operation to its end.
func (r *Runtime) drive(ctx context.Context, t *task, h *hold) (result, bool) {
	lease, stop := r.keepLease(ctx, t, h)
	defer stop()
	tell, told := r.keepProgress(lease, t, h)
	defer told()
	t.progress = tell
	if h.op.State == dedup.Undoing {
		return r.finishRefusal(lease, t, h)
	}
	doc := h.op.CallResult
	if h.op.State == dedup.Calling {
		var res *result
		if doc, res = r.obtain(lease, t, h); res != nil {
			if res.kind == again {
				return *res, true
			}
			return *res, false
		}
	}
	res, unknown := r.settle(lease, t, h, doc)
	if !unknown && (res.kind == retry || res.kind == busy) {
		r.letGo(t, h, res.wait, "", "")
	}
	return res, unknown
}

// obtain gets the call's result: by asking the other system where a call may have been made, else by the call.
func (r *Runtime) obtain(ctx context.Context, t *task, h *hold) (json.RawMessage, *result) {
	if (!h.fresh || h.lost) && t.spec.resolve != nil && !rule.Off(19) {
		doc, err := r.resolve(ctx, t)
		switch {
		case err == nil:
			return r.keepResult(ctx, t, h, doc)
		case !errors.Is(err, ErrNotHappened):
			return nil, r.unknown(ctx, t, h, outcome.NewUnknown(err))
		case h.sweep && t.undo == nil:
			// The job makes the call again, if there still is one.
			_, serr := r.store.NotHappened(context.WithoutCancel(ctx), r.control, t.meta.OperationID, h.fence, "", "the other system says that it did not happen", firstAsk())
			return nil, &result{kind: dropped, reason: "not happened", err: outcome.Classify(serr)}
		}
	} else if !h.fresh && h.sweep && t.undo == nil {
		return nil, r.unknown(ctx, t, h, outcome.NewUnknown(errors.New("the other system cannot be asked")))
	}
	if res := r.keyExpired(ctx, t, h); res != nil {
		return nil, res
	}
	doc, err := r.callOnce(ctx, t, h)
	if err == nil {
		return r.keepResult(ctx, t, h, doc)
	}
	return nil, r.callFailed(ctx, t, h, err)
}

// resolve asks the other system.
func (r *Runtime) resolve(ctx context.Context, t *task) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CallTimeout)
	defer cancel()
	return guarded(r.logOf(t), func() (json.RawMessage, error) {
		return t.spec.resolve(ctx, remoteCall{meta: t.meta, input: t.input, again: true, undo: r.undoBy(t), progress: t.progress})
	})
}

// undoBy gives a handler's call its Undo.
func (r *Runtime) undoBy(t *task) func(ctx context.Context, forwardOperationID, reason string) (UndoResult, error) {
	return func(ctx context.Context, forwardOperationID, reason string) (UndoResult, error) {
		return r.undoFor(ctx, t.retries, forwardOperationID, reason)
	}
}

// callOnce makes the call. Its context ends before the lease (path rule 20).
func (r *Runtime) callOnce(ctx context.Context, t *task, h *hold) (json.RawMessage, error) {
	crash.Point("worker.call.before", t.meta.OperationID)
	ctx, cancel := context.WithTimeout(ctx, r.cfg.CallTimeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, outcome.NewUnknown(fmt.Errorf("not called, the lease is over: %w", err))
	}
	doc, err := guarded(r.logOf(t), func() (json.RawMessage, error) {
		return t.spec.call(ctx, remoteCall{meta: t.meta, input: t.input, again: !h.fresh || h.lost, undo: r.undoBy(t), progress: t.progress})
	})
	crash.Point("worker.call.after", t.meta.OperationID)
	return doc, err
}

// keyExpired ends an operation whose call may not be repeated any more (path rule 18); nil = the call may be made.
func (r *Runtime) keyExpired(ctx context.Context, t *task, h *hold) *result {
	if rule.Off(18) || h.op.CalledAt.IsZero() || t.spec.opt.keyIgnored || t.spec.opt.keyFor == 0 {
		return nil
	}
	if age := h.op.ReadAt.Sub(h.op.CalledAt) + time.Since(h.since); age > t.spec.opt.keyFor && !(h.fresh && h.op.Attempts <= 1) {
		end := outcome.Fatalf(outcome.ReasonKeyExpired, "first called %s ago, the other system honours its key for %s: the call is not repeated", age.Round(time.Second), t.spec.opt.keyFor)
		effect := dedup.EffectNone
		if !h.fresh && t.spec.resolve == nil {
			effect = dedup.EffectMaybe
		}
		return r.endUnsettled(ctx, t, h, effect, end)
	}
	return nil
}

// callFailed reads a call's error: a refusal or a failure that certainly did nothing, or an unknown result (spec Z3). An
// ordinary error is unknown: nobody said that nothing happened.
func (r *Runtime) callFailed(ctx context.Context, t *task, h *hold, err error) *result {
	var said *outcome.Error
	switch {
	case !errors.As(err, &said):
		return r.unknown(ctx, t, h, outcome.NewUnknown(err))
	case said.Class == outcome.Retryable && said.Reason == outcome.ReasonUnknown:
		return r.unknown(ctx, t, h, said)
	case said.Class == outcome.Retryable:
		ok, serr := r.store.NotHappened(context.WithoutCancel(ctx), r.control, t.meta.OperationID, h.fence, said.Reason, clip(said.Message), h.landing(t))
		if serr != nil || !ok {
			return &result{kind: dropped, reason: "lease lost", err: outcome.Classify(serr)}
		}
		return &result{kind: retry, err: said, wait: said.After}
	case said.Class == outcome.Fatal && said.Reason == outcome.ReasonPanic:
		return r.endUnsettled(ctx, t, h, dedup.EffectMaybe, said)
	default:
		if bad := r.checkBusiness(t, said, 0); said.Class == outcome.Business && bad != nil {
			said = bad
		}
		return r.endUnsettled(ctx, t, h, dedup.EffectNone, said)
	}
}

// unknown keeps the engine's retries and lets the lease go: the next attempt asks first. Past the SLA it is BUSINESS (path rule 19).
func (r *Runtime) unknown(ctx context.Context, t *task, h *hold, e *outcome.Error) *result {
	sla := t.spec.opt.sla
	if sla == 0 {
		sla = slaDefault
	}
	if rule.Off(19) {
		r.letGo(t, h, 0, "", clip(e.Message))
		c := *e
		c.Reason = outcome.ReasonError
		return &result{kind: retry, err: &c}
	}
	if h.age() > sla {
		if t.undo != nil {
			return r.endUnsettled(ctx, t, h, dedup.EffectMaybe, outcome.Fatalf(outcome.ReasonUndo, "the result of the undo is unknown past its SLA of %s: %s", sla, e.Message))
		}
		end := outcome.NewBusiness(CodeOutcomeUnknown, fmt.Sprintf("the result is unknown past the SLA of %s: %s", sla, e.Message))
		end.Reason = outcome.ReasonUnknown
		return r.endUnsettled(ctx, t, h, dedup.EffectMaybe, end)
	}
	bo := r.cfg.UnknownBackoff
	if t.spec.opt.backoff != nil {
		bo = *t.spec.opt.backoff
	}
	if e.Backoff != nil {
		bo = *e.Backoff
	}
	wait := max(bo.Wait(h.op.Attempts), e.After)
	r.letGo(t, h, wait, outcome.ReasonUnknown, clip(e.Message))
	r.taskLog(t).Warn().Str("reason", outcome.ReasonUnknown).Dur("wait", wait).Msg("result of an external call unknown")
	return &result{kind: retry, err: e, wait: wait}
}

// slaDefault bounds unknown results where the handler declares no SLA.
const slaDefault = 15 * time.Minute

// sweepLater is how long a released lease is left to the job before the sweep takes it.
const sweepLater = 15 * time.Second

// letGo releases the lease: at once for the job, later for the sweep.
func (r *Runtime) letGo(t *task, h *hold, wait time.Duration, reason, message string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := r.store.Release(ctx, r.control, t.meta.OperationID, h.fence, wait+sweepLater, reason, message); err != nil {
		r.taskLog(t).Warn().Err(err).Msg("lease not released; it runs out by itself")
	}
}

// keepResult stores the result before anything is done with it (path rule 18). A nil result means: go on to settle.
func (r *Runtime) keepResult(ctx context.Context, t *task, h *hold, doc json.RawMessage) (json.RawMessage, *result) {
	if rule.Off(18) {
		return doc, nil
	}
	// The lease may have been lost meanwhile; what the other system did must be written down all the same.
	wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease)
	defer cancel()
	for n := 1; ; n++ {
		ok, err := r.store.StoreResult(wctx, r.control, t.meta.OperationID, h.fence, doc, r.cfg.Lease)
		switch {
		case err == nil && ok:
			h.op.State = dedup.Called
			crash.Point("worker.call.stored", t.meta.OperationID)
			return doc, nil
		case err == nil:
			return nil, r.landedLate(wctx, t, doc)
		}
		r.taskLog(t).Warn().Err(err).Msg("result of an external call not stored yet")
		if pause(wctx, r.cfg.PollBackoff.Wait(n)) != nil {
			return nil, &result{kind: dropped, reason: "result not stored: the next attempt asks the other system"}
		}
	}
}

// landedLate deals with a call that came back after its lease was lost. When its undo came meanwhile there is something to
// undo that the undo may not have seen (path rule 11).
func (r *Runtime) landedLate(ctx context.Context, t *task, doc json.RawMessage) *result {
	late, err := r.store.StoreLate(ctx, r.control, t.meta.OperationID, doc, lateGrace)
	switch {
	case err != nil:
		return &result{kind: dropped, reason: "lease lost", err: outcome.Classify(err)}
	case late == dedup.LateDropped:
		if log := r.taskLog(t); t.spec.opt.keyIgnored {
			log.Error().Msg("external call landed after another had settled its operation: a second effect may stand at the other system, which ignores keys")
		} else {
			log.Info().Msg("external call landed after its operation was settled: by its key that is one effect")
		}
		return &result{kind: dropped, reason: "lease lost"}
	case late == dedup.LateResumed:
		r.taskLog(t).Warn().Msg("external call landed after its lease was lost, the operation goes on from its result")
		return &result{kind: dropped, reason: "lease lost, result kept"}
	case late == dedup.LateRefused:
		r.undoLanded(ctx, t, "external call landed after a repeat of it was refused, undoing it now")
		return &result{kind: dropped, reason: "lease lost, the operation ended refused"}
	}
	r.undoLanded(ctx, t, "external call landed after its undo, undoing it now")
	res := r.answerOnly(ctx, t, dedup.Outcome{Class: outcome.Business, Reason: outcome.ReasonRevoked, Code: CodeSagaGivenUp, Message: "the operation was revoked: its undo came first"})
	return &res
}

func (r *Runtime) undoLanded(ctx context.Context, t *task, what string) {
	r.taskLog(t).Warn().Msg(what)
	crash.Point("worker.late.stored", t.meta.OperationID)
	if t.undo != nil {
		return
	}
	if err := r.undoLate(ctx, t.meta.OperationID, 0); err != nil {
		r.taskLog(t).Warn().Err(err).Msg("effect that landed late is not undone yet, the sweep goes on")
	}
}
