package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

const savepoint = "journeyman_handler"

// entry is what the first round trip brought.
type entry struct {
	claim *dedup.Fenced
	op    dedup.Operation // as read after the claim; of a transactional operation only when another has it
	found bool
	used  int64        // bytes completed for the process instance so far
	gate  func() error // nil outside a saga
}

// begin adds the head of the first round trip: BEGIN and the bound on waiting for a twin.
func (r *Runtime) begin(b *pgx.Batch) {
	b.Queue("BEGIN")
	b.Queue("SELECT set_config('lock_timeout', $1, true)", r.lockWait)
}

// enterEnd adds its tail: waiting is the handler's own matter again, and its work starts at a savepoint.
func (r *Runtime) enterEnd(b *pgx.Batch) {
	if !rule.Off(8) {
		b.Queue("SET LOCAL lock_timeout TO DEFAULT")
	}
	b.Queue("SAVEPOINT " + savepoint)
}

func (r *Runtime) queueGate(b *pgx.Batch, t *task) func() error {
	if !t.inSaga() {
		return nil
	}
	if r.cfg.Saga == nil {
		return func() error {
			return outcome.Fatalf("saga", "the job has sagaId %s, but this worker runs without a saga gate", t.meta.SagaID)
		}
	}
	return r.cfg.Saga.QueueEnter(b, t.meta)
}

func (t *task) claim(state dedup.State, r *Runtime) (dedup.Claim, error) {
	meta, err := json.Marshal(t.meta)
	if err != nil {
		return dedup.Claim{}, fmt.Errorf("job context: %w", err)
	}
	c := dedup.Claim{
		OperationID: t.meta.OperationID, Tenant: t.meta.Tenant, BusinessKey: t.meta.BusinessKey, JobType: t.meta.Type, SagaID: t.meta.SagaID,
		Fingerprint: t.fp, State: state, Meta: meta, JobContext: t.jobContext(), Policy: t.spec.opt.standing(),
	}
	if t.spec.opt.undo != nil {
		c.UndoType = t.spec.opt.undo.jobType
	}
	if state == dedup.Calling || t.spec.opt.undo != nil {
		c.Input = t.input
	}
	if state == dedup.Calling {
		c.Owner, c.Lease = t.owner, r.cfg.Lease
	}
	return c, nil
}

// standing is the policy as records and the ledger spell it.
func (o options) standing() string {
	switch {
	case o.policy != "":
		return o.policy
	case o.undo != nil && o.orphans == Undo:
		return "undo"
	case o.undo != nil:
		return "park"
	default:
		return ""
	}
}

// notMine reports what the saga's gate says to another instance of a saga: nothing is recorded, the operation belongs to the
// instance that owns the saga (path rule 15).
func notMine(end *outcome.Error) bool {
	return end != nil && end.Class == outcome.Business && end.Code == CodeSagaNotMine
}

// waited reports a lock that was not given in time: a twin holds the claim, or a give-up the saga's gate.
func waited(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03"
}

// known says what to do about an operation that was claimed before; nil = nothing is known that ends it here.
func (r *Runtime) known(t *task, op dedup.Operation) (*dedup.Outcome, error) {
	switch {
	case op.State == dedup.Revoked && !rule.Off(11):
		return &dedup.Outcome{Class: outcome.Business, Reason: outcome.ReasonRevoked, Code: CodeSagaGivenUp, Message: "the operation was revoked: its undo came first"}, nil
	case t.job && t.meta.SagaID != "" && t.undo == nil && op.ProcessInstanceKey != 0 && !rule.Off(15) &&
		(op.ProcessInstanceKey != t.meta.ProcessInstanceKey || op.Cluster != t.meta.Cluster):
		// A second instance of the saga: a replay would carry it past saga.begin (path rule 15).
		return &dedup.Outcome{Class: outcome.Business, Code: CodeSagaNotMine, Message: fmt.Sprintf("the operation belongs to process instance %d of cluster %s", op.ProcessInstanceKey, op.Cluster)}, nil
	case t.meta.SagaID != "" && op.Cluster == t.meta.Cluster && op.ProcessInstanceKey != t.meta.ProcessInstanceKey && op.ProcessInstanceKey != 0 && !rule.Off(15):
		// The saga was started twice: the outcome belongs to the other instance, this one ends without effect.
		return &dedup.Outcome{Class: outcome.Business, Code: CodeSagaNotMine, Message: fmt.Sprintf("operation %s belongs to process instance %d", op.OperationID, op.ProcessInstanceKey)}, nil
	case op.JobType != t.meta.Type || op.BusinessKey != t.meta.BusinessKey || op.Tenant != t.meta.Tenant:
		return r.conflict(t, op), nil
	}
	raw := t.raw
	if raw == nil {
		raw = t.input
	}
	same, err := op.Fingerprint.Matches(raw, t.fp)
	if err != nil {
		return nil, err
	}
	if !same {
		return r.conflict(t, op), nil
	}
	if !op.SlimmedAt.IsZero() && !bytes.Equal(dedup.Hash(op.Outcome), op.ResultHash) {
		return fatal(reasonExpired, "operation %s ended %s %s at %s; its answer was kept until %s, only its hash is left: it is not run again",
			op.OperationID, op.Class, op.Code, op.SettledAt.UTC().Format(time.DateOnly), op.SlimmedAt.UTC().Format(time.DateOnly)), nil
	}
	return nil, nil
}

