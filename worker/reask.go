package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outcome"
)

// askAfter is when the other system is asked again about a call of which it said that it did not happen, counted from the first
// such answer: a call may be on its way for longer than anybody waits (path rule 11). Past these each distance doubles, until the call
// can land no more.
func askAfter() []time.Duration { return []time.Duration{time.Minute, 10 * time.Minute, time.Hour} }

// Bounds of asking again.
const (
	lateGrace = 30 * time.Second // that the finder of a late effect has for its undo, before the sweep takes it
	mutedFor  = 24 * time.Hour   // an answer that stays unknown, or an undo that does not end, is left to a person then
	lastGrace = time.Hour        // that the last question has to be answered
)

// firstAsk gives the wait before the first question; nil = none is asked.
func firstAsk() *time.Duration {
	if rule.Off(11) {
		return nil
	}
	d := askAfter()[0]
	return &d
}

// nextAsk gives the wait before the next question, age after the first answer of "not happened", when the call may land until end,
// counted from there too; nil = it was the last.
func nextAsk(age, end time.Duration) *time.Duration {
	for _, at := range askAfter() {
		if age < at {
			at -= age
			return &at
		}
	}
	if age >= end {
		return nil
	}
	after := askAfter()
	at := after[len(after)-1]
	for at <= age {
		at *= 2
	}
	at = min(at, end) - age
	return &at
}

// landing is [firstAsk] of an operation whose last call certainly did nothing, when an earlier one may be on its way; nil = none is, or
// nobody can be asked.
func (h *hold) landing(t *task) *time.Duration {
	if h.fresh && !h.lost || t.undo != nil || t.spec.resolve == nil || t.spec.opt.noEffect {
		return nil
	}
	return firstAsk()
}

// landedAfterRefusal reports an effect that was found after a repeat of its call had ended the operation refused, and is undone or about to
// be. Nobody can run the operation again, so that its undo need not revoke it: its stored refusal stays what a repeat is answered.
func landedAfterRefusal(op dedup.Operation) bool {
	return op.State == dedup.Done && op.Effect == dedup.EffectKnown && op.Class != outcome.Success &&
		op.AskFrom.After(op.SettledAt) && !(op.AskAt.IsZero() && op.UndoneAt.IsZero())
}

// unanswered gives the wait before a question is repeated that was not answered.
func unanswered(age time.Duration) *time.Duration {
	d := min(max(age/4, time.Minute), time.Hour)
	return &d
}

// lands is how long after its first call an operation may still take effect at the other system.
func (s *spec) lands(c Config) time.Duration {
	switch {
	case s.opt.askFor != 0:
		return s.opt.askFor
	case s.opt.keyFor != 0:
		return s.opt.keyFor
	default:
		return c.AskFor
	}
}

// AskAgain asks other systems again about calls that they had not seen: 1, 10 and 60 minutes after they said so, then at doubling
// distances until the call can land no more ([AskFor]). It undoes at once what landed late and nobody has undone, of a revoked operation and of
// one that a repeat of the call has ended refused; one that was only let go goes on from the late result, and is answered or undone as any
// other. A call that was never seen is kept on a list for people, as nothing can prove that it will not land ([dedup.ListAsksOver]). It
// returns when all that it took are done.
func (r *Runtime) AskAgain(ctx context.Context) error {
	ops, err := r.store.AskDue(ctx, r.control, r.mux.Types(), r.cluster, sweepBatch, r.cfg.Lease+r.cfg.CallTimeout)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(sweepLanes)
	for _, op := range ops {
		g.Go(func() error { return r.askAgain(ctx, op) })
	}
	return g.Wait()
}

