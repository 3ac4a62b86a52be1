package tourbooking

import (
	"context"
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/outbox"
)

// ByHand is what a person did outside about a booking whose saga was left to them. The zero value says that nothing is different
// from what the saga wrote down.
type ByHand struct {
	Released []string   `json:"released"` // suppliers' references of reservations that were given back
	Amount   int64      `json:"amount"`   // what the booking costs now, minor units; 0 = as before
	Moved    []Movement `json:"moved"`    // money that was moved
}

// Movement is money that a person moved at the payment provider.
type Movement struct {
	Kind      string `json:"kind"`      // captured, refunded or voided
	Reference string `json:"reference"` // the provider's
	Amount    int64  `json:"amount"`    // minor units, in the booking's currency
}

func (h ByHand) check() error {
	var errs []error
	for i, id := range h.Released {
		if id == "" {
			errs = append(errs, fmt.Errorf("released[%d] is empty, want a supplier's reference", i))
		}
	}
	if h.Amount < 0 {
		errs = append(errs, fmt.Errorf("amount is %d, want more than 0 minor units, or none", h.Amount))
	}
	for i, m := range h.Moved {
		if m.Kind != SettledCaptured && m.Kind != SettledRefunded && m.Kind != SettledVoided {
			errs = append(errs, fmt.Errorf("moved[%d].kind is %q, want %s, %s or %s", i, m.Kind, SettledCaptured, SettledRefunded, SettledVoided))
		}
		if m.Reference == "" {
			errs = append(errs, fmt.Errorf("moved[%d].reference is empty, want the payment provider's", i))
		}
		if m.Amount <= 0 {
			errs = append(errs, fmt.Errorf("moved[%d].amount is %d, want more than 0 minor units", i, m.Amount))
		}
	}
	return errors.Join(errs...)
}

// ErrByHand is wrapped when what a person reports does not fit the booking. Nothing is taken over then.
var ErrByHand = errors.New("what was settled by hand")

// SettledByHand writes down what a person did about a saga of a locked booking, in the caller's transaction: reservations of the booking
// or of the saga, its price, and money, which is told as any other (payment.settlement.<kind>). A repeat changes nothing more.
//
// Errors: [ErrByHand] with all fields that are wrong, by name; for a reservation that neither has; for more paid back than was captured.
func (b *Bookings) SettledByHand(ctx context.Context, tx *outbox.Tx, k Booking, sagaID string, h ByHand) error {
	if err := h.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrByHand, err)
	}
	for i, id := range h.Released {
		var rows int64
		for _, holder := range []string{k.SagaID, sagaID} {
			tag, err := tx.Exec(ctx, b.sql.giveBack, holder, id)
			if err != nil {
				return fmt.Errorf("settled by hand: give %s back: %w", id, err)
			}
			rows += tag.RowsAffected()
		}
		if rows == 0 {
			return fmt.Errorf("%w: released[%d]: the booking has no reservation %q", ErrByHand, i, id)
		}
	}
	if h.Amount > 0 {
		if _, err := tx.Exec(ctx, b.sql.amend, k.BusinessKey, h.Amount); err != nil {
			return fmt.Errorf("settled by hand: amount: %w", err)
		}
	}
	for i, m := range h.Moved {
		if err := b.Settle(ctx, tx, Settlement{
			OperationID: sagaID + ":by-hand:" + m.Kind + ":" + m.Reference, BusinessKey: k.BusinessKey, SagaID: sagaID,
			Kind: m.Kind, SupplierID: m.Reference, Amount: m.Amount, Currency: k.Currency,
		}); err != nil {
			return fmt.Errorf("settled by hand: moved[%d]: %w", i, err)
		}
	}
	if len(h.Moved) == 0 {
		return nil
	}
	switch left, err := b.Captured(ctx, tx, k.BusinessKey, k.Currency); {
	case err != nil:
		return fmt.Errorf("settled by hand: %w", err)
	case left < 0:
		return fmt.Errorf("%w: moved: %d minor units %s more would be paid back than were captured", ErrByHand, -left, k.Currency)
	}
	return nil
}
