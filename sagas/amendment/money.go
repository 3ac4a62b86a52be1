package amendment

import (
	"context"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/worker"
)

func (d desk) authorize(ctx context.Context, c worker.Call[AmendmentAuthorizeIn]) (held, error) {
	if c.In.Difference <= 0 {
		return held{}, nil
	}
	return d.payment.Authorize(ctx, c.Key, c.BusinessKey, c.In.Difference, c.In.Currency, c.In.Token, CodePaymentDeclined)
}

// authorized asks under the reference of the authorization what became of it.
func (d desk) authorized(ctx context.Context, reference, booking string, difference int64) (held, error) {
	if difference <= 0 {
		return held{}, nil
	}
	return d.payment.Authorized(ctx, reference, booking)
}

// blocked writes an authorization down, whether the call or a follow-up found it.
func (d desk) blocked(ctx context.Context, tx *worker.Tx, m worker.Meta, res held) error {
	if res.ID == "" {
		return nil
	}
	if res.Status != "authorized" {
		return outcome.Fatalf("supplier", "the payment provider shows authorization %s as %q, want authorized", res.ID, res.Status)
	}
	return d.bookings.Settle(ctx, tx, settlement(m, tourbooking.SettledAuthorized, res))
}

func settlement(m worker.Meta, kind string, res held) tourbooking.Settlement {
	return tourbooking.Settlement{OperationID: m.OperationID, BusinessKey: m.BusinessKey, SagaID: m.SagaID, Kind: kind, SupplierID: res.ID, Amount: res.Amount, Currency: res.Currency}
}

// void gives an authorization back, under the key of the undo. Where nothing was authorized nothing is asked.
func (d desk) void(ctx context.Context, key string, res held) error {
	if res.ID == "" {
		return nil
	}
	return d.payment.Void(ctx, key, res.ID)
}

// voided asks whether that took effect: nil = it did.
func (d desk) voided(ctx context.Context, reference, booking string, res held) error {
	if res.ID == "" {
		return nil
	}
	return d.payment.Voided(ctx, reference, booking)
}

func (d desk) settleVoid(ctx context.Context, tx *worker.Tx, m worker.Meta, res held) error {
	if res.ID == "" {
		return nil
	}
	return d.bookings.Settle(ctx, tx, settlement(m, tourbooking.SettledVoided, res))
}

// settle captures what was authorized, or pays back what the booking costs less.
func (d desk) settle(ctx context.Context, c worker.Call[AmendmentSettleIn]) (held, error) {
	switch {
	case c.In.Difference == 0:
		return held{}, nil
	case c.In.Difference < 0:
		return d.payment.Refund(ctx, c.Key, c.BusinessKey, -c.In.Difference, c.In.Currency, CodeSettlementRefused)
	}
	return d.payment.Capture(ctx, c.Key, c.In.Authorization, CodeSettlementRefused)
}

// settled asks under the reference of the settlement what became of it.
func (d desk) settled(ctx context.Context, reference, booking string, difference int64) (held, error) {
	switch {
	case difference == 0:
		return held{}, nil
	case difference < 0:
		return d.payment.Refunded(ctx, reference, booking)
	}
	return d.payment.Captured(ctx, reference, booking)
}

// moved writes a settlement down, whether the call or a follow-up found it.
func (d desk) moved(ctx context.Context, tx *worker.Tx, m worker.Meta, difference int64, res held) error {
	if res.ID == "" {
		return nil
	}
	kind := tourbooking.SettledCaptured
	if difference < 0 {
		kind = tourbooking.SettledRefunded
	}
	return d.bookings.Settle(ctx, tx, settlement(m, kind, res))
}
