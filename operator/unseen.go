package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The audit actions of [Desk.DismissCall] and [Desk.AskAgain].
const (
	ActionDismissCall = "call.dismiss"
	ActionAskAgain    = "call.ask-again"
)

// Bounds of [AskAgainRequest].For: the first hour is asked through in any case, and a supplier that shows nothing for 90 days is to be
// talked to.
const (
	MinAskFor = time.Hour
	MaxAskFor = 90 * 24 * time.Hour
)

// CallRequest names a call on [Effects].AsksOver, who acts and why. All three must be set.
type CallRequest struct {
	OperationID string // at most 500 characters
	Actor       string // at most 200 characters
	Reason      string // 1 to 500 characters
}

// AskAgainRequest also says how long the supplier is to be asked, from now: from [MinAskFor] to [MaxAskFor].
type AskAgainRequest struct {
	CallRequest
	For time.Duration
}

func (r CallRequest) check() error {
	return errors.Join(checkText("operation", r.OperationID, maxReason, "its id"), checkText("actor", r.Actor, maxActor, "who acts"),
		checkText("reason", r.Reason, maxReason, "why"))
}

func (r AskAgainRequest) check() error {
	err := r.CallRequest.check()
	if r.For < MinAskFor || r.For > MaxAskFor {
		err = errors.Join(err, &FieldError{Field: "for", Value: r.For.String(), Want: fmt.Sprintf("%s to %s", MinAskFor, MaxAskFor)})
	}
	return err
}

// CallResult says what happened. Its JSON field names are stable.
type CallResult struct {
	OperationID string     `json:"operation_id"`
	AuditSeq    int64      `json:"audit_seq"`
	SagaID      string     `json:"saga_id"`
	JobType     string     `json:"job_type"`
	DismissedAt *time.Time `json:"dismissed_at"` // nil = it is asked about again
	AskUntil    *time.Time `json:"ask_until"`    // nil = it is dismissed
	Happened    string     `json:"happened"`
}

// callBefore and callAfter are the audit's before and after.
type callBefore struct {
	Cluster            string     `json:"cluster"`
	ProcessInstanceKey Key        `json:"process_instance_key"`
	JobType            string     `json:"job_type"`
	State              string     `json:"state"`
	Asked              int        `json:"asked"`
	CalledAt           *time.Time `json:"called_at"`
	AsksOverAt         *time.Time `json:"asks_over_at"`
	DismissedAt        *time.Time `json:"dismissed_at,omitempty"`
}

type callAfter struct {
	DismissedAt *time.Time `json:"dismissed_at,omitempty"`
	AskUntil    *time.Time `json:"ask_until,omitempty"`
}

// DismissCall records that a person has settled with the supplier a call that was never seen: it leaves [Effects].AsksOver, the count and
// the metric. Its row stays until its retention is over, its story in the saga's timeline, and a call that lands after all and is seen is
// undone as before. Mark and audit row commit together.
//
// Errors: [FieldError]; [ErrNotFound]; [ErrNotUnseen] when it is asked about still, landed, or was dismissed before, also by somebody who
// was faster. A refusal is audited, unless the request is malformed; nothing else is written then.
func (d *Desk) DismissCall(ctx context.Context, r CallRequest) (CallResult, error) {
	if err := r.check(); err != nil {
		return CallResult{}, fmt.Errorf("dismiss call: %w", err)
	}
	return d.actOnCall(ctx, r, ActionDismissCall, func(tx pgx.Tx, o Operation, res *CallResult) (ok bool, err error) {
		if o.DismissedAt != nil {
			return false, fmt.Errorf("it was dismissed at %s: %w", o.DismissedAt.UTC().Format(time.RFC3339), ErrNotUnseen)
		}
		at, ok, err := d.store.Dismiss(ctx, tx, o.OperationID, *o.AsksOverAt)
		res.DismissedAt, res.Happened = &at, fmt.Sprintf("call %s is dismissed: it waits for nobody any more", o.OperationID)
		return ok, err
	})
}

