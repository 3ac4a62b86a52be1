package operator

import (
	"context"
	"reflect"
)

// Append writes one audit row in a transaction of its own, as an act does.
func (d *Desk) Append(ctx context.Context, actor, reason string, before, after any) (AuditRow, error) {
	tx, err := d.cfg.Pool.Begin(ctx)
	if err != nil {
		return AuditRow{}, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // no effect after commit
	seq, prev, at, err := d.lockAudit(ctx, tx)
	if err != nil {
		return AuditRow{}, err
	}
	r, err := d.appendAudit(ctx, tx, AuditRow{Seq: seq + 1, At: at, Actor: actor, Action: "test", Target: "t", Reason: reason}, prev, before, after, false)
	if err != nil {
		return r, err
	}
	return r, tx.Commit(ctx)
}

// Statements gives every statement of the package by name, rendered for schema.
func Statements(schema string) map[string]string {
	out := map[string]string{}
	v := reflect.ValueOf(render(schema))
	for n := range v.NumField() {
		out[v.Type().Field(n).Name] = v.Field(n).String()
	}
	return out
}
