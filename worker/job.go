package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// work brings one received job to its end. drain is cancelled when the worker stops activating, hard when its time is up.
func (w *Worker) work(drain, hard context.Context, h *held) {
	slots := int64(1)
	alone := h.attempts.Deaths > 0 && !rule.Off(7)
	if alone {
		slots = int64(w.cfg.Concurrency)
	}
	leave := w.handBack // while it is untouched; a twin is only left
	free := w.breaker(h.job.Type).waits(drain, h.probe)
	singly, late := alone, false
	for {
		turn, wt := free, (*waiter)(nil)
		if !singly && w.mayShare(h) {
			turn, wt = w.queue(free, h)
		}
		release, err := w.takeSlot(turn, h, wt != nil, slots)
		slot := err == nil && free.Err() == nil // both may have been ready
		var res result
		var taken bool
		var mates []*waiter
		var spent time.Duration
		if wt != nil {
			taken, mates = w.board(wt, slot)
		}
		switch {
		case taken:
			release()
			res = <-wt.done
			switch {
			case res.kind == later && !late:
				late = true // once: its turn may come last again
				continue
			case res.kind == apart || res.kind == later:
				singly = true
				continue
			}
		case !slot:
			release()
			leave(hard, h)
			return
		default:
			h.slotAt.Store(time.Now().UnixNano())
			res = apartResult
			if len(mates) > 0 {
				res = w.runTogether(hard, wt, mates)
			}
			if res.kind == apart || res.kind == later {
				res = w.run(hard, h, alone)
			}
			release()
			spent = time.Since(time.Unix(0, h.slotAt.Swap(0)))
		}
		if res.unsent {
			w.answer(hard, res)
		}
		singly = alone
		w.ended(h, res)
		if res.kind == answered || res.kind == retry {
			w.rates.add(h.job.Type, spent, time.Now())
		}
		switch res.kind {
		case answered:
			return
		case retry:
			w.failJob(hard, h, res)
			return
		case dropped:
			w.closeAttempt(hard, h)
			w.logJob(h).Info().Str("reason", res.reason).AnErr("cause", asError(res.err)).Msg("job left: not ours to answer")
			return
		}
		// A twin has it. It gives way by waiting, never by FailJob, which would fail the twin's running job (path rule 6).
		if rule.Off(6) {
			w.failJob(hard, h, result{kind: retry, err: outcome.NewUnknown(errTwin)})
			return
		}
		leave, free = w.closeAttempt, drain
		left := time.Until(h.deadline())
		wait := w.cfg.LockTimeout/8 + rand.N(w.cfg.LockTimeout/4) //nolint:gosec // jitter
		if left < wait || pause(drain, wait) != nil {
			w.closeAttempt(hard, h)
			return // the job comes back by its time-out
		}
	}
}

// answer tells the engine what a job came to, after its slot is free.
func (w *Worker) answer(ctx context.Context, res result) {
	if res.direct == nil {
		w.rt.sendNow(ctx, res.queued)
		return
	}
	err := w.rt.direct(ctx, *res.direct)
	if err == nil {
		return
	}
	// From here on it is an answer like any other: the sweep sends it, and finds out what became of the job (path rule 14).
	qctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	b := &pgx.Batch{}
	w.rt.queue.Queue(b, *res.direct)
	if qerr := w.rt.control.SendBatch(qctx, b).Close(); qerr != nil {
		w.cfg.Log.Warn().Err(qerr).AnErr("answer", err).Str("operation_id", res.direct.OperationID).Int64("job_key", res.direct.JobKey).Msg("repeat not answered; the job comes back by its time-out")
	}
}

var errTwin = &outcome.Error{Class: outcome.Retryable, Reason: outcome.ReasonContention, Message: "a twin runs"}

