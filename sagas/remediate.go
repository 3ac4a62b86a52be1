package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/outbox"
)

// Remediation is what a person did about the effects of a saga that were left to them.
type Remediation struct {
	Actor  string          // who
	Reason string          // why the saga may be closed
	Report json.RawMessage // goes into the final answer, nil for none; {"outcome":"failed"} fails a saga past its pivot
}

// Remediated is the state of a saga around a remediation, for the audit.
type Remediated struct {
	SagaID   string   `json:"saga_id"`
	Tenant   string   `json:"tenant"`
	State    string   `json:"state"`
	Decision Decision `json:"decision"`
	Open     []string `json:"open"` // steps whose effects were left to the person
}

// Remediate is [Sagas.Remediated] as a person's act: actor and reason must be given, and audit is called in the transaction
// that closes the saga, once, with the state before and after. Its error undoes the act. audit must not be nil.
func (s *Sagas) Remediate(ctx context.Context, sagaID string, r Remediation, audit func(ctx context.Context, tx *outbox.Tx, before, after Remediated) error) error {
	if r.Actor == "" || r.Reason == "" || audit == nil {
		return fmt.Errorf("remediate saga %s: actor %q, reason %q and audit must be given", sagaID, r.Actor, r.Reason)
	}
	if len(r.Report) > 0 && !json.Valid(r.Report) {
		return fmt.Errorf("remediate saga %s: the report is not JSON", sagaID)
	}
	if err := s.remediate(ctx, sagaID, r.Report, audit); err != nil {
		return err
	}
	s.cfg.Log.Info().Str("operation_id", sagaID).Str("actor", r.Actor).Str("reason", r.Reason).Msg("saga remediated")
	return nil
}

// Remediated closes a saga without an instance whose effects a person has settled: state manual, after
// [Sagas.EndWithoutInstance]. report goes into the final answer, nil for none. A saga whose instance still runs is
// refused: there the model's user task takes the report. It needs Config.InstanceEnded. Nobody is held to account: acts of
// persons go through [Sagas.Remediate].
func (s *Sagas) Remediated(ctx context.Context, sagaID string, report json.RawMessage) error {
	return s.remediate(ctx, sagaID, report, func(context.Context, *outbox.Tx, Remediated, Remediated) error { return nil })
}

func (s *Sagas) remediate(ctx context.Context, sagaID string, report json.RawMessage, audit func(ctx context.Context, tx *outbox.Tx, before, after Remediated) error) error {
	if s.cfg.InstanceEnded == nil {
		return fmt.Errorf("remediate saga %s: Config.InstanceEnded is not set", sagaID)
	}
	row, err := scanSaga(s.cfg.Domain.QueryRow(ctx, s.sql.readSaga, sagaID))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("remediate saga %s: %w", sagaID, ErrUnknown)
	case err != nil:
		return fmt.Errorf("remediate saga %s: %w", sagaID, err)
	case row.State != "manual":
		return fmt.Errorf("remediate saga %s: its state is %s, want manual", sagaID, row.State)
	}
	ended, err := s.cfg.InstanceEnded(ctx, row.Cluster, row.ProcessInstanceKey)
	switch {
	case err != nil:
		return fmt.Errorf("remediate saga %s: %w", sagaID, err)
	case !ended:
		return fmt.Errorf("remediate saga %s: process instance %d still runs; complete its user task", sagaID, row.ProcessInstanceKey)
	}
	err = s.inSaga(ctx, sagaID, "close", func(tx *outbox.Tx, row Saga) error {
		if row.ClosedAt != nil || row.State != "manual" {
			return fmt.Errorf("its state is %s meanwhile", row.State)
		}
		t, err := s.typeOf(row.Type)
		if err != nil {
			return err
		}
		steps, err := collectSteps(ctx, tx, s.sql.steps, sagaID)
		if err != nil {
			return err
		}
		e, err := ending(row, steps, report)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.sql.remediate, sagaID); err != nil {
			return err
		}
		if err := s.closeIn(ctx, tx, t, row, e, false); err != nil {
			return err
		}
		before := Remediated{SagaID: sagaID, Tenant: row.Tenant, State: row.State, Decision: row.Decision, Open: names(sagaID, e.Open)}
		after := before
		after.State, after.Open = e.State, nil
		return audit(ctx, tx, before, after)
	})
	if err != nil {
		return fmt.Errorf("remediate saga %s: %w", sagaID, err)
	}
	return nil
}