func (r *Runtime) askAgain(ctx context.Context, op dedup.Operation) error {
	never := func() error { return r.store.Asked(ctx, r.control, op.OperationID, 0, nil) }
	s := r.mux.forward[op.JobType]
	switch {
	case s == nil:
		return nil // an undo's; its forward operation is asked about
	case op.Effect == dedup.EffectKnown && op.UndoneAt.IsZero():
		return r.undoLate(ctx, op.OperationID, op.ReadAt.Sub(op.AskFrom))
	case op.Effect == dedup.EffectKnown:
		return never()
	case s.resolve == nil:
		return r.asksOver(ctx, op, s, 0) // the handler could ask when it called
	}
	age := op.ReadAt.Sub(op.AskFrom)
	end := s.askEnd(op, r.cfg)
	t := &task{spec: s, meta: metaFrom(op), input: op.Input}
	log := r.taskLog(t)
	doc, err := r.resolve(ctx, t)
	switch {
	case errors.Is(err, ErrNotHappened):
		next := nextAsk(age, end)
		if next == nil {
			return r.asksOver(ctx, op, s, 1)
		}
		return r.store.Asked(ctx, r.control, op.OperationID, 1, next)
	case err != nil && age > max(mutedFor, end+lastGrace):
		log.Error().Err(err).Msg("cannot find out whether a call landed late: a person must look")
		return errors.Join(r.store.Orphan(ctx, r.control, op.OperationID, dedup.OrphanOpen), never())
	case err != nil:
		log.Warn().Err(err).Msg("cannot find out whether a call landed late, will ask again")
		return r.store.Asked(ctx, r.control, op.OperationID, 0, unanswered(age))
	}
	crash.Point("worker.late.found", op.OperationID)
	late, err := r.store.StoreLate(ctx, r.control, op.OperationID, doc, lateGrace)
	if err != nil {
		return err
	}
	switch late {
	case dedup.LateUndo:
		log.Warn().Msg("external call landed after its undo and after every wait, undoing it now")
		crash.Point("worker.late.stored", op.OperationID)
		return r.undoLate(ctx, op.OperationID, 0)
	case dedup.LateRefused:
		log.Warn().Msg("external call landed after a repeat of it was refused, undoing it now")
		crash.Point("worker.late.stored", op.OperationID)
		return r.undoLate(ctx, op.OperationID, 0)
	case dedup.LateResumed:
		log.Warn().Msg("external call landed after it was taken for lost, the operation goes on from its result")
		return nil
	default:
		return never() // somebody else settled it meanwhile
	}
}

// asksOver ends the questions about a call that the other system never showed.
func (r *Runtime) asksOver(ctx context.Context, op dedup.Operation, s *spec, times int) error {
	log := r.log.With().Str("operation_id", op.OperationID).Str("saga_id", op.SagaID).Str("job_type", op.JobType).Logger()
	log.Warn().Int("asked", op.Asked+times).Time("called_at", op.CalledAt).Msg("call was never seen and is asked about no more: that it lands later cannot be ruled out")
	return r.store.AsksOver(ctx, r.control, op.OperationID, times, s.opt.retention(r.cfg.Retain).For)
}

// undoLate undoes an effect that was found after the undo had looked, once, whoever else does it too (path rule 12). What cannot be
// undone is shown as an orphan. An error means that it is not undone yet: the sweep comes again. age is for how long this goes on.
func (r *Runtime) undoLate(ctx context.Context, forward string, age time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 2*r.cfg.CallTimeout)
	defer cancel()
	u, err := r.Undo(ctx, forward, "landed late")
	switch {
	case err == nil && !u.Parked:
		crash.Point("worker.late.undone", forward)
		return r.store.Asked(ctx, r.control, forward, 0, nil)
	case u.Parked || outcome.ClassOf(err) == outcome.Fatal:
		r.log.Error().Err(err).Str("operation_id", forward).Str("standing", u.Standing).Msg("effect that landed late is not undone: a person must look")
	case age > mutedFor:
		r.log.Error().Err(err).Str("operation_id", forward).Msg("effect that landed late is still not undone: a person must look")
	default:
		return fmt.Errorf("undo of %s, which landed late: %w", forward, err)
	}
	return errors.Join(r.store.Orphan(ctx, r.control, forward, dedup.OrphanOpen), r.store.Asked(ctx, r.control, forward, 0, nil))
}
