package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outcome"
)

// reasonNothing is recorded with the SUCCESS of an undo that found no effect.
const reasonNothing = "nothing"

// Undo runs the compensation of a forward operation, once per effect, under the id "<forward>:undo", and waits for its end or
// the end of ctx (path rules 11 and 12). The forward operation is revoked first: a running twin is waited for, a later claim
// is answered SAGA_GIVEN_UP. An effect that nothing compensates gives Parked. An error is an outcome: RETRYABLE when the undo
// is not done yet, FATAL when a person must look.
func (r *Runtime) Undo(ctx context.Context, forwardOperationID, reason string) (UndoResult, error) {
	return r.undoFor(ctx, 0, forwardOperationID, reason)
}

// undoFor is Undo for an operation that a person has retried so many times. An undo of the runtime has no job whose incident
// could be resolved: one that ended FATAL runs afresh once for each retry of the operation that asks (path rule 5).
func (r *Runtime) undoFor(ctx context.Context, retries int, forwardOperationID, reason string) (UndoResult, error) {
	for n := 1; ; n++ {
		u, res := r.undoOnce(ctx, nil, retries, forwardOperationID, reason)
		switch {
		case res.kind == answered && res.err == nil:
			return u, nil
		case res.kind == answered:
			return u, res.err
		case res.kind == retry && res.err.Reason != outcome.ReasonUnknown && n >= 3:
			return u, res.err
		}
		wait := max(res.wait, r.cfg.PollBackoff.Wait(n))
		if err := pause(ctx, wait); err != nil {
			last := errors.New("waiting for " + res.reason)
			if res.err != nil {
				last = res.err
			}
			return u, outcome.NewUnknown(fmt.Errorf("undo of %s is not done yet: %w", forwardOperationID, last))
		}
	}
}

// undoOnce is one attempt. job is the compensation handler's job, nil when the runtime undoes by itself.
func (r *Runtime) undoOnce(ctx context.Context, job *task, retries int, forward, reason string) (UndoResult, result) {
	u := UndoResult{OperationID: forward + dedup.UndoSuffix}
	end := func(o dedup.Outcome) (UndoResult, result) {
		u.Outcome = o.Class
		if job != nil {
			return u, r.answerOnly(ctx, job, o)
		}
		return u, result{kind: answered, left: o, err: o2err(o)}
	}
	op, absent, standing, res := r.revoke(ctx, job, forward, reason)
	switch {
	case res != nil:
		return u, *res
	case standing != "":
		u.Parked, u.Standing, u.Outcome = true, standing, outcome.Success
		if job != nil {
			return end(*fatal(outcome.ReasonUndo, "operation %s cannot be undone: %s", forward, standing))
		}
		return u, result{kind: answered, left: dedup.Outcome{Class: outcome.Success}}
	}
	spec := r.mux.forward[op.JobType]
	if !absent && op.JobType != "" && spec == nil {
		return end(*fatal(outcome.ReasonUndo, "operation %s has job type %q, for which this process has no handler", forward, op.JobType))
	}
	if op.Effect == dedup.EffectMaybe {
		var res *result
		if op, res = r.findOut(ctx, spec, op); res != nil {
			return u, *res
		}
	}
	if absent || op.JobType == "" || !hasEffect(spec, op) {
		u.Nothing, u.Outcome = true, outcome.Success
		if job == nil {
			return u, result{kind: answered, left: dedup.Outcome{Class: outcome.Success, Reason: reasonNothing}}
		}
		return u, r.runTx(ctx, nothingTask(job))
	}
	meta, answer := metaFrom(op), job != nil
	if job != nil {
		meta = job.meta
	}
	t := r.undoTask(spec, op, meta, answer, reason)
	t.undo.retries = retries
	if job != nil {
		t.received, t.probe = job.received, job.probe
	}
	out := r.execute(ctx, t)
	if out.kind == answered {
		u.Outcome = out.left.Class
		u.Nothing = out.left.Reason == reasonNothing
		r.taskLog(t).Info().Str("forward_operation_id", forward).Str("class", string(out.left.Class)).Str("reason", reason).Msg("compensation ended")
	}
	return u, out
}

// hasEffect reports whether a revoked operation left something to undo. What succeeded did, of whatever shape the handler was then: a
// transactional one leaves no known effect behind, and may be an external one by now.
func hasEffect(s *spec, op dedup.Operation) bool {
	if s.opt.noEffect {
		return false
	}
	return op.Effect == dedup.EffectKnown || op.Class == outcome.Success
}

// revoke claims the forward operation for its undo (path rule 11). standing says why its effect stays, "" = it is undone.
func (r *Runtime) revoke(ctx context.Context, job *task, forward, reason string) (op dedup.Operation, absent bool, standing string, res *result) {
	return r.revokeUnless(ctx, job, forward, reason, false)
}

