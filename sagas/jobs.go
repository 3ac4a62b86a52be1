package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

// Job types of the saga machinery. Their tasks map the same correlation inputs as any other task.
const (
	JobBegin    = "saga.begin"     // first task: binds the saga to its process instance
	JobGiveUp   = "saga.give-up"   // first task of each undo path; header reason: failed, expired or cancelled
	JobUndoRest = "saga.undo-rest" // last task of each undo path; output undoOpen
	JobClose    = "saga.close"     // last task of the process: final state and answer
)

// MessageCancel is the message a model's cancel path waits for; its correlation key is the saga id.
const MessageCancel = "saga.cancel"

// Install registers the handlers of the saga machinery. The worker that runs them needs [Sagas.Hook] as its Saga.
// What they did is known as long as the longest retention among the types (spec D1).
func (s *Sagas) Install(mux *worker.Mux) {
	kept := worker.RetainDefault
	for _, t := range s.types {
		kept = max(kept, t.Retention)
	}
	retain := worker.Retain(kept)
	mux.Handle(JobBegin, worker.Transactional(s.jobBegin, worker.SagaControl(), retain, worker.NoEffect(), worker.Throws(CodeNotMine)))
	mux.Handle(JobGiveUp, worker.Transactional(s.jobGiveUp, worker.SagaControl(), retain, worker.NoEffect(), worker.Throws(CodeNotMine)))
	mux.Handle(JobUndoRest, worker.External(worker.Remote[undoRestIn, undoRestOut, undoRestOut]{Call: s.callUndoRest, Settle: s.settleUndoRest},
		worker.SagaControl(), retain, worker.NoEffect(), worker.KeyValidFor(365*24*time.Hour), worker.SLA(24*time.Hour)))
	mux.Handle(JobClose, worker.Transactional(s.jobClose, worker.SagaControl(), retain, worker.NoEffect(), worker.Throws(CodeNotMine)))
}

type beginIn struct{}

type beginOut struct{}

// jobBegin binds the saga to this process instance, once (path rule 15). Any other instance ends here without effect.
func (s *Sagas) jobBegin(ctx context.Context, tx *outbox.Tx, job worker.Job[beginIn]) (beginOut, error) {
	tag, err := tx.Exec(ctx, s.sql.begin, job.SagaID, job.Cluster, job.ProcessInstanceKey, rule.Off(15))
	if err != nil {
		return beginOut{}, err
	}
	if tag.RowsAffected() == 1 {
		return beginOut{}, nil
	}
	row, err := s.read(ctx, tx, job.SagaID)
	switch {
	case errors.Is(err, ErrUnknown):
		return beginOut{}, notMine(fmt.Sprintf("saga %s is unknown here", job.SagaID))
	case err != nil:
		return beginOut{}, err
	case row.ClosedAt != nil:
		return beginOut{}, notMine(fmt.Sprintf("saga %s is closed", job.SagaID))
	}
	return beginOut{}, notMine(fmt.Sprintf("saga %s belongs to process instance %d of cluster %s", job.SagaID, row.ProcessInstanceKey, row.Cluster))
}

type giveUpIn struct {
	ErrorCode string `json:"errorCode,omitempty"` // code of the error that led here, where the model maps it
}

type giveUpOut struct {
	SagaDecision Decision `json:"sagaDecision"`
	GaveUp       bool     `json:"gaveUp"` // this path owns the undo
}

// jobGiveUp takes the gate exclusively and decides against the saga, if nobody has decided before (path rule 10).
func (s *Sagas) jobGiveUp(ctx context.Context, tx *outbox.Tx, job worker.Job[giveUpIn]) (giveUpOut, error) {
	d := Decision(job.Headers["reason"])
	if !slices.Contains([]Decision{Failed, Expired, Cancelled}, d) {
		return giveUpOut{}, outcome.Fatalf("saga", "header reason of %s is %q, want failed, expired or cancelled", job.ElementID, job.Headers["reason"])
	}
	won, decision, err := s.giveUp(ctx, tx, job.SagaID, d, job.In.ErrorCode, job.Meta)
	return giveUpOut{SagaDecision: decision, GaveUp: won}, err
}

