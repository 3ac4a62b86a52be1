package amendment

import (
	"context"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

type authorizeIn struct {
	Difference int64  `json:"difference"` // minor units
	Currency   string `json:"currency"`
	Token      string `json:"token"`
}

type authorizeOut struct {
	Authorization string `json:"authorization"` // "" when nothing was to be authorized
}

type authorizationRequest struct {
	Reference string `json:"reference"`
	Booking   string `json:"booking"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Token     string `json:"token"`
}

func (d desk) authorize(ctx context.Context, c worker.Call[authorizeIn]) (held, error) {
	if c.In.Difference <= 0 {
		return held{}, nil
	}
	t, err := d.payment.Post(ctx, pathAuthorizations, c.Key, authorizationRequest{c.Key, c.BusinessKey, c.In.Difference, c.In.Currency, c.In.Token})
	return heldOf(t), supplier.Outcome(err, map[string]string{"": codePaymentDeclined})
}

func (d desk) authorized(ctx context.Context, c worker.Call[authorizeIn]) (held, error) {
	if c.In.Difference <= 0 {
		return held{}, nil
	}
	return ask(ctx, d.payment, pathAuthorizations, c.Key, c.BusinessKey, paymentSegment)
}

func (d desk) settleAuthorize(ctx context.Context, tx *worker.Tx, job worker.Job[authorizeIn], res held) (authorizeOut, error) {
	if res.ID == "" {
		return authorizeOut{}, nil
	}
	if res.Status != "authorized" {
		return authorizeOut{}, outcome.Fatalf("supplier", "the payment provider shows authorization %s as %q, want authorized", res.ID, res.Status)
	}
	return authorizeOut{Authorization: res.ID}, d.bookings.Settle(ctx, tx, settlement(job.Meta, tourbooking.SettledAuthorized, res))
}

func settlement(m worker.Meta, kind string, res held) tourbooking.Settlement {
	return tourbooking.Settlement{OperationID: m.OperationID, BusinessKey: m.BusinessKey, SagaID: m.SagaID, Kind: kind, SupplierID: res.ID, Amount: res.Amount, Currency: res.Currency}
}

func (d desk) void(ctx context.Context, key string, u worker.UndoOf[authorizeIn, held]) error {
	if u.Res.ID == "" {
		return nil
	}
	_, err := d.payment.Post(ctx, pathAuthorizations+"/"+u.Res.ID+"/void", key, none{})
	return supplier.Outcome(err, nil)
}

func (d desk) voided(ctx context.Context, _ string, u worker.UndoOf[authorizeIn, held]) error {
	if u.Res.ID == "" {
		return nil
	}
	return became(ctx, d.payment, pathAuthorizations, u.OperationID, u.Meta.BusinessKey, paymentSegment, "voided")
}

func (d desk) settleVoid(ctx context.Context, tx *worker.Tx, u worker.UndoOf[authorizeIn, held]) error {
	if u.Res.ID == "" {
		return nil
	}
	return d.bookings.Settle(ctx, tx, settlement(u.Meta, tourbooking.SettledVoided, u.Res))
}

type settleIn struct {
	Authorization string `json:"authorization"`
	Difference    int64  `json:"difference"`
	Currency      string `json:"currency"`
}

type captureRequest struct {
	Reference     string `json:"reference"`
	Authorization string `json:"authorization"`
}

type refundRequest struct {
	Reference string `json:"reference"`
	Booking   string `json:"booking"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
}

// settle captures what was authorized, or pays back what the booking costs less.
func (d desk) settle(ctx context.Context, c worker.Call[settleIn]) (held, error) {
	path, body := pathCaptures, any(captureRequest{c.Key, c.In.Authorization})
	switch {
	case c.In.Difference == 0:
		return held{}, nil
	case c.In.Difference < 0:
		path, body = pathRefunds, refundRequest{c.Key, c.BusinessKey, -c.In.Difference, c.In.Currency}
	}
	t, err := d.payment.Post(ctx, path, c.Key, body)
	return heldOf(t), supplier.Outcome(err, map[string]string{"": codeSettlementRefused})
}

func (d desk) settled(ctx context.Context, c worker.Call[settleIn]) (held, error) {
	switch {
	case c.In.Difference == 0:
		return held{}, nil
	case c.In.Difference < 0:
		return ask(ctx, d.payment, pathRefunds, c.Key, c.BusinessKey, paymentSegment)
	}
	return ask(ctx, d.payment, pathCaptures, c.Key, c.BusinessKey, paymentSegment)
}

func (d desk) settleSettle(ctx context.Context, tx *worker.Tx, job worker.Job[settleIn], res held) (none, error) {
	if res.ID == "" {
		return none{}, nil
	}
	kind := tourbooking.SettledCaptured
	if job.In.Difference < 0 {
		kind = tourbooking.SettledRefunded
	}
	return none{}, d.bookings.Settle(ctx, tx, settlement(job.Meta, kind, res))
}