// revokeUnless is revoke that may leave an operation that has ended as it is, with standing standingEnded.
func (r *Runtime) revokeUnless(ctx context.Context, job *task, forward, reason string, ended bool) (op dedup.Operation, absent bool, standing string, res *result) {
	if rule.Off(11) {
		op, found, err := r.store.Lookup(ctx, r.control, forward)
		if err != nil {
			return op, false, "", &result{kind: retry, err: outcome.Classify(err)}
		}
		return op, !found, "", nil
	}
	fail := func(err error) *result {
		if waited(err) {
			return &result{kind: busy, reason: "the forward operation runs"}
		}
		return &result{kind: retry, err: outcome.Classify(err)}
	}
	pc, err := r.pool.Acquire(ctx)
	if err != nil {
		return op, false, "", fail(err)
	}
	defer pc.Release()
	conn := pc.Conn()
	defer rollback(context.WithoutCancel(ctx), conn)
	var m Meta
	if job != nil {
		m = job.meta
	}
	var rev dedup.Revocation
	b := &pgx.Batch{}
	r.begin(b)
	r.store.QueueRevoke(b, forward, m.Tenant, m.BusinessKey, m.SagaID, reason, r.cfg.Retain, &rev)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return op, false, "", fail(err)
	}
	op = rev.Operation
	if op.State != dedup.Revoked && op.Owner == "" && op.Reason != outcome.ReasonUnknown {
		op.LeaseUntil = time.Time{} // released: no call is under way
	}
	last := &pgx.Batch{}
	if ended && op.State == dedup.Done {
		return op, false, standingEnded, nil
	}
	if !op.SlimmedAt.IsZero() {
		return op, false, "its retention is over and its data is gone", nil
	}
	if !rev.Absent {
		idle := ended && op.State == dedup.Claimed // certain that nothing happened
		if s := r.mux.forward[op.JobType]; s != nil && s.opt.undo == nil && !s.opt.noEffect && op.State != dedup.Revoked && !idle {
			if standing = leftStanding(s, op); standing != "" {
				return op, false, standing, nil
			}
		}
		if op.State != dedup.Revoked && r.mux.forward[op.JobType] != nil && !landedAfterRefusal(op) {
			r.store.QueueRevokeRow(last, forward, op.Fence, reason, r.mux.forward[op.JobType].opt.retention(r.cfg.Retain).For)
			op.Fence++
		}
	}
	switch f, err := commitQuietly(ctx, conn, last); f {
	case committed:
		return op, rev.Absent, "", nil
	case notCommitted:
		return op, false, "", fail(err)
	default:
		_ = conn.Close(context.WithoutCancel(ctx))
		return op, false, "", &result{kind: busy, reason: "unknown commit"}
	}
}

// leftStanding says why an effect without a compensation is left as it is; "" when there is no effect.
func leftStanding(s *spec, op dedup.Operation) string {
	if op.State == dedup.Done && op.Effect == dedup.EffectNone && op.Class != outcome.Success {
		return ""
	}
	switch kind, what, _ := strings.Cut(s.opt.policy, ":"); kind {
	case "none":
		return "cannot be compensated: " + what
	case "manual":
		return "undone by a person in task " + what
	default:
		return "no compensation declared"
	}
}

// findOut asks the other system what became of a revoked call. That it did not happen is believed only once the caller's
// lease has run out: until then the call may still be on its way (path rule 11). So it may be after a caller that gave up
// waiting: then as long as the sweep would have left it alone.
func (r *Runtime) findOut(ctx context.Context, s *spec, op dedup.Operation) (dedup.Operation, *result) {
	m := metaFrom(op)
	t := &task{spec: s, meta: m, input: op.Input}
	ask := s.resolve
	if ask == nil {
		ask = s.call // idempotent by its key: it gives the effect, which is undone then
	}
	cctx, cancel := context.WithTimeout(ctx, r.cfg.CallTimeout)
	defer cancel()
	doc, err := guarded(r.logOf(t), func() (json.RawMessage, error) {
		return ask(cctx, remoteCall{meta: m, input: op.Input, again: true, undo: r.Undo})
	})
	var said *outcome.Error
	refused := s.resolve == nil && errors.As(err, &said) && said.Class == outcome.Business
	effect := dedup.EffectKnown
	switch {
	case err == nil:
	case errors.Is(err, ErrNotHappened) || refused:
		if left := op.LeaseUntil.Sub(op.ReadAt); left > 0 && !op.LeaseUntil.IsZero() {
			return op, &result{kind: retry, err: outcome.NewUnknown(errors.New("the call may still be on its way")), wait: min(left, 2*time.Second)}
		}
		effect, doc = dedup.EffectNone, nil
	default:
		return op, &result{kind: retry, err: outcome.NewUnknown(err), wait: r.cfg.UnknownBackoff.Wait(1)}
	}
	var again *time.Duration
	if effect == dedup.EffectNone && s.resolve != nil {
		again = firstAsk()
	}
	ok, err := r.store.Found(ctx, r.control, op.OperationID, op.Fence, effect, doc, again)
	if err != nil {
		return op, &result{kind: retry, err: outcome.Classify(err)}
	}
	if !ok {
		return op, &result{kind: busy, reason: "another undo of the operation"}
	}
	op.Effect, op.CallResult = effect, doc
	return op, nil
}

