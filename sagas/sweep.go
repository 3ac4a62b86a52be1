package sagas

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

const sweepBatch = 50

// Run does what nobody else comes back for, until ctx is cancelled, then gives nil: starts whose fast path was
// lost, sagas that never began and are past their deadline, sagas whose instance was ended from outside, effects
// orphaned by a completed process. Any number of processes may run it. Errors are logged and tried again.
func (s *Sagas) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := s.flushPolls(context.WithoutCancel(ctx)); err != nil {
				s.cfg.Log.Debug().Err(err).Msg("poll counts lost at the end")
			}
			return nil
		case <-timer.C:
		case <-s.wake:
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Msg("saga sweep failed, will run again")
		}
		timer.Reset(s.cfg.SweepEvery/2 + rand.N(s.cfg.SweepEvery)) //nolint:gosec // jitter
	}
}

// Sweep does one round of what Run does. It goes on after an error and gives all of them.
func (s *Sagas) Sweep(ctx context.Context) error {
	return errors.Join(s.sweepStarts(ctx), s.sweepAbandoned(ctx), s.sweepEnded(ctx), s.sweepOrphans(ctx), s.sweepStuck(ctx), s.sweepBreaches(ctx), s.sweepGauges(ctx), s.flushPolls(ctx))
}

// sweepStarts takes up records whose saga was never started. Their next turn is pushed out as they are taken.
func (s *Sagas) sweepStarts(ctx context.Context) error {
	rows, err := s.cfg.Records.Query(ctx, s.rec.due, sweepBatch)
	if err != nil {
		return fmt.Errorf("starts due: %w", err)
	}
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (record, error) { return scanRecord(row) })
	if err != nil {
		return fmt.Errorf("starts due: %w", err)
	}
	var errs []error
	for _, r := range due {
		if s.types[r.Type] == nil {
			continue // another process declares it
		}
		errs = append(errs, s.begin(ctx, r))
	}
	return errors.Join(errs...)
}

// sweepAbandoned ends sagas that no process instance ever took up: past the deadline there is nothing to undo
// but the domain's own rows. An instance that comes later finds the saga closed and ends without effect.
func (s *Sagas) sweepAbandoned(ctx context.Context) error {
	ids, err := s.ids(ctx, s.sql.abandoned, sweepBatch)
	if err != nil {
		return fmt.Errorf("abandoned sagas: %w", err)
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, s.end(ctx, id, Expired, "deadline", func(row Saga) bool { return row.BegunAt == nil && row.Decision == Undecided }))
	}
	return errors.Join(errs...)
}

// sweepEnded finds sagas whose process instance is gone although they are not closed: cancelled from outside,
// say. They get from us what their model would have done (path rule 13).
func (s *Sagas) sweepEnded(ctx context.Context) error {
	if s.cfg.InstanceEnded == nil || s.cfg.Undo == nil || rule.Off(13) {
		return nil
	}
	rows, err := s.cfg.Domain.Query(ctx, s.sql.overdue, s.cfg.BeginWithin, sweepBatch)
	if err != nil {
		return fmt.Errorf("overdue sagas: %w", err)
	}
	overdue, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Saga, error) { return scanSaga(row) })
	if err != nil {
		return fmt.Errorf("overdue sagas: %w", err)
	}
	var errs []error
	for _, row := range overdue {
		if s.types[row.Type] == nil || row.Decision == Completed && row.State == "manual" {
			continue
		}
		ended, err := s.cfg.InstanceEnded(ctx, row.Cluster, row.ProcessInstanceKey)
		if err != nil {
			errs = append(errs, fmt.Errorf("instance of saga %s: %w", row.ID, err))
			continue
		}
		switch {
		case !ended:
		case row.Decision == Completed:
			errs = append(errs, s.leaveToPerson(ctx, row.ID))
		default:
			errs = append(errs, s.EndWithoutInstance(ctx, row.ID))
		}
	}
	return errors.Join(errs...)
}

// leaveToPerson shows a saga as manual whose instance is gone past the pivot: it is never rolled back (spec Z5), and
// what was left to do only a person can know. [Sagas.Remediated] closes it.
func (s *Sagas) leaveToPerson(ctx context.Context, sagaID string) error {
	err := s.inSaga(ctx, sagaID, "left", func(tx *outbox.Tx, row Saga) error {
		if row.ClosedAt != nil || row.State == "manual" {
			return nil
		}
		if _, err := tx.Exec(ctx, s.sql.setState, sagaID, "manual"); err != nil {
			return err
		}
		p := row.progress()
		p.Decision, p.Code = row.Decision, codeInstanceEnded
		tx.Emit(p.message(EventParked, row.BusinessKey))
		return nil
	})
	if err != nil {
		return fmt.Errorf("saga %s without its instance: %w", sagaID, err)
	}
	return nil
}

// codeInstanceEnded is the reason of what happens because a process instance is gone.
const codeInstanceEnded = "instance-ended"

// undoAlone is Config.Undo where no model stands behind it: an undo that ends FATAL makes no incident that a person could
// resolve, so its effect is left to a person.
func (s *Sagas) undoAlone(ctx context.Context, forwardOperationID, reason string) (worker.UndoResult, error) {
	res, err := s.cfg.Undo(ctx, forwardOperationID, reason)
	if err != nil && outcome.ClassOf(err) == outcome.Fatal {
		res.Parked, res.Standing = true, "its undo ended FATAL: "+err.Error()
		return res, nil
	}
	return res, err
}