// AskAgain has the supplier asked again about a call that was never seen, dismissed ones too, for as long as r.For says: at once, after 1, 10
// and 60 minutes, and at doubling distances until the time is over. A worker that serves the job type asks. What landed is undone; what is
// not seen comes back to [Effects].AsksOver. Mark and audit row commit together.
//
// Errors: as [Desk.DismissCall]; [ErrNotUnseen] also when the call's input went with its retention, so that nothing can be asked.
func (d *Desk) AskAgain(ctx context.Context, r AskAgainRequest) (CallResult, error) {
	if err := r.check(); err != nil {
		return CallResult{}, fmt.Errorf("ask again: %w", err)
	}
	return d.actOnCall(ctx, r.CallRequest, ActionAskAgain, func(tx pgx.Tx, o Operation, res *CallResult) (ok bool, err error) {
		if o.SlimmedAt != nil {
			return false, fmt.Errorf("its input went with its retention at %s: %w", o.SlimmedAt.UTC().Format(time.RFC3339), ErrNotUnseen)
		}
		until, ok, err := d.store.AskFurther(ctx, tx, o.OperationID, *o.AsksOverAt, r.For)
		res.AskUntil = &until
		res.Happened = fmt.Sprintf("call %s is asked about again until %s", o.OperationID, until.UTC().Format(time.RFC3339))
		return ok, err
	})
}

// actOnCall runs act, which is conditional on the call that was read, in one transaction with the audit row.
func (d *Desk) actOnCall(ctx context.Context, r CallRequest, action string, act func(tx pgx.Tx, o Operation, res *CallResult) (bool, error)) (CallResult, error) {
	row := AuditRow{Actor: r.Actor, Action: action, Target: "operation:" + r.OperationID, Reason: r.Reason}
	out, err := d.markCall(ctx, row, r.OperationID, act)
	if err != nil {
		err = fmt.Errorf("%s %s: %w", action, r.OperationID, err)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotUnseen) {
			err = d.RecordRefusal(ctx, row, err)
		}
		return CallResult{}, err
	}
	d.cfg.Log.Info().Str("action", action).Str("actor", r.Actor).Int64("audit_seq", out.AuditSeq).Str("operation_id", out.OperationID).
		Str("saga_id", out.SagaID).Str("job_type", out.JobType).Msg("operator acted on a call that was never seen")
	return out, nil
}

func (d *Desk) markCall(ctx context.Context, row AuditRow, operationID string, act func(tx pgx.Tx, o Operation, res *CallResult) (bool, error)) (CallResult, error) {
	tx, err := d.cfg.Pool.Begin(ctx)
	if err != nil {
		return CallResult{}, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // no effect after commit
	o, err := d.unseen(ctx, tx, operationID)
	if err != nil {
		return CallResult{}, err
	}
	out := CallResult{OperationID: o.OperationID, SagaID: o.SagaID, JobType: o.JobType}
	ok, err := act(tx, o, &out)
	if err != nil {
		return CallResult{}, err
	}
	if !ok {
		return CallResult{}, fmt.Errorf("somebody else was faster, or it landed: %w", ErrNotUnseen)
	}
	before := callBefore{
		Cluster: o.Cluster, ProcessInstanceKey: o.ProcessInstanceKey, JobType: o.JobType, State: o.State, Asked: o.Asked,
		CalledAt: o.CalledAt, AsksOverAt: o.AsksOverAt, DismissedAt: o.DismissedAt,
	}
	written, err := d.Record(ctx, tx, row, before, callAfter{DismissedAt: out.DismissedAt, AskUntil: out.AskUntil})
	if err != nil {
		return CallResult{}, err
	}
	out.AuditSeq = written.Seq
	if err := tx.Commit(ctx); err != nil {
		return CallResult{}, fmt.Errorf("commit; it may be done, a second try is refused then: %w", err)
	}
	return out, nil
}

// unseen reads a call that was asked about to the end and never seen, and refuses any other.
func (d *Desk) unseen(ctx context.Context, tx pgx.Tx, operationID string) (Operation, error) {
	ops, err := listOperations(ctx, tx, d.sql.operationsByID, []string{operationID})
	switch {
	case err != nil:
		return Operation{}, err
	case len(ops) == 0:
		return Operation{}, ErrNotFound
	}
	o := ops[0]
	switch {
	case o.AskAt != nil:
		return o, fmt.Errorf("the supplier is asked about it still, next at %s: %w", o.AskAt.UTC().Format(time.RFC3339), ErrNotUnseen)
	case o.Effect == "known":
		return o, fmt.Errorf("it was seen: %w", ErrNotUnseen)
	case o.AsksOverAt == nil:
		return o, fmt.Errorf("it is %s and nobody asks about it: %w", o.State, ErrNotUnseen)
	}
	return o, nil
}
