package sagas

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

type undoFunc func(ctx context.Context, forwardOperationID, reason string) (worker.UndoResult, error)

// undoRest undoes whatever of a given-up saga still has an effect (path rule 13): first what is in flight
// at other systems, the youngest first, since it can only land after everything committed; then the ledger
// in reverse commit order. What policy leaves to a person is parked and does not hold up the others; an undo
// that fails does, and is tried again by the model. lastTry marks it stuck. It gives the number of effects left open.
//
// It may run any number of times: each undo happens once, under its own id (path rule 12).
func (s *Sagas) undoRest(ctx context.Context, sagaID string, undo undoFunc, lastTry bool) (open int, err error) {
	row, err := scanSaga(s.cfg.Domain.QueryRow(ctx, s.sql.readSaga, sagaID))
	if err != nil {
		return 0, fmt.Errorf("saga %s: %w", sagaID, err)
	}
	if row.Decision == Undecided || row.Decision == Completed {
		return 0, outcome.Fatalf("saga", "saga %s: decision is %q; saga.undo-rest must come after a saga.give-up that gave up", sagaID, row.Decision)
	}
	if rule.Off(13) {
		return 0, nil
	}
	inFlight, err := s.inFlight(ctx, sagaID)
	if err != nil {
		return 0, err
	}
	for _, op := range inFlight {
		if err := s.undoOne(ctx, row, op.id, op.jobType, undo, lastTry); err != nil {
			return 0, err
		}
	}
	steps, err := collectSteps(ctx, s.cfg.Domain, s.sql.openSteps, sagaID)
	if err != nil {
		return 0, err
	}
	pivot, err := s.pastPivot(ctx, sagaID)
	if err != nil {
		return 0, err
	}
	for _, st := range steps {
		if pivot != "" { // never rolled back past a pivot (spec Z5): a person looks at it
			if err := s.setUndo(ctx, st.OperationID, "parked", "the pivot step "+pivot+" has committed", 0); err != nil {
				return 0, err
			}
			continue
		}
		if err := s.undoOne(ctx, row, st.OperationID, st.JobType, undo, lastTry); err != nil {
			return 0, err
		}
	}
	return s.countParked(ctx, sagaID)
}

func (s *Sagas) undoOne(ctx context.Context, row Saga, id, jobType string, undo undoFunc, lastTry bool) error {
	if err := s.setUndo(ctx, id, "running", "", 1); err != nil {
		return err
	}
	crash.Point("undo.before", id)
	res, err := undo(ctx, id, string(row.Decision))
	crash.Point("undo.after", id)
	if err == nil && res.Outcome != outcome.Success && !res.Parked && !res.Nothing {
		err = fmt.Errorf("undo ended %s", res.Outcome)
	}
	switch {
	case err != nil:
		fatal := outcome.ClassOf(err) == outcome.Fatal || res.Outcome == outcome.Fatal
		unknown := outcome.Classify(err).Reason == outcome.ReasonUnknown // keeps the retries: nobody has refused (path rule 19)
		state := "running"
		if fatal || lastTry && !unknown {
			state = "stuck"
		}
		if state == "stuck" && s.undoFailure(row.Type, jobType) == UndoParks {
			s.cfg.Log.Warn().Str("operation_id", id).Str("business_key", row.BusinessKey).Str("correlation_id", row.CorrelationID).
				Str("reason", string(row.Decision)).Err(err).Msg("compensation failed, left to a person")
			return s.park(context.WithoutCancel(ctx), row, id, "its undo failed: "+err.Error())
		}
		if markErr := s.setUndo(context.WithoutCancel(ctx), id, state, err.Error(), 0); markErr != nil {
			return markErr
		}
		s.cfg.Log.Warn().Str("operation_id", id).Str("business_key", row.BusinessKey).Str("correlation_id", row.CorrelationID).
			Str("reason", string(row.Decision)).Str("undo_state", state).Err(err).Msg("compensation failed")
		if fatal {
			return outcome.Fatalf("undo", "undo of %s: %v", id, err)
		}
		if unknown {
			return outcome.NewUnknown(fmt.Errorf("undo of %s: %w", id, err))
		}
		return outcome.NewRetryable(fmt.Errorf("undo of %s: %w", id, err), 0)
	case res.Parked:
		return s.park(ctx, row, id, res.Standing)
	default:
		return s.setUndo(ctx, id, "done", "", 0) // no effect when the undo's own transaction said so
	}
}

// park shows an effect that is left to a person, also one that has no ledger row because its step never settled.
func (s *Sagas) park(ctx context.Context, row Saga, id, why string) error {
	_, err := s.cfg.Domain.Exec(ctx, s.sql.parkStep, id, row.ID, stepName(row.ID, id, id), why)
	if err != nil {
		return fmt.Errorf("park %s: %w", id, err)
	}
	return nil
}

func (s *Sagas) setUndo(ctx context.Context, operationID, state, why string, attempts int) error {
	if _, err := s.cfg.Domain.Exec(ctx, s.sql.setUndo, operationID, state, why, attempts); err != nil {
		return fmt.Errorf("undo of %s is %s: %w", operationID, state, err)
	}
	return nil
}

// flying is an External operation whose effect is not decided.
type flying struct{ id, jobType string }

// inFlight lists those of a saga, the youngest first.
func (s *Sagas) inFlight(ctx context.Context, sagaID string) ([]flying, error) {
	rows, err := s.cfg.Domain.Query(ctx, s.sql.inFlight, sagaID)
	if err != nil {
		return nil, fmt.Errorf("operations in flight of saga %s: %w", sagaID, err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f flying, err error) { return f, row.Scan(&f.id, &f.jobType) })
}

// pastPivot gives the name of a pivot step that has committed, "" when none has.
func (s *Sagas) pastPivot(ctx context.Context, sagaID string) (name string, err error) {
	err = s.cfg.Domain.QueryRow(ctx, s.sql.pivot, sagaID).Scan(&name)
	return name, err
}

func (s *Sagas) countParked(ctx context.Context, sagaID string) (n int, err error) {
	err = s.cfg.Domain.QueryRow(ctx, s.sql.parked, sagaID).Scan(&n)
	return n, err
}

// UndoFailure says what becomes of a saga when the undo of one effect is refused, or has failed as often as the model lets it
// be tried. A failure that may pass is tried again before, either way; one whose result is unknown is asked about.
type UndoFailure int

const (
	// UndoStops keeps the order: the undo of earlier effects waits behind an incident until a person has dealt with it. The default.
	UndoStops UndoFailure = iota
	// UndoParks leaves the effect to a person, shown with the amount at risk, and goes on with the others.
	UndoParks
)

func (s *Sagas) undoFailure(typ, jobType string) UndoFailure {
	if t := s.types[typ]; t != nil {
		return t.OnUndoFailure[jobType]
	}
	return UndoStops
}
