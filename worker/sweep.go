package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// Bounds of one pass of the sweeps.
const (
	sweepBatch = 16
	sweepLanes = 4
	goneAgain  = 5 * time.Second // until a gone answer whose element is not decided is looked at again
	purgeEvery = time.Minute
)

// Run sweeps until ctx is cancelled: expired leases, answers that are gone, calls to ask about again, operations whose retention is
// over. Any number of
// processes may run it. A [Worker] does this by itself.
func (r *Runtime) Run(ctx context.Context) error {
	var g sync.WaitGroup
	for _, s := range []struct {
		what  string
		every time.Duration
		pass  func(context.Context) error
	}{
		{"expired leases", r.cfg.SweepEvery, r.SweepLeases},
		{"answers that are gone", r.cfg.SweepEvery, r.ResolveGone},
		{"calls to ask about again", 2 * r.cfg.SweepEvery, r.AskAgain},
		{"purge", purgeEvery, func(ctx context.Context) error { _, err := r.Purge(ctx); return err }},
	} {
		g.Go(func() {
			for pause(ctx, s.every/2+rand.N(s.every)) == nil { //nolint:gosec // jitter
				if err := s.pass(ctx); err != nil && ctx.Err() == nil {
					r.log.Warn().Err(err).Str("sweep", s.what).Msg("sweep failed, will run again")
				}
			}
		})
	}
	g.Wait()
	return nil
}

// Purge does one round of deleting operations whose retention is over and that no command points to (spec D4), unless another
// process is at it. Each pass of a round is short and bounded, so is the round.
func (r *Runtime) Purge(ctx context.Context) (dedup.Purged, error) {
	unless := []string{`EXISTS (SELECT 1 FROM ` + r.cfg.Schema + `.zeebe_command c WHERE c.operation_id = o.operation_id)`}
	done, err := r.store.PurgeRound(ctx, r.control, dedup.Purging{Unless: append(unless, r.cfg.PurgeUnless...)})
	if done.Gone+done.Slimmed > 0 {
		r.log.Info().Int64("gone", done.Gone).Int64("slimmed", done.Slimmed).Int64("seen", done.Seen).Msg("operations purged")
	}
	return done, err
}

// SweepLeases takes over external operations whose lease ran out: it asks the other system, settles and answers (path rule 16).
// When the element was terminated and the process killed, nobody else comes back. It returns when all that it took are done.
func (r *Runtime) SweepLeases(ctx context.Context) error {
	if rule.Off(16) {
		return nil
	}
	ops, err := r.store.Expired(ctx, r.control, r.mux.Types(), r.cluster, sweepBatch, uuid(), r.cfg.Lease)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(sweepLanes)
	for _, op := range ops {
		g.Go(func() error {
			since := time.Now()
			t, err := r.sweepTask(ctx, op)
			if err != nil {
				return err
			}
			r.taskLog(t).Info().Str("state", string(op.State)).Msg("operation taken over after its lease ran out")
			res := r.untilKnown(ctx, t, func() (result, bool) {
				return r.drive(ctx, t, &hold{op: op, fence: op.Fence, since: since, sweep: true})
			})
			if res.kind == retry {
				r.taskLog(t).Warn().Err(res.err).Msg("operation not settled yet")
			}
			return nil
		})
	}
	return g.Wait()
}

func (r *Runtime) sweepTask(ctx context.Context, op dedup.Operation) (*task, error) {
	m := metaFrom(op)
	if r.undo[op.JobType] {
		forward := strings.TrimSuffix(op.OperationID, dedup.UndoSuffix)
		fop, found, err := r.store.Lookup(ctx, r.control, forward)
		if err != nil {
			return nil, err
		}
		s := r.mux.forward[fop.JobType]
		if !found || s == nil || s.opt.undo == nil {
			return nil, fmt.Errorf("undo %s: its forward operation is not known here", op.OperationID)
		}
		t := r.undoTask(s, fop, m, op.JobKey != 0, "resumed")
		t.meta.Key = op.JobKey
		t.job = op.JobKey != 0
		return t, nil
	}
	s := r.mux.forward[op.JobType]
	if s == nil || s.shape != shapeExternal {
		return nil, fmt.Errorf("operation %s: job type %q has no external handler here", op.OperationID, op.JobType)
	}
	if op.SagaID != "" && !s.opt.control && r.cfg.Saga == nil {
		return nil, fmt.Errorf("operation %s: belongs to saga %s, and this process runs without a saga gate", op.OperationID, op.SagaID)
	}
	return &task{spec: s, meta: m, input: op.Input, fp: op.Fingerprint, job: op.JobKey != 0, control: s.opt.control}, nil
}

// ResolveGone finds out what became of answers that the engine did not accept (path rule 14). An element that completed proves
// that the answer had arrived; one that was terminated proves an orphan, which is undone or parked by the worker's policy;
// anything else stays shown. Without Elements everything stays shown.
func (r *Runtime) ResolveGone(ctx context.Context) error {
	if r.cfg.Elements == nil {
		return nil
	}
	var rows []zeebe.Row
	b := &pgx.Batch{}
	r.queue.QueueClaimGone(b, sweepBatch, goneAgain, &rows)
	if err := r.control.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("claim gone answers: %w", err)
	}
	var errs []error
	for _, row := range rows {
		errs = append(errs, r.resolveGone(ctx, row))
	}
	return errors.Join(errs...)
}

