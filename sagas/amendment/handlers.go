package amendment

import (
	"context"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

const whySettled = "past the pivot: another amendment or a refund moves the money again"

// AmendmentBegin opens the booking.
func (d desk) AmendmentBegin() AmendmentBeginHandler {
	return AmendmentBeginTx(d.begin, AmendmentBeginUndoTx(d.back), worker.Orphan(worker.Undo), d.retain, d.own)
}

// AmendmentReserve reserves the new segment. One handler serves both suppliers, and the hotel ignores keys.
func (d desk) AmendmentReserve() AmendmentReserveHandler {
	return AmendmentReserveExternal(worker.Remote[AmendmentReserveIn, held, AmendmentReserveOut]{
		Call: d.reserve,
		Resolve: func(ctx context.Context, c worker.Call[AmendmentReserveIn]) (held, error) {
			return d.reserved(ctx, c.Key, c.BusinessKey, c.In.Kind, c.In.Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[AmendmentReserveIn], res held) (AmendmentReserveOut, error) {
			return AmendmentReserveOut{NewReservation: res.ID}, d.reservedHere(ctx, tx, job.Meta, job.In.Kind, job.In.Segment, res)
		},
	}, AmendmentReserveUndo(worker.RemoteUndo[AmendmentReserveIn, held]{
		Call: func(ctx context.Context, key string, u worker.UndoOf[AmendmentReserveIn, held]) error {
			return d.release(ctx, key, u.In.Kind, u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[AmendmentReserveIn, held]) error {
			return d.released(ctx, u.OperationID, u.Meta.BusinessKey, u.In.Kind, u.In.Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[AmendmentReserveIn, held]) error {
			return d.bookings.Released(ctx, tx, reservation(u.OperationID, u.Meta, u.In.Kind, u.In.Segment, u.Res))
		},
	}), worker.Orphan(worker.Undo), worker.KeyIgnored(), d.sla, d.retain, d.call)
}

// AmendmentFollowUp finds out what became of a reservation with an unknown outcome (spec S4). What it finds is its own effect
// from then on, undone under the forward operation's id.
func (d desk) AmendmentFollowUp() AmendmentFollowUpHandler {
	return AmendmentFollowUpExternal(worker.Remote[AmendmentFollowUpIn, held, AmendmentFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[AmendmentFollowUpIn]) (held, error) {
			res, err := d.reserved(ctx, c.In.ForwardOperationID, c.BusinessKey, c.In.Kind, c.In.Segment)
			return supplier.Found(res, err, CodeNotReserved)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[AmendmentFollowUpIn], res held) (AmendmentFollowUpOut, error) {
			return AmendmentFollowUpOut{NewReservation: res.ID}, d.reservedHere(ctx, tx, job.Meta, job.In.Kind, job.In.Segment, res)
		},
	}, AmendmentFollowUpUndo(worker.RemoteUndo[AmendmentFollowUpIn, held]{
		Call: func(ctx context.Context, _ string, u worker.UndoOf[AmendmentFollowUpIn, held]) error {
			return d.release(ctx, u.In.ForwardOperationID+":undo", u.In.Kind, u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[AmendmentFollowUpIn, held]) error {
			return d.released(ctx, u.In.ForwardOperationID, u.Meta.BusinessKey, u.In.Kind, u.In.Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[AmendmentFollowUpIn, held]) error {
			return d.bookings.Released(ctx, tx, reservation(u.OperationID, u.Meta, u.In.Kind, u.In.Segment, u.Res))
		},
	}), worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), d.retain, d.seldom)
}

// AmendmentAuthorize blocks the difference.
func (d desk) AmendmentAuthorize() AmendmentAuthorizeHandler {
	return AmendmentAuthorizeExternal(worker.Remote[AmendmentAuthorizeIn, held, AmendmentAuthorizeOut]{
		Call: d.authorize,
		Resolve: func(ctx context.Context, c worker.Call[AmendmentAuthorizeIn]) (held, error) {
			return d.authorized(ctx, c.Key, c.BusinessKey, c.In.Difference)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[AmendmentAuthorizeIn], res held) (AmendmentAuthorizeOut, error) {
			return AmendmentAuthorizeOut{Authorization: res.ID}, d.blocked(ctx, tx, job.Meta, res)
		},
	}, AmendmentAuthorizeUndo(worker.RemoteUndo[AmendmentAuthorizeIn, held]{
		Call: func(ctx context.Context, key string, u worker.UndoOf[AmendmentAuthorizeIn, held]) error {
			return d.void(ctx, key, u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[AmendmentAuthorizeIn, held]) error {
			return d.voided(ctx, u.OperationID, u.Meta.BusinessKey, u.Res)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[AmendmentAuthorizeIn, held]) error {
			return d.settleVoid(ctx, tx, u.Meta, u.Res)
		},
	}), worker.Orphan(worker.Undo), d.honoured, d.sla, d.retain, d.call,
		worker.Amount(func(in AmendmentAuthorizeIn) (int64, string) { return max(in.Difference, 0), in.Currency }))
}

// AmendmentPaymentFollowUp finds out what became of an authorization with an unknown outcome.
func (d desk) AmendmentPaymentFollowUp() AmendmentPaymentFollowUpHandler {
	return AmendmentPaymentFollowUpExternal(worker.Remote[AmendmentPaymentFollowUpIn, held, AmendmentPaymentFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[AmendmentPaymentFollowUpIn]) (held, error) {
			res, err := d.authorized(ctx, c.In.ForwardOperationID, c.BusinessKey, c.In.Difference)
			return supplier.Found(res, err, CodePaymentDeclined)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[AmendmentPaymentFollowUpIn], res held) (AmendmentPaymentFollowUpOut, error) {
			return AmendmentPaymentFollowUpOut{Authorization: res.ID}, d.blocked(ctx, tx, job.Meta, res)
		},
	}, AmendmentPaymentFollowUpUndo(worker.RemoteUndo[AmendmentPaymentFollowUpIn, held]{
		Call: func(ctx context.Context, _ string, u worker.UndoOf[AmendmentPaymentFollowUpIn, held]) error {
			return d.void(ctx, u.In.ForwardOperationID+":undo", u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[AmendmentPaymentFollowUpIn, held]) error {
			return d.voided(ctx, u.In.ForwardOperationID, u.Meta.BusinessKey, u.Res)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[AmendmentPaymentFollowUpIn, held]) error {
			return d.settleVoid(ctx, tx, u.Meta, u.Res)
		},
	}), worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), d.retain, d.seldom,
		worker.Amount(func(in AmendmentPaymentFollowUpIn) (int64, string) { return max(in.Difference, 0), in.Currency }))
}

// AmendmentConfirm is the pivot.
func (d desk) AmendmentConfirm() AmendmentConfirmHandler {
	return AmendmentConfirmTx(d.confirm, worker.Pivot(), worker.NotCompensable("the pivot: another amendment changes it again"), d.retain, d.own)
}

// AmendmentSettle moves the difference.
func (d desk) AmendmentSettle() AmendmentSettleHandler {
	return AmendmentSettleExternal(worker.Remote[AmendmentSettleIn, held, AmendmentSettleOut]{
		Call: d.settle,
		Resolve: func(ctx context.Context, c worker.Call[AmendmentSettleIn]) (held, error) {
			return d.settled(ctx, c.Key, c.BusinessKey, c.In.Difference)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[AmendmentSettleIn], res held) (AmendmentSettleOut, error) {
			return AmendmentSettleOut{}, d.moved(ctx, tx, job.Meta, job.In.Difference, res)
		},
	}, worker.NotCompensable(whySettled), d.honoured, d.sla, d.retain, d.call,
		worker.Amount(func(in AmendmentSettleIn) (int64, string) { return max(in.Difference, -in.Difference), in.Currency }))
}

// AmendmentSettleFollowUp finds out whether the difference moved.
func (d desk) AmendmentSettleFollowUp() AmendmentSettleFollowUpHandler {
	return AmendmentSettleFollowUpExternal(worker.Remote[AmendmentSettleFollowUpIn, held, AmendmentSettleFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[AmendmentSettleFollowUpIn]) (held, error) {
			res, err := d.settled(ctx, c.In.ForwardOperationID, c.BusinessKey, c.In.Difference)
			return supplier.Found(res, err, CodeSettlementRefused)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[AmendmentSettleFollowUpIn], res held) (AmendmentSettleFollowUpOut, error) {
			return AmendmentSettleFollowUpOut{}, d.moved(ctx, tx, job.Meta, job.In.Difference, res)
		},
	}, worker.NotCompensable(whySettled), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), d.retain, d.seldom,
		worker.Amount(func(in AmendmentSettleFollowUpIn) (int64, string) {
			return max(in.Difference, -in.Difference), in.Currency
		}))
}

// AmendmentReleaseOld gives the old segment back. Both suppliers cancel a reservation once, however often they are told.
func (d desk) AmendmentReleaseOld() AmendmentReleaseOldHandler {
	return AmendmentReleaseOldExternal(worker.Remote[AmendmentReleaseOldIn, held, AmendmentReleaseOldOut]{Call: d.releaseOld, Resolve: d.releasedOld, Settle: d.settleOld},
		worker.NotCompensable("past the pivot"), worker.KeyIgnored(), d.sla, d.retain, d.call)
}
