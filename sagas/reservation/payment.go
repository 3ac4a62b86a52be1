package reservation

import (
	"context"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

const whyCaptureStands = "past the pivot; captured money is given back by a refund, an operation of its own"

// ReservationAuthorize blocks the money. An authorization moves none, so an orphaned one is voided rather than parked.
func (d desk) ReservationAuthorize() ReservationAuthorizeHandler {
	return ReservationAuthorizeExternal(worker.Remote[ReservationAuthorizeIn, held, ReservationAuthorizeOut]{
		Call: func(ctx context.Context, c worker.Call[ReservationAuthorizeIn]) (held, error) {
			return d.payment.Authorize(ctx, c.Key, c.BusinessKey, c.In.Amount, c.In.Currency, c.In.Token, CodePaymentDeclined)
		},
		Resolve: func(ctx context.Context, c worker.Call[ReservationAuthorizeIn]) (held, error) {
			return d.payment.Authorized(ctx, c.Key, c.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[ReservationAuthorizeIn], res held) (ReservationAuthorizeOut, error) {
			return ReservationAuthorizeOut{AuthorizationID: res.ID}, d.blocked(ctx, tx, job.Meta, res)
		},
	}, ReservationAuthorizeUndo(worker.RemoteUndo[ReservationAuthorizeIn, held]{
		Call: func(ctx context.Context, key string, u worker.UndoOf[ReservationAuthorizeIn, held]) error {
			return d.payment.Void(ctx, key, u.Res.ID)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[ReservationAuthorizeIn, held]) error {
			return d.payment.Voided(ctx, u.OperationID, u.Meta.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[ReservationAuthorizeIn, held]) error {
			return d.voided(ctx, tx, u.Meta, u.Res, u.Reason)
		},
	}), worker.Orphan(worker.Undo), d.honoured, d.sla, d.retain, d.often,
		worker.Amount(func(in ReservationAuthorizeIn) (int64, string) { return in.Amount, in.Currency }))
}

// ReservationPaymentFollowUp finds out what became of an authorization with an unknown outcome.
func (d desk) ReservationPaymentFollowUp() ReservationPaymentFollowUpHandler {
	return ReservationPaymentFollowUpExternal(worker.Remote[ReservationPaymentFollowUpIn, held, ReservationPaymentFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[ReservationPaymentFollowUpIn]) (held, error) {
			res, err := d.payment.Authorized(ctx, c.In.ForwardOperationID, c.BusinessKey)
			return supplier.Found(res, err, CodePaymentDeclined)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[ReservationPaymentFollowUpIn], res held) (ReservationPaymentFollowUpOut, error) {
			return ReservationPaymentFollowUpOut{AuthorizationID: res.ID}, d.blocked(ctx, tx, job.Meta, res)
		},
	}, ReservationPaymentFollowUpUndo(worker.RemoteUndo[ReservationPaymentFollowUpIn, held]{
		Call: func(ctx context.Context, _ string, u worker.UndoOf[ReservationPaymentFollowUpIn, held]) error {
			return d.payment.Void(ctx, u.In.ForwardOperationID+":undo", u.Res.ID)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[ReservationPaymentFollowUpIn, held]) error {
			return d.payment.Voided(ctx, u.In.ForwardOperationID, u.Meta.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[ReservationPaymentFollowUpIn, held]) error {
			return d.voided(ctx, tx, u.Meta, u.Res, u.Reason)
		},
	}), worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), d.retain, d.seldom,
		worker.Amount(func(in ReservationPaymentFollowUpIn) (int64, string) { return in.Amount, in.Currency }))
}

// ReservationCapture takes the money, past the pivot.
func (d desk) ReservationCapture() ReservationCaptureHandler {
	return ReservationCaptureExternal(worker.Remote[ReservationCaptureIn, held, ReservationCaptureOut]{
		Call: func(ctx context.Context, c worker.Call[ReservationCaptureIn]) (held, error) {
			return d.payment.Capture(ctx, c.Key, c.In.AuthorizationID, CodeCaptureRefused)
		},
		Resolve: func(ctx context.Context, c worker.Call[ReservationCaptureIn]) (held, error) {
			return d.payment.Captured(ctx, c.Key, c.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[ReservationCaptureIn], res held) (ReservationCaptureOut, error) {
			return ReservationCaptureOut{}, d.bookings.Settle(ctx, tx, settlement(job.Meta, tourbooking.SettledCaptured, res))
		},
	}, worker.NotCompensable(whyCaptureStands), d.honoured, d.sla, d.retain, d.often,
		worker.Amount(func(in ReservationCaptureIn) (int64, string) { return in.Amount, in.Currency }))
}

// ReservationCaptureFollowUp finds out whether the money was taken.
func (d desk) ReservationCaptureFollowUp() ReservationCaptureFollowUpHandler {
	return ReservationCaptureFollowUpExternal(worker.Remote[ReservationCaptureFollowUpIn, held, ReservationCaptureFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[ReservationCaptureFollowUpIn]) (held, error) {
			res, err := d.payment.Captured(ctx, c.In.ForwardOperationID, c.BusinessKey)
			return supplier.Found(res, err, CodeCaptureRefused)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[ReservationCaptureFollowUpIn], res held) (ReservationCaptureFollowUpOut, error) {
			return ReservationCaptureFollowUpOut{}, d.bookings.Settle(ctx, tx, settlement(job.Meta, tourbooking.SettledCaptured, res))
		},
	}, worker.NotCompensable(whyCaptureStands), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), d.retain, d.seldom,
		worker.Amount(func(in ReservationCaptureFollowUpIn) (int64, string) { return in.Amount, in.Currency }))
}

func settlement(m worker.Meta, kind string, res held) tourbooking.Settlement {
	return tourbooking.Settlement{OperationID: m.OperationID, BusinessKey: m.BusinessKey, SagaID: m.SagaID, Kind: kind, SupplierID: res.ID, Amount: res.Amount, Currency: res.Currency}
}

// blocked writes an authorization down and moves the booking, whether the call or a follow-up found it.
func (d desk) blocked(ctx context.Context, tx *outbox.Tx, m worker.Meta, res held) error {
	if res.Status != "authorized" {
		return outcome.Fatalf("supplier", "the payment provider shows authorization %s as %q, want authorized", res.ID, res.Status)
	}
	if err := d.bookings.Settle(ctx, tx, settlement(m, tourbooking.SettledAuthorized, res)); err != nil {
		return err
	}
	_, err := d.bookings.Move(ctx, tx, m.BusinessKey, tourbooking.PaymentAuthorized, tourbooking.Detail{Segment: supplier.Payment, Supplier: res.ID})
	return tourbooking.FatalIfNotMoved(err)
}

func (d desk) voided(ctx context.Context, tx *outbox.Tx, m worker.Meta, res held, reason string) error {
	if err := d.bookings.Settle(ctx, tx, settlement(m, tourbooking.SettledVoided, res)); err != nil {
		return err
	}
	return d.moveOwn(ctx, tx, m, supplier.Payment, res, reason)
}
