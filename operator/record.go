package operator

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Record writes the audit row of an act that another package does, inside the
// act's transaction: both commit or neither. Actor, Action, Target and Reason of
// r are taken; before and after are marshalled as JSON. The chain is locked until
// the transaction ends, so call it last.
func (d *Desk) Record(ctx context.Context, tx pgx.Tx, r AuditRow, before, after any) (AuditRow, error) {
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
	return d.appendAudit(ctx, tx, r, prev, before, after)
}