// reasonExpired is FATAL: a repeat of a money operation whose retention is over (spec D3).
const reasonExpired = "expired"

// conflict is the FATAL outcome of spec W8; it names both fingerprints and no payload.
func (r *Runtime) conflict(t *task, op dedup.Operation) *dedup.Outcome {
	what := ""
	for _, d := range []struct{ name, stored, got string }{
		{"job type", op.JobType, t.meta.Type}, {"business key", op.BusinessKey, t.meta.BusinessKey}, {"tenant", op.Tenant, t.meta.Tenant},
	} {
		if d.stored != d.got {
			what += fmt.Sprintf("; %s %q, stored %q", d.name, d.got, d.stored)
		}
	}
	msg := fmt.Sprintf("operation %s was run before with another input: fingerprint %s, stored %s%s", t.meta.OperationID, t.fp, op.Fingerprint, what)
	r.taskLog(t).Error().Str("fingerprint", t.fp.String()).Str("fingerprint_stored", op.Fingerprint.String()).Msg("operation id used for another input")
	return &dedup.Outcome{Class: outcome.Fatal, Reason: outcome.ReasonConflict, Message: msg}
}

// resolved reports whether this activation came after a person resolved what was answered (path rule 5): the same job,
// received after the recorded acknowledgement, and activated at the engine now. An earlier activation that reached us late is
// not: the engine says that the job is not active.
func (r *Runtime) resolved(ctx context.Context, t *task, op dedup.Operation) bool {
	if t.undo != nil && !t.job && !rule.Off(5) {
		return op.State == dedup.Done && op.Class == outcome.Fatal && op.OperatorRetries < t.undo.retries
	}
	if rule.Off(5) || !t.job || !t.probe || op.State != dedup.Done || op.Class == outcome.Success {
		return false
	}
	if op.AnsweredAt.IsZero() || op.AnsweredJobKey != t.meta.Key || op.Cluster != t.meta.Cluster || (!t.received.IsZero() && !t.received.After(op.AnsweredAt)) {
		return false
	}
	if r.active == nil {
		return true
	}
	ok, err := r.active(ctx, t.meta.Key)
	if err != nil {
		r.taskLog(t).Warn().Err(err).Msg("cannot tell whether a person resolved this job; the stored answer stands")
		return false
	}
	return ok
}

// replay answers a job with a stored outcome, in the open transaction of conn. resolved = a person resolved the answer, but the
// operation cannot run again: its effect was undone, and the other system would answer its key with what is cancelled.
func (r *Runtime) replay(ctx context.Context, conn *pgx.Conn, t *task, op dedup.Operation, resolved bool) result {
	if !t.job {
		rollback(ctx, conn)
		return result{kind: answered, left: op.Outcome, err: o2err(op.Outcome)}
	}
	if !resolved && !op.AnsweredAt.IsZero() && op.AnsweredJobKey == t.meta.Key && op.Cluster == t.meta.Cluster && !rule.Off(5) {
		// A twin that was activated before: the engine has this very answer and has acknowledged it.
		rollback(ctx, conn)
		return result{kind: dropped, reason: "answered before"}
	}
	b := &pgx.Batch{}
	if op.Class == outcome.Success {
		// The outcome is on the disk. What a crash of the server could take back is only that it is told again: the job's time-out
		// brings that about as well. A refusal's command waits, as its acknowledgement is to be remembered (path rule 5).
		b.Queue("SET LOCAL synchronous_commit TO off")
	}
	var q *zeebe.Queued
	var direct *zeebe.Command
	if c := t.command(op.Outcome); op.Class == outcome.Success && t.leaves && r.direct != nil {
		direct = &c // what it tells stands in the operation: without an acknowledgement the job comes back and is told again
	} else {
		q = r.queue.Queue(b, c)
	}
	r.store.QueueDropAttempts(b, t.meta.Cluster, t.meta.Key)
	f, err := commit(ctx, conn, b, t.meta.OperationID)
	switch f {
	case committed:
		if r.log.GetLevel() <= zerolog.InfoLevel {
			r.taskLog(t).Info().Str("class", string(op.Class)).Msg("repeat answered with the stored outcome")
		}
		return result{kind: answered, queued: q, direct: direct, left: op.Outcome, err: o2err(op.Outcome), unsent: r.tell(ctx, t, q)}
	case notCommitted:
		rollback(ctx, conn)
		return result{kind: retry, err: outcome.Classify(err)}
	default:
		_ = conn.Close(context.WithoutCancel(ctx))
		return result{kind: again}
	}
}