func asError(e *outcome.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// taskOf makes the task of a job, without its input. With an error it says only who it is.
func (w *Worker) taskOf(h *held) (*task, error) {
	t := &task{job: true, probe: true, leaves: true, received: h.attempts.ReceivedAt}
	t.meta = Meta{Key: h.job.Key, Type: h.job.Type, Cluster: w.rt.cluster, ProcessID: h.job.ProcessID, ProcessInstanceKey: h.job.ProcessInstanceKey, ElementID: h.job.ElementID, ElementInstanceKey: h.job.ElementInstanceKey, Retries: h.job.Retries}
	s := w.rt.mux.forward[h.job.Type]
	if s == nil || s.shape == shapeExternal { // others have no lease
		t.owner = uuid()
	}
	if h.varsErr != nil {
		return t, h.varsErr
	}
	var err error
	if t.meta, err = metaOf(h.job, w.rt.cluster, h.vars); err != nil {
		return t, err
	}
	t.meta.Deadline = h.deadline()
	t.meta.Attempt = h.attempts.Runs + 1
	if s != nil {
		t.spec, t.control = s, s.opt.control
	}
	return t, nil
}

// run makes the task of a job and executes it.
func (w *Worker) run(ctx context.Context, h *held, alone bool) (res result) {
	rt := w.rt
	t, err := w.taskOf(h)
	ctx, span := w.startSpan(ctx, t.meta)
	defer func() { endSpan(span, res) }()
	if err != nil {
		return w.badInput(ctx, t, err)
	}
	m := t.meta
	if instanceMismatch(m, h.vars) {
		rt.taskLog(t).Info().Msg("variable processInstanceKey names another instance; the job's own counts")
	}
	if h.attempts.DeathAlone > 0 && !rule.Off(7) {
		if op, found, err := rt.Lookup(ctx, t.meta.OperationID); err == nil && !(found && op.State == dedup.Done) {
			return rt.answerOnly(ctx, t, *fatal(outcome.ReasonGuard, "operation %s ended its process %d times, the last time with nothing else running in it", t.meta.OperationID, h.attempts.Deaths))
		}
	}
	if alone {
		rt.taskLog(t).Warn().Int("deaths", h.attempts.Deaths).Msg("a process died with this job open: it runs alone now")
		if err := rt.store.Alone(ctx, rt.control, rt.process, rt.cluster, h.job.Key); err != nil {
			return notStarted(err)
		}
	}
	if rt.undo[h.job.Type] {
		return rt.undoJob(ctx, t, h.vars)
	}
	if err := rt.takeInput(t, h.vars, []byte(h.job.Variables)); err != nil {
		return w.badInput(ctx, t, err)
	}
	return rt.execute(ctx, t)
}

// takeInput checks the declared input and makes its canonical form and fingerprint.
func (r *Runtime) takeInput(t *task, vars map[string]any, raw []byte) error {
	p := r.plans[t.meta.Type]
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if vars == nil {
		vars = map[string]any{}
	}
	// The check reads numbers in their canonical spelling, as the handler will.
	doc, declared, fp, err := p.pick.Of(vars)
	if err != nil {
		return outcome.Fatalf(outcome.ReasonInput, "variables cannot be decoded: %w", err)
	}
	for name, v := range vars { // what the projection leaves out because it is empty is still there
		if _, ok := declared[name]; !ok && v != nil {
			declared[name] = v
		}
	}
	if err := p.check(declared); err != nil {
		return err
	}
	t.input, t.raw, t.fp = doc, raw, fp
	return nil
}

// undoJob runs a compensation handler's job: the undo of the operation it names, once (path rules 11 and 12).
func (r *Runtime) undoJob(ctx context.Context, t *task, vars map[string]any) result {
	forward, ok := vars[varForward].(string)
	if !ok || forward == "" || len(forward) > maxID {
		return r.answerOnly(ctx, t, *fatal(outcome.ReasonInput, "variable %s: missing or no string; a compensation needs the operation it undoes:\n  <zeebe:input source=\"=sagaId + &#34;:forwardElementId&#34;\" target=\"%s\" />", varForward, varForward))
	}
	if t.meta.OperationID != forward+dedup.UndoSuffix {
		return r.answerOnly(ctx, t, *fatal(outcome.ReasonInput, "variable %s: is %q, want %q: an effect has one undo, under this id", varOperationID, t.meta.OperationID, forward+dedup.UndoSuffix))
	}
	t.input, t.fp = undoInput(forward)
	t.control = true
	t.spec = &spec{shape: shapeTx, opt: options{noEffect: true}}
	t.undo = &undoWork{forward: forward, reason: "compensation"}
	_, res := r.undoOnce(ctx, t, 0, forward, "compensation")
	return res
}

// badInput is FATAL before anything is claimed. No operation is recorded: a person may set the variables and resolve the incident.
func (w *Worker) badInput(ctx context.Context, t *task, err error) result {
	o := outcomeOf(outcome.Classify(err))
	w.rt.taskLog(t).Error().Str("reason", o.Reason).Msg(o.Message)
	return w.rt.answerOnly(ctx, t, o)
}

// failJob tells the engine of a failure that was rolled back: only before the deadline, with one retry fewer, or with
// unchanged retries for an unknown result (path rules 6, 19).
func (w *Worker) failJob(ctx context.Context, h *held, res result) {
	defer w.closeAttempt(ctx, h)
	e := res.err
	left := h.job.Retries - 1
	if e.Reason == outcome.ReasonUnknown || res.keep || (e.Class == outcome.Retryable && ctx.Err() != nil) { // the last: cut off by the drain
		left = h.job.Retries
	}
	if e.Class == outcome.Fatal {
		left = 0
	}
	wait := max(res.wait, e.After)
	if wait == 0 {
		bo := w.backoffOf(h.job.Type)
		if e.Backoff != nil {
			bo = *e.Backoff
		}
		wait = bo.Wait(h.attempts.Runs + 1)
	}
	req := zeebe.FailRequest{JobKey: h.job.Key, Retries: max(left, 0), Message: clip(incidentText(outcomeOf(e))), Backoff: wait}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
	}
	for n := 1; h.ours() || rule.Off(6); n++ {
		err := w.conn.Fail(ctx, req)
		if err == nil {
			w.logJob(h).Warn().Str("class", string(e.Class)).Str("reason", e.Reason).Int32("retries", req.Retries).Dur("wait", wait).Str("message", clip(e.Message)).Msg("job failed, will run again")
			return
		}
		if !zeebe.IsTransient(err) || pause(ctx, w.cfg.PollBackoff.Wait(n)) != nil {
			w.logJob(h).Warn().Err(err).Msg("failure not accepted; the job comes back by its time-out")
			return
		}
	}
	w.logJob(h).Warn().Str("class", string(e.Class)).Str("reason", e.Reason).Msg("failure not told: the job's deadline has passed")
}

func (w *Worker) closeAttempt(ctx context.Context, h *held) {
	if !h.guarded {
		return
	}
	cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.LockTimeout)
	defer cancel()
	if err := w.rt.store.CloseAttempt(cctx, w.rt.control, w.rt.process, w.rt.cluster, h.job.Key); err != nil {
		w.logJob(h).Warn().Err(err).Msg("attempt not closed")
	}
}