func (r *Runtime) resolveGone(ctx context.Context, row zeebe.Row) error {
	state := ElementTerminated
	if !rule.Off(14) {
		var err error
		if state, err = r.cfg.Elements.ElementState(ctx, row.ElementInstanceKey); err != nil {
			return fmt.Errorf("element %d: %w", row.ElementInstanceKey, err)
		}
	}
	switch state {
	case ElementCompleted:
		return r.dropCommand(ctx, row.ID)
	case ElementTerminated:
		if row.Kind == zeebe.KindThrow && !rule.Off(14) {
			return r.thrown(ctx, row)
		}
		return r.orphan(ctx, row)
	default:
		return nil
	}
}

// thrown deals with a BPMN error whose task was terminated: by that very error, whose reply was lost, or by something else before it
// came. Only the job's own state tells. Where it does not (yet), an effect that may stand behind the error, as behind OUTCOME_UNKNOWN,
// stays shown: the model may be at it already.
func (r *Runtime) thrown(ctx context.Context, row zeebe.Row) error {
	state := ""
	if js, ok := r.cfg.Elements.(JobStates); ok {
		var err error
		if state, err = js.JobState(ctx, row.JobKey); err != nil {
			return fmt.Errorf("job %d: %w", row.JobKey, err)
		}
	}
	switch state {
	case jobErrorThrown:
		return r.dropCommand(ctx, row.ID)
	case jobCanceled:
		return r.orphan(ctx, row)
	}
	op, found, err := r.store.Lookup(ctx, r.control, row.OperationID)
	if err != nil || found && op.Effect != dedup.EffectNone {
		return err
	}
	return r.orphan(ctx, row)
}

func (r *Runtime) dropCommand(ctx context.Context, id int64) error {
	b := &pgx.Batch{}
	r.queue.QueueDrop(b, id)
	return r.control.SendBatch(ctx, b).Close()
}

// orphan deals with an operation whose element was terminated before its answer came.
func (r *Runtime) orphan(ctx context.Context, row zeebe.Row) error {
	op, found, err := r.store.Lookup(ctx, r.control, row.OperationID)
	if err != nil {
		return err
	}
	s := r.mux.forward[op.JobType]
	switch {
	case found && s == nil && !r.undo[op.JobType]:
		return nil // another process knows the handler
	case !found, s == nil, s.opt.control, op.State == dedup.Revoked && op.Effect != dedup.EffectKnown && op.Class != outcome.Success, !hasEffect(s, op) && op.Effect != dedup.EffectMaybe:
		return r.noOrphan(ctx, op, row) // nothing that could be left behind
	case op.JobKey != row.JobKey || op.Cluster != row.Cluster:
		return r.dropCommand(ctx, row.ID) // a repeat's answer; the operation belongs to another job
	case !op.UndoneAt.IsZero():
		return r.noOrphan(ctx, op, row)
	}
	log := r.log.With().Str("operation_id", op.OperationID).Str("business_key", op.BusinessKey).Int64("process_instance_id", op.ProcessInstanceKey).Str("job_type", op.JobType).Logger()
	if op.Orphan == "" {
		log.Warn().Msg("orphan: the element was terminated before the answer came")
		if err := r.store.Orphan(ctx, r.control, op.OperationID, dedup.OrphanOpen); err != nil {
			return err
		}
	}
	if s.opt.orphans == Park || s.opt.undo == nil {
		if err := r.store.Orphan(ctx, r.control, op.OperationID, dedup.OrphanParked); err != nil {
			return err
		}
		b := &pgx.Batch{}
		r.queue.QueuePark(b, row.ID, "orphan: its policy leaves it to a person")
		return r.control.SendBatch(ctx, b).Close()
	}
	uctx, cancel := context.WithTimeout(ctx, 2*r.cfg.CallTimeout)
	defer cancel()
	u, err := r.Undo(uctx, op.OperationID, "orphan")
	switch {
	case outcome.ClassOf(err) == outcome.Fatal || u.Parked:
		log.Error().Err(err).Str("standing", u.Standing).Msg("orphan cannot be undone: a person must look")
		if err := r.store.Orphan(ctx, r.control, op.OperationID, dedup.OrphanParked); err != nil {
			return err
		}
		b := &pgx.Batch{}
		r.queue.QueuePark(b, row.ID, "orphan: its undo failed")
		return r.control.SendBatch(ctx, b).Close()
	case err != nil:
		log.Warn().Err(err).Msg("orphan not undone yet")
		return nil // shown as open; the row comes up again
	}
	// The undo may be the saga's, from before the orphan was marked: it did not know of the mark.
	if err := r.store.Orphan(ctx, r.control, op.OperationID, dedup.OrphanUndone); err != nil {
		return err
	}
	log.Info().Str("undo", u.OperationID).Bool("nothing", u.Nothing).Msg("orphan undone")
	return r.dropCommand(ctx, row.ID)
}

// noOrphan drops an answer that left nothing behind, and takes back that its operation was shown as an orphan: somebody else, such as
// saga.undo-rest, undid it or found nothing since.
func (r *Runtime) noOrphan(ctx context.Context, op dedup.Operation, row zeebe.Row) error {
	if op.Orphan == dedup.OrphanOpen {
		if err := r.store.Orphan(ctx, r.control, op.OperationID, dedup.OrphanUndone); err != nil {
			return err
		}
	}
	return r.dropCommand(ctx, row.ID)
}

// Types lists the job types this runtime serves, sorted.
func (r *Runtime) Types() []string { return slices.Clone(r.mux.Types()) }
