package outbox

import "context"

// DropDays makes one pass of what the relay does every hour.
func DropDays(r *Relay, ctx context.Context) error { return r.dropDays(ctx, true) } //nolint:revive // the receiver comes first

// SweepKeys is one round of what Run does every hour.
func (r *Relay) SweepKeys(ctx context.Context) (int64, error) { return r.sweepKeys(ctx) }