// giveUp decides against a saga. won is false when it had been decided; decision is the one that stands.
func (s *Sagas) giveUp(ctx context.Context, tx *outbox.Tx, sagaID string, d Decision, code string, m worker.Meta) (won bool, decision Decision, err error) {
	if !rule.Off(10) {
		if _, err := tx.Exec(ctx, s.sql.lockExclusive, sagaID); err != nil {
			return false, "", err
		}
	}
	row, err := s.read(ctx, tx, sagaID)
	if err != nil {
		return false, "", notFoundIsNotMine(err)
	}
	if m.ProcessInstanceKey != 0 && (row.ProcessInstanceKey != m.ProcessInstanceKey || row.Cluster != m.Cluster) && !rule.Off(15) {
		return false, "", notMine(fmt.Sprintf("saga %s belongs to process instance %d of cluster %s", sagaID, row.ProcessInstanceKey, row.Cluster))
	}
	if code == "" {
		if code, err = s.reason(ctx, tx, sagaID, d); err != nil {
			return false, "", err
		}
	}
	tag, err := tx.Exec(ctx, s.sql.decide, sagaID, string(d), code, rule.Off(10))
	if err != nil {
		return false, "", err
	}
	if tag.RowsAffected() == 0 {
		return false, row.Decision, nil
	}
	row.Decision, row.Reason = d, code
	t, err := s.typeOf(row.Type)
	if err != nil {
		return false, "", outcome.NewFatal(err)
	}
	if t.OnGiveUp != nil {
		if err := t.OnGiveUp(ctx, tx, row.attempt(), Ending{Decision: d, Code: code}); err != nil {
			return false, "", fmt.Errorf("on give up of saga %s: %w", sagaID, err)
		}
	}
	p := row.progress()
	p.Decision, p.Code = d, code
	tx.Emit(p.message(EventCompensating, row.BusinessKey))
	return true, d, nil
}

// reason is the code of a give-up: what the last refused step said, or the kind of ending.
func (s *Sagas) reason(ctx context.Context, tx *outbox.Tx, sagaID string, d Decision) (code string, err error) {
	switch d {
	case Expired:
		return "deadline", nil
	case Cancelled:
		return "cancelled", nil
	}
	err = tx.QueryRow(ctx, s.sql.failure, sagaID).Scan(&code)
	if errors.Is(err, pgx.ErrNoRows) {
		return "failed", nil
	}
	return code, err
}

func notFoundIsNotMine(err error) error {
	if errors.Is(err, ErrUnknown) {
		return notMine(err.Error())
	}
	return err
}

type undoRestIn struct{}

type undoRestOut struct {
	UndoOpen int `json:"undoOpen"` // effects left to a person
}

func (s *Sagas) callUndoRest(ctx context.Context, c worker.Call[undoRestIn]) (undoRestOut, error) {
	open, err := s.undoRest(ctx, c.SagaID, c.Undo, c.Retries <= 1)
	return undoRestOut{UndoOpen: open}, err
}

func (s *Sagas) settleUndoRest(ctx context.Context, tx *outbox.Tx, job worker.Job[undoRestIn], res undoRestOut) (undoRestOut, error) {
	return res, s.undoEnded(ctx, tx, job.SagaID)
}