// write adds the second round trip between savepoint and COMMIT: events, outcome, ledger, command (path rule 1).
type write struct {
	fence  int64
	effect dedup.Effect
	out    dedup.Outcome
	msgs   []events.Message
	result json.RawMessage // of the effect, for the ledger

	attached []events.Message // to a refusal: the only ones staged with it (path rule 3)
	payload  json.RawMessage  // an output that was too large to send: the claim check points to it (path rule 28)
	landing  *time.Duration   // when the other system is asked about an earlier call, which may land after this refusal; nil = never
}

func (r *Runtime) queueWrite(b *pgx.Batch, t *task, w write) (*zeebe.Queued, error) {
	step, amountErr := t.step(w)
	if amountErr != nil {
		return nil, amountErr
	}
	ledger := t.inSaga() && r.cfg.Saga != nil
	msgs := w.msgs
	var keys []string
	if ledger {
		msgs = append(msgs[:len(msgs):len(msgs)], r.cfg.Saga.Messages(t.meta, step)...)
		keys = append(keys, t.meta.BusinessKey)
	}
	if t.undo != nil && t.meta.SagaID != "" && r.cfg.Saga != nil {
		keys = append(keys, t.meta.BusinessKey)
	}
	switch {
	case r.cfg.Stager != nil:
		o := t.origin()
		if t.retries > 0 {
			o.IDSeed = fmt.Sprintf("%s#%d", o.OperationID, t.retries) // a run after an operator's retry publishes anew (path rule 5)
		}
		if err := r.cfg.Stager.Queue(b, o, msgs, keys...); err != nil {
			return nil, outcome.Fatalf("events", "events: %w", err)
		}
	case len(msgs) > 0:
		return nil, outcome.Fatalf("events", "the handler emitted %d messages, but the worker has no stager", len(msgs))
	}
	switch {
	case t.shared: // with those of the others
	case t.entered:
		c, err := t.claim(dedup.Claimed, r)
		if err != nil {
			return nil, outcome.NewFatal(err)
		}
		r.store.QueueRecord(b, dedup.Record{Claim: c, Outcome: w.out, Retention: t.spec.opt.retention(r.cfg.Retain), JobEnds: t.job})
	default:
		r.store.QueueFinish(b, t.meta.OperationID, w.fence, w.effect, w.out, len(w.out.Variables), t.spec.opt.retention(r.cfg.Retain))
		if w.landing != nil {
			r.store.QueueAskRefused(b, t.meta.OperationID, w.landing)
		}
	}
	if ledger && (w.out.Class == outcome.Success || w.out.Class == outcome.Business) {
		r.cfg.Saga.QueueStep(b, step)
	}
	if t.undo != nil && w.out.Class == outcome.Success && w.out.Reason != reasonNothing {
		r.store.QueueUndone(b, t.undo.forward)
		if r.cfg.Saga != nil && t.meta.SagaID != "" {
			r.cfg.Saga.QueueUndone(b, t.meta, t.undo.forward)
		}
	}
	if w.payload != nil {
		r.store.QueuePayload(b, t.meta.OperationID, w.payload)
	}
	if !t.job || t.shared {
		return nil, nil
	}
	q := r.queue.Queue(b, t.command(w.out))
	if !t.entered {
		r.store.QueueDropAttempts(b, t.meta.Cluster, t.meta.Key)
	}
	return q, nil
}

func (t *task) step(w write) (Step, error) {
	s := Step{Meta: t.meta, Policy: t.spec.opt.standing(), Pivot: t.spec.opt.pivot, Input: t.input, Result: w.result, Class: w.out.Class, Code: w.out.Code}
	if t.spec.opt.undo != nil {
		s.Undo = t.spec.opt.undo.jobType
	}
	if t.spec.opt.amount != nil {
		var err error
		if s.Amount, err = t.spec.opt.amount(t.input); err != nil {
			return s, outcome.Fatalf(outcome.ReasonInput, "amount: %s", unquoted(err))
		}
	}
	return s, nil
}

// pause waits, or gives the context's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
