package tourbooking

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
)

// What package reservation does to bookings: one of a single segment is a booking like any other, so that refunds, amendments
// and ticketing work on it. All of it is in the caller's transaction.

// Open writes a booking down, or reopens one whose last attempt ended without a sale, and accepts its quote.
//
// Errors: *[MoveError] when a booking of this key is being made, or is sold.
func (b *Bookings) Open(ctx context.Context, tx *outbox.Tx, k Booking) (Booking, error) {
	k, err := b.create(ctx, tx, k)
	if err != nil {
		return k, err
	}
	return b.move(ctx, tx, k, Quote, Detail{})
}

// Own locks the booking of an attempt. ok is false when the attempt has none: it was refused at its start.
func (b *Bookings) Own(ctx context.Context, tx *outbox.Tx, a sagas.Attempt) (k Booking, ok bool, err error) {
	k, err = b.Lock(ctx, tx, a.BusinessKey)
	if errors.Is(err, ErrUnknown) {
		return k, false, nil
	}
	return k, err == nil && k.SagaID == a.OperationID, err
}

// GiveUp moves the booking of an attempt that was decided against: the OnGiveUp of a booking saga.
func (b *Bookings) GiveUp(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) error {
	k, ok, err := b.Own(ctx, tx, a)
	if err != nil || !ok {
		return err
	}
	_, err = b.move(ctx, tx, k, GiveUp, Detail{Reason: e.Code})
	return err
}

// End moves the booking of an attempt to the state in which it ends, and gives that state. An attempt that was refused at its
// start leaves no booking of its own: [Failed].
func (b *Bookings) End(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) (State, error) {
	k, ok, err := b.Own(ctx, tx, a)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return Failed, nil
	case e.Decision == sagas.Completed:
		return Confirmed, nil // ticketing and refunds go on from here; the answer tells how this operation ended
	}
	k, err = b.move(ctx, tx, k, lastMove(e), Detail{Reason: e.Code})
	return k.State, err
}

// Segments lists what suppliers confirmed for an attempt, by segment. It is empty, not nil, when that is nothing.
func (b *Bookings) Segments(ctx context.Context, tx *outbox.Tx, sagaID string) ([]SegmentResult, error) {
	return b.segments(ctx, tx, sagaID)
}

// Check refuses an offer that is missing or does not exist. An error that names no field is not the partner's mistake.
func (o Offers) Check(ctx context.Context, field, kind, offer string) error {
	if offer == "" {
		return sagas.Invalid(field, "is missing")
	}
	known, err := o.known(ctx, kind, offer)
	switch {
	case err != nil:
		return fmt.Errorf("look up %s: %w", field, err)
	case !known:
		return sagas.Invalid(field, "is not a "+kind+" that is on offer")
	}
	return nil
}

// Check refuses a payment that cannot be one. field is what the request calls it.
func (p PaymentRequest) Check(field string) error {
	var token error
	switch {
	case strings.TrimSpace(p.Token) == "":
		token = sagas.Invalid(field+".token", "is missing")
	case len(p.Token) > maxToken:
		token = sagas.Invalid(field+".token", fmt.Sprintf("must be at most %d bytes", maxToken))
	}
	return errors.Join(token, CheckAmount(field+".amount", p.Amount), CheckCurrency(field+".currency", p.Currency))
}

// CheckTravellers refuses a number of travellers that is out of all reason.
func CheckTravellers(field string, n int) error { return checkRange(field, n, maxTravellers) }

// CheckNights refuses a length of stay that is out of all reason.
func CheckNights(field string, n int) error { return checkRange(field, n, maxNights) }