// undoEnded says in state and event how the undo ended: all undone, or waiting for a person.
func (s *Sagas) undoEnded(ctx context.Context, tx *outbox.Tx, sagaID string) error {
	row, err := s.read(ctx, tx, sagaID)
	if err != nil {
		return err
	}
	steps, err := collectSteps(ctx, tx, s.sql.steps, sagaID)
	if err != nil {
		return err
	}
	e := Ending{}
	for _, st := range steps {
		switch st.UndoState {
		case "done":
			e.Undone = append(e.Undone, st.OperationID)
		case "parked":
			e.Open = append(e.Open, st.OperationID)
		}
	}
	state, event := "compensating", EventCompensated
	if len(e.Open) > 0 {
		state, event = "manual", EventParked
	}
	if _, err := tx.Exec(ctx, s.sql.setState, sagaID, state); err != nil {
		return err
	}
	p := row.progress()
	p.Decision, p.Code, p.Undone, p.Open = row.Decision, row.Reason, names(sagaID, e.Undone), names(sagaID, e.Open)
	tx.Emit(p.message(event, row.BusinessKey))
	return nil
}

type closeIn struct {
	Remediation json.RawMessage `json:"remediation,omitempty"` // what a person reported; {"outcome":"failed"} fails a saga past its pivot
	Held        []*string       `json:"held,omitempty"`        // operation ids whose outputs the process holds (path rule 14); absent = not checked
}

type closeOut struct {
	SagaState string `json:"sagaState"`
}

// jobClose ends the saga: final state, final answer, the domain's last word.
func (s *Sagas) jobClose(ctx context.Context, tx *outbox.Tx, job worker.Job[closeIn]) (closeOut, error) {
	// A forward step whose element was terminated may be inside its transaction still. It commits before we look at the ledger, or
	// finds the saga closed: between the two its effect would stand for ever, with nobody who knows of it (path rules 10, 14).
	if !rule.Off(10) {
		if _, err := tx.Exec(ctx, s.sql.lockExclusive, job.SagaID); err != nil {
			return closeOut{}, err
		}
	}
	row, err := s.read(ctx, tx, job.SagaID)
	if err != nil {
		return closeOut{}, notFoundIsNotMine(err)
	}
	if (row.ProcessInstanceKey != job.ProcessInstanceKey || row.Cluster != job.Cluster) && !rule.Off(15) {
		return closeOut{}, notMine(fmt.Sprintf("saga %s belongs to process instance %d of cluster %s", row.ID, row.ProcessInstanceKey, row.Cluster))
	}
	t, err := s.typeOf(row.Type)
	if err != nil {
		return closeOut{}, outcome.NewFatal(err)
	}
	remediation := job.In.Remediation
	if string(remediation) == "null" {
		remediation = nil
	}
	steps, err := collectSteps(ctx, tx, s.sql.steps, row.ID)
	if err != nil {
		return closeOut{}, err
	}
	e, err := ending(row, steps, remediation)
	if err != nil {
		return closeOut{}, err
	}
	if remediation != nil {
		if _, err := tx.Exec(ctx, s.sql.remediate, row.ID); err != nil {
			return closeOut{}, err
		}
	}
	if err := s.markOrphans(ctx, tx, row, steps, job.In.Held); err != nil {
		return closeOut{}, err
	}
	return closeOut{SagaState: e.State}, s.closeIn(ctx, tx, t, row, e, false)
}

// markOrphans finds effects of a completed saga that its process does not know of (path rule 14): committed,
// compensable, and not among the operations whose outputs it holds. The sweep undoes or parks them.
func (s *Sagas) markOrphans(ctx context.Context, tx *outbox.Tx, row Saga, steps []StepRow, held []*string) error {
	if row.Decision != Completed || held == nil {
		return nil
	}
	for _, st := range steps {
		known := slices.ContainsFunc(held, func(id *string) bool { return id != nil && *id == st.OperationID })
		if known || st.Pivot || st.UndoState != "open" {
			continue
		}
		if _, err := tx.Exec(ctx, s.sql.orphan, st.OperationID); err != nil {
			return err
		}
		s.cfg.Log.Warn().Str("operation_id", st.OperationID).Str("business_key", row.BusinessKey).Str("correlation_id", row.CorrelationID).
			Int64("process_instance_id", row.ProcessInstanceKey).Msg("orphaned effect found at close")
	}
	return nil
}
