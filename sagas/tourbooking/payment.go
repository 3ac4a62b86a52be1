package tourbooking

import (
	"context"
	"fmt"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// till talks to the payment provider.
type till struct {
	bookings *Bookings
	client   *supplier.Client
}

const whyCaptureStands = "past the pivot; captured money is given back by a refund, an operation of its own"

// PaymentAuthorize blocks the money. An authorization moves none, so an orphaned one is voided rather than parked.
func (h handlers) PaymentAuthorize() PaymentAuthorizeHandler {
	p := h.till
	return PaymentAuthorizeExternal(worker.Remote[PaymentAuthorizeIn, held, PaymentAuthorizeOut]{
		Call: func(ctx context.Context, c worker.Call[PaymentAuthorizeIn]) (held, error) {
			return p.client.Authorize(ctx, c.Key, c.BusinessKey, c.In.Amount, c.In.Currency, c.In.Token, CodePaymentDeclined)
		},
		Resolve: func(ctx context.Context, c worker.Call[PaymentAuthorizeIn]) (held, error) {
			return p.client.Authorized(ctx, c.Key, c.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[PaymentAuthorizeIn], res held) (PaymentAuthorizeOut, error) {
			return PaymentAuthorizeOut{AuthorizationID: res.ID}, p.authorized(ctx, tx, job.Meta, res)
		},
	},
		PaymentAuthorizeUndo(worker.RemoteUndo[PaymentAuthorizeIn, held]{
			Call: func(ctx context.Context, key string, u worker.UndoOf[PaymentAuthorizeIn, held]) error {
				return p.client.Void(ctx, key, u.Res.ID)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[PaymentAuthorizeIn, held]) error {
				return p.client.Voided(ctx, u.OperationID, u.Meta.BusinessKey)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[PaymentAuthorizeIn, held]) error {
				return p.released(ctx, tx, u.Meta, u.Res, u.Reason)
			},
		}),
		worker.Orphan(worker.Undo), h.honoured, h.sla, h.retain, h.expect(oftenForward, costCall),
		worker.Amount(func(in PaymentAuthorizeIn) (int64, string) { return in.Amount, in.Currency }),
	)
}

// PaymentFollowUp finds out what became of an authorization with an unknown outcome.
func (h handlers) PaymentFollowUp() PaymentFollowUpHandler {
	p := h.till
	return PaymentFollowUpExternal(worker.Remote[PaymentFollowUpIn, held, PaymentFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[PaymentFollowUpIn]) (held, error) {
			res, err := p.client.Authorized(ctx, c.In.ForwardOperationID, c.BusinessKey)
			return supplier.Found(res, err, CodePaymentDeclined)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[PaymentFollowUpIn], res held) (PaymentFollowUpOut, error) {
			return PaymentFollowUpOut{AuthorizationID: res.ID}, p.authorized(ctx, tx, job.Meta, res)
		},
	},
		PaymentFollowUpUndo(worker.RemoteUndo[PaymentFollowUpIn, held]{
			Call: func(ctx context.Context, _ string, u worker.UndoOf[PaymentFollowUpIn, held]) error {
				return p.client.Void(ctx, u.In.ForwardOperationID+":undo", u.Res.ID)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[PaymentFollowUpIn, held]) error {
				return p.client.Voided(ctx, u.In.ForwardOperationID, u.Meta.BusinessKey)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[PaymentFollowUpIn, held]) error {
				return p.released(ctx, tx, u.Meta, u.Res, u.Reason)
			},
		}),
		worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), h.retain, h.expect(oftenAsked, costCall),
		worker.Amount(func(in PaymentFollowUpIn) (int64, string) { return in.Amount, in.Currency }),
	)
}

