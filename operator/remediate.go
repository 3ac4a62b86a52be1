package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
)

// ActionRemediate is the audit action of [Desk.RemediateSaga].
const ActionRemediate = "saga.remediate"

// Remediator closes sagas that were left to a person. *sagas.Sagas is one.
type Remediator interface {
	Remediate(ctx context.Context, sagaID string, r sagas.Remediation,
		audit func(ctx context.Context, tx *outbox.Tx, before, after sagas.Remediated) error) error
}

// RemediateRequest says that a person has settled the effects of a saga that no process instance will end. SagaID, Actor, Reason
// and Outcome must be set.
type RemediateRequest struct {
	SagaID string
	Actor  string
	Reason string
	// Outcome is "failed", or "completed" for a saga past its pivot whose goods were delivered by hand.
	Outcome string
	// Report is a JSON object that goes into the partner's final answer, nil for none.
	Report json.RawMessage
}

// RemediatePreview says what [Desk.RemediateSaga] would do. Its JSON field names are stable.
type RemediatePreview struct {
	SagaID   string `json:"saga_id"`
	State    string `json:"state"`
	Decision string `json:"decision"`
	Ends     string `json:"ends"` // completed, failed or expired
	Settled  []Step `json:"settled"`
	Happens  string `json:"happens"`
}

// RemediateResult says what happened. Its JSON field names are stable.
type RemediateResult struct {
	RemediatePreview
	AuditSeq int64 `json:"audit_seq"`
}

func (r RemediateRequest) check() error {
	errs := []error{
		checkText("saga", r.SagaID, 300, "its id"), checkText("actor", r.Actor, maxActor, "who acts"), checkText("reason", r.Reason, maxReason, "why"),
	}
	if !slices.Contains([]string{"completed", "failed"}, r.Outcome) {
		errs = append(errs, &FieldError{Field: "outcome", Value: r.Outcome, Want: "completed or failed"})
	}
	if _, err := r.report(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// report is the object that the saga takes, with the outcome in it.
func (r RemediateRequest) report() (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(r.Report) > 0 {
		if err := json.Unmarshal(r.Report, &fields); err != nil || fields == nil {
			return nil, &FieldError{Field: "report", Value: string(r.Report), Want: "a JSON object"}
		}
	}
	fields["outcome"] = json.RawMessage(`"` + r.Outcome + `"`)
	return json.Marshal(fields)
}

// PreviewRemediation says what a remediation would do and refuses what it could not do. It changes nothing.
func (d *Desk) PreviewRemediation(ctx context.Context, r RemediateRequest) (RemediatePreview, error) {
	if err := r.check(); err != nil {
		return RemediatePreview{}, fmt.Errorf("remediate: %w", err)
	}
	s, err := d.Saga(ctx, r.SagaID)
	if err != nil {
		return RemediatePreview{}, fmt.Errorf("remediate: %w", err)
	}
	p := RemediatePreview{SagaID: s.ID, State: s.State, Decision: s.Decision, Ends: r.Outcome, Settled: []Step{}}
	if s.State != "manual" {
		return p, fmt.Errorf("remediate saga %s: it is %s: %w", s.ID, s.State, ErrNotManual)
	}
	if s.Decision != "completed" {
		if r.Outcome == "completed" {
			return p, fmt.Errorf("remediate saga %s: it was decided %s and cannot end completed: %w", s.ID, s.Decision, ErrNotManual)
		}
		if s.Decision == "expired" {
			p.Ends = "expired"
		}
	}
	for _, step := range s.Steps {
		if step.UndoState == "parked" || step.UndoState == "stuck" || step.UndoState == "remediated" {
			p.Settled = append(p.Settled, step)
		}
	}
	p.Happens = fmt.Sprintf("saga %s is closed as %s and its partner gets the final answer; %d effects count as settled by you", s.ID, p.Ends, len(p.Settled))
	return p, nil
}

// RemediateSaga closes a saga in state manual whose process instance has ended. The audit row commits with it. What is refused
// is audited too, unless the request itself is malformed. A saga whose instance still runs is refused: its user task takes the report.
func (d *Desk) RemediateSaga(ctx context.Context, r RemediateRequest) (RemediateResult, error) {
	if d.cfg.Sagas == nil {
		return RemediateResult{}, errors.New("remediate: Config.Sagas is nil")
	}
	if err := r.check(); err != nil {
		return RemediateResult{}, fmt.Errorf("remediate: %w", err)
	}
	row := AuditRow{Actor: r.Actor, Action: ActionRemediate, Target: "saga:" + r.SagaID, Reason: r.Reason}
	preview, err := d.PreviewRemediation(ctx, r)
	if err != nil {
		return RemediateResult{}, d.RecordRefusal(ctx, row, err)
	}
	out := RemediateResult{RemediatePreview: preview}
	report, err := r.report()
	if err != nil {
		return out, err
	}
	err = d.cfg.Sagas.Remediate(ctx, r.SagaID, sagas.Remediation{Actor: r.Actor, Reason: r.Reason, Report: report},
		func(ctx context.Context, tx *outbox.Tx, before, after sagas.Remediated) error {
			written, err := d.RecordIn(ctx, tx, row, before, after)
			out.AuditSeq = written.Seq
			return err
		})
	if err != nil {
		return RemediateResult{}, d.RecordRefusal(ctx, row, err)
	}
	return out, nil
}
