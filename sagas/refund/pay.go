package refund

import (
	"context"
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// SegmentTold is the data of tour.refund.segment_refunded, segment_refused and segment_reinstated.
type SegmentTold struct {
	SagaID   string `json:"sagaId"`
	Segment  string `json:"segment"`
	Supplier string `json:"supplier,omitempty"` // the supplier's reference of the return
	Code     string `json:"code,omitempty"`
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
}

func told(m worker.Meta, s Segment, currency string, res returned) events.Message {
	return events.Message{
		Type: "tour.refund.segment_" + res.Status, Version: 1, BusinessKey: m.BusinessKey,
		Data: SegmentTold{m.SagaID, s.Kind, res.ID, res.Code, s.Amount, currency},
	}
}

// Approved is the data of tour.refund.approved.
type Approved struct {
	Booking  string `json:"booking"`
	SagaID   string `json:"sagaId"`
	Segments int    `json:"segments"`
	Amount   int64  `json:"amount"` // to be paid, minor units
	Currency string `json:"currency"`
}

// RefundApprove is the pivot.
func (d desk) RefundApprove() RefundApproveHandler {
	return RefundApproveTx(d.approve, worker.Pivot(), worker.NotCompensable("the pivot: an approved refund is paid"), d.retain, d.expect(1, costOwn))
}

// approve cancels the booking and takes the decision, in one transaction. What is paid is what our own records
// say the suppliers took back, not what a process variable says.
func (d desk) approve(ctx context.Context, tx *outbox.Tx, job worker.Job[RefundApproveIn]) (RefundApproveOut, error) {
	if _, err := d.bookings.Move(ctx, tx, job.BusinessKey, tourbooking.EndCancellation, tourbooking.Detail{}); err != nil {
		return RefundApproveOut{}, tourbooking.FatalIfRefused(err)
	}
	n, amount, err := sumSegments(ctx, tx, d.sql, job.SagaID)
	if err != nil {
		return RefundApproveOut{}, err
	}
	if n == 0 {
		return RefundApproveOut{}, worker.BusinessError(CodeRefundIncomplete, "no segment was taken back")
	}
	tx.Emit(events.Message{
		Type: "tour.refund.approved", Version: 1, BusinessKey: job.BusinessKey,
		Data: Approved{job.In.Booking, job.SagaID, n, amount, job.In.Currency},
	})
	return RefundApproveOut{SagaDecision: string(sagas.Completed), Amount: amount}, d.sagas.Decide(ctx, tx, job.SagaID, sagas.Completed)
}

// paid is the payment provider's receipt.
type paid = supplier.Held

const whyPaidStands = "past the pivot; money that was paid back is not taken again"

// RefundPay pays back, past the pivot.
func (d desk) RefundPay() RefundPayHandler {
	return RefundPayExternal(worker.Remote[RefundPayIn, paid, RefundPayOut]{
		Call: func(ctx context.Context, c worker.Call[RefundPayIn]) (paid, error) {
			return d.payment.Refund(ctx, c.Key, c.BusinessKey, c.In.Amount, c.In.Currency, CodeRefundRefused)
		},
		Resolve: func(ctx context.Context, c worker.Call[RefundPayIn]) (paid, error) {
			return d.payment.Refunded(ctx, c.Key, c.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[RefundPayIn], res paid) (RefundPayOut, error) {
			return RefundPayOut{}, d.settlePaid(ctx, tx, job.Meta, res)
		},
	},
		worker.NotCompensable(whyPaidStands), d.keyValidFor, d.sla, d.retain, d.expect(1, costCall),
		worker.Amount(func(in RefundPayIn) (int64, string) { return in.Amount, in.Currency }),
	)
}

// RefundFollowUp finds out whether it was paid back.
func (d desk) RefundFollowUp() RefundFollowUpHandler {
	return RefundFollowUpExternal(worker.Remote[RefundFollowUpIn, paid, RefundFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[RefundFollowUpIn]) (paid, error) {
			res, err := d.payment.Refunded(ctx, c.In.ForwardOperationID, c.BusinessKey)
			if errors.Is(err, worker.ErrNotHappened) {
				return paid{}, worker.BusinessError(CodeRefundRefused, "the payment provider has nothing under the reference of the forward operation")
			}
			return res, err
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[RefundFollowUpIn], res paid) (RefundFollowUpOut, error) {
			return RefundFollowUpOut{}, d.settlePaid(ctx, tx, job.Meta, res)
		},
	},
		worker.NotCompensable(whyPaidStands), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), d.retain, d.expect(oftenAsked, costCall),
		worker.Amount(func(in RefundFollowUpIn) (int64, string) { return in.Amount, in.Currency }),
	)
}

func (d desk) settlePaid(ctx context.Context, tx *outbox.Tx, m worker.Meta, res paid) error {
	if res.Status != "paid" {
		return worker.Fatal(fmt.Errorf("the payment provider shows refund %s as %q, want paid", res.ID, res.Status))
	}
	if _, err := d.bookings.Lock(ctx, tx, m.BusinessKey); err != nil {
		return err
	}
	return d.bookings.Settle(ctx, tx, tourbooking.Settlement{
		OperationID: m.OperationID, BusinessKey: m.BusinessKey, SagaID: m.SagaID, Kind: tourbooking.SettledRefunded,
		SupplierID: res.ID, Amount: res.Amount, Currency: res.Currency,
	})
}