// PaymentCapture takes the money, past the pivot.
func (h handlers) PaymentCapture() PaymentCaptureHandler {
	p := h.till
	return PaymentCaptureExternal(worker.Remote[PaymentCaptureIn, held, PaymentCaptureOut]{
		Call: func(ctx context.Context, c worker.Call[PaymentCaptureIn]) (held, error) {
			return p.client.Capture(ctx, c.Key, c.In.AuthorizationID, CodeCaptureRefused)
		},
		Resolve: func(ctx context.Context, c worker.Call[PaymentCaptureIn]) (held, error) {
			return p.client.Captured(ctx, c.Key, c.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[PaymentCaptureIn], res held) (PaymentCaptureOut, error) {
			return PaymentCaptureOut{}, p.bookings.Settle(ctx, tx, settlementOf(job.Meta, SettledCaptured, res))
		},
	},
		worker.NotCompensable(whyCaptureStands), h.honoured, h.sla, h.retain, h.expect(oftenForward, costCall),
		worker.Amount(func(in PaymentCaptureIn) (int64, string) { return in.Amount, in.Currency }),
	)
}

// PaymentCaptureFollowUp finds out whether the money was taken.
func (h handlers) PaymentCaptureFollowUp() PaymentCaptureFollowUpHandler {
	p := h.till
	return PaymentCaptureFollowUpExternal(worker.Remote[PaymentCaptureFollowUpIn, held, PaymentCaptureFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[PaymentCaptureFollowUpIn]) (held, error) {
			res, err := p.client.Captured(ctx, c.In.ForwardOperationID, c.BusinessKey)
			return supplier.Found(res, err, CodeCaptureRefused)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[PaymentCaptureFollowUpIn], res held) (PaymentCaptureFollowUpOut, error) {
			return PaymentCaptureFollowUpOut{}, p.bookings.Settle(ctx, tx, settlementOf(job.Meta, SettledCaptured, res))
		},
	},
		worker.NotCompensable(whyCaptureStands), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), h.retain, h.expect(oftenAsked, costCall),
		worker.Amount(func(in PaymentCaptureFollowUpIn) (int64, string) { return in.Amount, in.Currency }),
	)
}

// authorized writes the blocked amount down and moves the booking.
func (p till) authorized(ctx context.Context, tx *outbox.Tx, m worker.Meta, res held) error {
	if res.Status != "authorized" {
		return outcome.Fatalf("supplier", "the payment provider shows authorization %s as %q, want authorized", res.ID, res.Status)
	}
	k, err := p.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return FatalIfUnknown(err)
	}
	if err := p.bookings.Settle(ctx, tx, settlementOf(m, SettledAuthorized, res)); err != nil {
		return err
	}
	_, err = p.bookings.move(ctx, tx, k, PaymentAuthorized, Detail{Segment: partPayment, Supplier: res.ID})
	return FatalIfRefused(err)
}

func (p till) released(ctx context.Context, tx *outbox.Tx, m worker.Meta, res held, reason string) error {
	k, err := p.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return FatalIfUnknown(err)
	}
	if err := p.bookings.Settle(ctx, tx, settlementOf(m, SettledVoided, res)); err != nil {
		return err
	}
	if k.SagaID != m.SagaID {
		return nil
	}
	_, err = p.bookings.move(ctx, tx, k, SegmentReleased, Detail{Segment: partPayment, Supplier: res.ID, Reason: reason})
	return FatalIfRefused(err)
}

// Kinds of settlements (spec S7).
const (
	SettledAuthorized = "authorized"
	SettledVoided     = "voided"
	SettledCaptured   = "captured"
	SettledRefunded   = "refunded"
)

// Settlement is one movement of money, and the data of its event.
type Settlement struct {
	OperationID string `json:"operationId"` // that moved it
	BusinessKey string `json:"businessKey"`
	SagaID      string `json:"sagaId"`
	Kind        string `json:"kind"`
	SupplierID  string `json:"supplierId"` // the payment provider's own reference
	Amount      int64  `json:"amount"`     // minor units
	Currency    string `json:"currency"`
}

func settlementOf(m worker.Meta, kind string, res held) Settlement {
	return Settlement{m.OperationID, m.BusinessKey, m.SagaID, kind, res.ID, res.Amount, res.Currency}
}

// Settle writes a movement of money down and emits payment.settlement.<kind>. A repeat of the operation
// writes and emits the same again; the runtime keeps it from being one.
func (b *Bookings) Settle(ctx context.Context, tx *outbox.Tx, s Settlement) error {
	if _, err := tx.Exec(ctx, b.sql.insertSettlement, s.OperationID, s.BusinessKey, s.SagaID, s.Kind, s.SupplierID, s.Amount, s.Currency); err != nil {
		return fmt.Errorf("write settlement %s: %w", s.Kind, err)
	}
	tx.Emit(events.Message{Type: "payment.settlement." + s.Kind, Version: 1, BusinessKey: s.BusinessKey, Data: s})
	return nil
}

// Captured is what was captured for a booking in one currency and has not been paid back, in minor units.
func (b *Bookings) Captured(ctx context.Context, tx *outbox.Tx, businessKey, currency string) (int64, error) {
	var amount int64
	if err := tx.QueryRow(ctx, b.sql.settledAmount, businessKey, currency).Scan(&amount); err != nil {
		return 0, fmt.Errorf("sum settlements: %w", err)
	}
	return amount, nil
}
