package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/outbox"
)

// Record writes the audit row of an act that another package does, inside the
// act's transaction, and stages its event: all commit or nothing. Actor, Action,
// Target and Reason of r are taken; before and after are marshalled as JSON. The
// chain is locked until the transaction ends, so call it last. Where the runtime
// stages what was emitted, use [Desk.RecordIn].
func (d *Desk) Record(ctx context.Context, tx outbox.Queries, r AuditRow, before, after any) (AuditRow, error) {
	return d.record(ctx, tx, r, before, after, false)
}

// RecordIn is [Desk.Record] in a transaction whose runtime stages what handlers emit: the event goes with the others,
// whose keys are locked in one order.
func (d *Desk) RecordIn(ctx context.Context, tx *outbox.Tx, r AuditRow, before, after any) (AuditRow, error) {
	r, err := d.record(ctx, tx, r, before, after, true)
	if err == nil && d.cfg.Stager != nil {
		tx.Emit(r.message())
	}
	return r, err
}

func (d *Desk) record(ctx context.Context, tx outbox.Queries, r AuditRow, before, after any, emitted bool) (AuditRow, error) {
	if err := errors.Join(
		checkText("actor", r.Actor, maxActor, "who acts"), checkText("reason", r.Reason, maxReason, "why"),
		checkText("action", r.Action, maxActor, "what is done"), checkText("target", r.Target, maxReason, "to what"),
	); err != nil {
		return AuditRow{}, err
	}
	seq, prev, at, err := d.lockAudit(ctx, tx)
	if err != nil {
		return AuditRow{}, err
	}
	r.Seq, r.At = seq+1, at
	return d.appendAudit(ctx, tx, r, prev, before, after, emitted)
}

// Refused is the audit's after of an attempt that was refused.
type Refused struct {
	Refused string `json:"refused"`
}

// RecordRefusal writes down, in a transaction of its own, that somebody tried and was refused (spec P2). It gives cause, joined
// with what went wrong while writing.
func (d *Desk) RecordRefusal(ctx context.Context, r AuditRow, cause error) error {
	r.Action += ".refused"
	ctx = context.WithoutCancel(ctx)
	err := pgx.BeginFunc(ctx, d.cfg.Pool, func(tx pgx.Tx) error {
		_, err := d.Record(ctx, tx, r, nil, Refused{shorten(cause.Error(), maxReason)})
		return err
	})
	if err != nil {
		return errors.Join(cause, fmt.Errorf("the refusal could not be written to the audit: %w", err))
	}
	d.cfg.Log.Warn().Str("action", r.Action).Str("actor", r.Actor).Str("target", r.Target).Err(cause).Msg("operator action refused")
	return cause
}
