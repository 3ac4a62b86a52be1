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
// such answer: a call may be on its way for longer than anybody waits (path rule 11).
func askAfter() []time.Duration { return []time.Duration{time.Minute, 10 * time.Minute, time.Hour} }

// Bounds of asking again.
const (
	lateGrace = 30 * time.Second // that the finder of a late effect has for its undo, before the sweep takes it
	askFor    = 24 * time.Hour   // an answer that stays unknown, or an undo that does not end, is left to a person then
)

// askNext gives the wait before the next question after so many answers of "not happened"; nil = enough.
func askNext(asked int) *time.Duration {
	after := askAfter()
	if asked >= len(after) || rule.Off(11) {
		return nil
	}
	d := after[asked]
	if asked > 0 {
		d -= after[asked-1]
	}
	return &d
}

// AskAgain asks other systems again about calls that they had not seen, 1, 10 and 60 minutes after they said so, and undoes what
// landed late and nobody has undone: of a revoked operation at once; one that was only let go goes on from the late result, and is
// answered or undone as any other. It returns when all that it took are done.
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
	case op.Effect == dedup.EffectKnown || s.resolve == nil:
		return never()
	}
	t := &task{spec: s, meta: metaFrom(op), input: op.Input}
	log := r.taskLog(t)
	doc, err := r.resolve(ctx, t)
	switch {
	case errors.Is(err, ErrNotHappened):
		return r.store.Asked(ctx, r.control, op.OperationID, 1, askNext(op.Asked+1))
	case err != nil && op.ReadAt.Sub(op.AskFrom) > askFor:
		log.Error().Err(err).Msg("cannot find out whether a call landed late: a person must look")
		return errors.Join(r.store.Orphan(ctx, r.control, op.OperationID, dedup.OrphanOpen), never())
	case err != nil:
		log.Warn().Err(err).Msg("cannot find out whether a call landed late, will ask again")
		return r.store.Asked(ctx, r.control, op.OperationID, 0, askNext(min(op.Asked, len(askAfter())-1)))
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
		return r.undoLate(ctx, op.OperationID, op.ReadAt.Sub(op.AskFrom))
	case dedup.LateResumed:
		log.Warn().Msg("external call landed after it was taken for lost, the operation goes on from its result")
		return nil
	default:
		return never() // somebody else settled it meanwhile
	}
}

// undoLate undoes an effect that was found after the undo had looked, once, whoever else does it too (path rule 12). What cannot be
// undone is shown as an orphan. An error means that it is not undone yet: the sweep comes again. age is for how long this goes on.
func (r *Runtime) undoLate(ctx context.Context, forward string, age time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 2*r.cfg.CallTimeout)
	defer cancel()
	u, err := r.Undo(ctx, forward, "landed after its undo")
	switch {
	case err == nil && !u.Parked:
		crash.Point("worker.late.undone", forward)
		return r.store.Asked(ctx, r.control, forward, 0, nil)
	case u.Parked || outcome.ClassOf(err) == outcome.Fatal:
		r.log.Error().Err(err).Str("operation_id", forward).Str("standing", u.Standing).Msg("effect that landed late is not undone: a person must look")
	case age > askFor:
		r.log.Error().Err(err).Str("operation_id", forward).Msg("effect that landed late is still not undone: a person must look")
	default:
		return fmt.Errorf("undo of %s, which landed late: %w", forward, err)
	}
	return errors.Join(r.store.Orphan(ctx, r.control, forward, dedup.OrphanOpen), r.store.Asked(ctx, r.control, forward, 0, nil))
}