// EndWithoutInstance gives up, undoes and closes a saga whose process instance is gone. The caller must be sure
// that it is. It needs Config.Undo, may be repeated, and does nothing to a saga that has completed or is closed.
// Effects that are left to a person keep the saga open, in state manual.
func (s *Sagas) EndWithoutInstance(ctx context.Context, sagaID string) error {
	if s.cfg.Undo == nil {
		return fmt.Errorf("end saga %s: Config.Undo is not set", sagaID)
	}
	err := s.inSaga(ctx, sagaID, "give-up", func(tx *outbox.Tx, row Saga) error {
		if row.ClosedAt != nil || row.Decision != Undecided {
			return nil
		}
		d, code := Failed, codeInstanceEnded
		var now time.Time
		if err := tx.QueryRow(ctx, s.sql.now).Scan(&now); err != nil {
			return err
		}
		if now.After(row.Deadline) {
			d, code = Expired, "deadline"
		}
		_, _, err := s.giveUp(ctx, tx, sagaID, d, code, worker.Meta{})
		return err
	})
	if err != nil {
		return fmt.Errorf("end saga %s: %w", sagaID, err)
	}
	row, err := scanSaga(s.cfg.Domain.QueryRow(ctx, s.sql.readSaga, sagaID))
	if err != nil || row.ClosedAt != nil || row.Decision == Completed {
		return err
	}
	open, err := s.undoRest(ctx, sagaID, s.undoAlone, false)
	if err != nil {
		return fmt.Errorf("end saga %s: %w", sagaID, err)
	}
	if open > 0 {
		return s.inSaga(ctx, sagaID, "parked", func(tx *outbox.Tx, row Saga) error {
			if row.State == "manual" {
				return nil
			}
			return s.undoEnded(ctx, tx, sagaID)
		})
	}
	return s.end(ctx, sagaID, row.Decision, row.Reason, func(row Saga) bool { return row.Decision != Undecided })
}

// end closes a saga without its model. Under the gate held exclusively, it first asks whether it still may.
func (s *Sagas) end(ctx context.Context, sagaID string, d Decision, code string, may func(Saga) bool) error {
	err := s.inSaga(ctx, sagaID, "close", func(tx *outbox.Tx, row Saga) error {
		t := s.types[row.Type]
		if row.ClosedAt != nil || t == nil || !may(row) {
			return nil
		}
		if row.sandbox() {
			t = t.sandboxed()
		}
		undecided := row.Decision == Undecided
		if undecided {
			row.Decision, row.Reason = d, code
		}
		steps, err := collectSteps(ctx, tx, s.sql.steps, sagaID)
		if err != nil {
			return err
		}
		e, err := ending(row, steps, nil)
		if err != nil {
			return err
		}
		if undecided && t.OnGiveUp != nil {
			if err := t.OnGiveUp(ctx, tx, row.attempt(), Ending{Decision: d, Code: code}); err != nil {
				return err
			}
		}
		return s.closeIn(ctx, tx, t, row, e, undecided)
	})
	if err != nil {
		return fmt.Errorf("end saga %s: %w", sagaID, err)
	}
	return nil
}

// inSaga runs fn in a domain transaction that holds the saga's gate exclusively, and stages what it emits. act
// makes the ids of the messages differ from those of other acts on the saga.
func (s *Sagas) inSaga(ctx context.Context, sagaID, act string, fn func(tx *outbox.Tx, row Saga) error) error {
	row, err := scanSaga(s.cfg.Domain.QueryRow(ctx, s.sql.readSaga, sagaID))
	if err != nil {
		return err
	}
	o := row.origin(sagaID)
	o.IDSeed = sagaID + ":runtime:" + act
	return s.inDomain(ctx, o, func(tx *outbox.Tx) error {
		if _, err := tx.Exec(ctx, s.sql.lockExclusive, sagaID); err != nil {
			return err
		}
		row, err := s.read(ctx, tx, sagaID)
		if err != nil {
			return err
		}
		return fn(tx, row)
	})
}

// sweepOrphans undoes what saga.close found to be orphaned (path rule 14), by each worker's policy.
func (s *Sagas) sweepOrphans(ctx context.Context) error {
	if s.cfg.Undo == nil || rule.Off(13) {
		return nil
	}
	steps, err := collectSteps(ctx, s.cfg.Domain, s.sql.orphans, sweepBatch)
	if err != nil {
		return fmt.Errorf("orphaned effects: %w", err)
	}
	var errs []error
	for _, st := range steps {
		if err := s.setUndo(ctx, st.OperationID, "running", "", 1); err != nil {
			errs = append(errs, err)
			continue
		}
		res, err := s.cfg.Undo(ctx, st.OperationID, "orphan")
		switch {
		case err != nil:
			state := "running"
			if outcome.ClassOf(err) == outcome.Fatal {
				state = "stuck"
			}
			errs = append(errs, err, s.setUndo(ctx, st.OperationID, state, err.Error(), 0))
		case res.Parked:
			errs = append(errs, s.setUndo(ctx, st.OperationID, "parked", res.Standing, 0))
		default:
			errs = append(errs, s.setUndo(ctx, st.OperationID, "done", "", 0))
		}
	}
	return errors.Join(errs...)
}

// flushPolls writes the counts of polls to the records. Counts that cannot be written are lost: they are statistics.
func (s *Sagas) flushPolls(ctx context.Context) error {
	ids, polls, violations := s.polls.take()
	if len(ids) == 0 {
		return nil
	}
	if _, err := s.cfg.Records.Exec(ctx, s.rec.polls, ids, polls, violations); err != nil {
		return fmt.Errorf("count polls: %w", err)
	}
	return nil
}

func (s *Sagas) ids(ctx context.Context, sql string, args ...any) ([]string, error) {
	rows, err := s.cfg.Domain.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