// undoID is the id of the one undo of an operation (path rule 12).
func undoID(forward string) string {
	if rule.Off(12) {
		return forward + dedup.UndoSuffix + ":" + uuid()
	}
	return forward + dedup.UndoSuffix
}

// undoTask makes the undo of an operation a task like any other: claimed under its own id, replayed when it is done.
func (r *Runtime) undoTask(s *spec, op dedup.Operation, meta Meta, job bool, reason string) *task {
	us := s.opt.undo
	if !job {
		meta.Key, meta.Type = 0, us.jobType
	}
	meta.OperationID = undoID(op.OperationID)
	res := op.CallResult
	if s.shape == shapeTx || len(res) == 0 {
		res = op.Variables
	}
	u := undoOf{operationID: op.OperationID, in: op.Input, res: res, reason: reason, meta: meta}
	refusedIsFatal := func(err error) error {
		if e := outcome.Classify(err); e != nil && e.Class == outcome.Business {
			return outcome.Fatalf(outcome.ReasonUndo, "the compensation was refused with %s: %s", e.Code, e.Message)
		}
		return err
	}
	sp := &spec{shape: shapeTx, opt: options{noEffect: true, sla: s.opt.sla, backoff: s.opt.backoff, retain: s.opt.retain, financial: s.opt.financial}}
	if us.run != nil {
		sp.run = func(ctx context.Context, tx *Tx, _ Meta, _ json.RawMessage) (json.RawMessage, error) {
			return nil, refusedIsFatal(us.run(ctx, tx, u))
		}
	} else {
		sp.shape, sp.opt.keyIgnored = shapeExternal, s.opt.keyIgnored
		none := json.RawMessage("null")
		sp.call = func(ctx context.Context, c remoteCall) (json.RawMessage, error) {
			return none, refusedIsFatal(us.call(ctx, c.meta.OperationID, u))
		}
		if us.resolve != nil {
			sp.resolve = func(ctx context.Context, c remoteCall) (json.RawMessage, error) {
				return none, us.resolve(ctx, c.meta.OperationID, u)
			}
		}
		sp.settle = func(ctx context.Context, tx *Tx, _ Meta, _, _ json.RawMessage) (json.RawMessage, error) {
			if us.settle == nil {
				return nil, nil
			}
			return nil, us.settle(ctx, tx, u)
		}
	}
	t := &task{spec: sp, meta: meta, job: job, owner: uuid(), undo: &undoWork{forward: op.OperationID, reason: reason, op: op}}
	t.input, t.fp = undoInput(op.OperationID)
	return t
}

// undoInput is what the fingerprint of an undo covers: which operation it undoes.
func undoInput(forward string) (json.RawMessage, dedup.Fingerprint) {
	doc, _ := json.Marshal(map[string]string{varForward: forward}) //nolint:errchkjson // strings
	fp, _ := dedup.Of(doc, []string{varForward})                   //nolint:errcheck // a valid object
	return doc, fp
}

// nothingTask records for a compensation job that there was nothing to undo.
func nothingTask(job *task) *task {
	t := *job
	t.reason = reasonNothing
	t.spec = &spec{shape: shapeTx, opt: options{noEffect: true}, run: func(context.Context, *Tx, Meta, json.RawMessage) (json.RawMessage, error) { return nil, nil }}
	return &t
}

// metaFrom reads the job context that was stored with an operation.
func metaFrom(op dedup.Operation) Meta {
	var m Meta
	if len(op.Meta) > 0 {
		_ = json.Unmarshal(op.Meta, &m) // written by us
	}
	m.OperationID, m.Type, m.BusinessKey, m.Tenant, m.SagaID = op.OperationID, op.JobType, op.BusinessKey, op.Tenant, op.SagaID
	m.Cluster, m.Key, m.ProcessInstanceKey, m.ElementInstanceKey, m.ElementID = op.Cluster, op.JobKey, op.ProcessInstanceKey, op.ElementInstanceKey, op.ElementID
	m.Attempt = op.Attempts
	return m
}
