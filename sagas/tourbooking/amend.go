package tourbooking

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/outbox"
)

// What package amendment does to bookings and their reservations. All of it is in the caller's transaction.

// EndAmendmentEvent is the event that ends an amendment: the booking goes on from where it was, or from where ticketing has
// brought it meanwhile. Outside an amendment it is one that the table refuses.
func (k Booking) EndAmendmentEvent() Event {
	switch k.Resume {
	case InTicketing:
		return EndAmendmentAsked
	case Ticketed:
		return EndAmendmentIssued
	default:
		return EndAmendment
	}
}

// Standing gives kind and supplier's reference of a segment that a booking holds.
//
// Errors: [ErrUnknown] when it holds none of this id.
func (b *Bookings) Standing(ctx context.Context, tx *outbox.Tx, k Booking, segment string) (kind, supplierID string, err error) {
	err = tx.QueryRow(ctx, b.sql.standing, k.SagaID, segment).Scan(&kind, &supplierID)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", fmt.Errorf("booking %q, segment %s: %w", k.BusinessKey, segment, ErrUnknown)
	}
	if err != nil {
		return "", "", fmt.Errorf("booking %q, segment %s: %w", k.BusinessKey, segment, err)
	}
	return kind, supplierID, nil
}

// Reservation is one row of what suppliers hold, by the operation that made it.
type Reservation struct {
	OperationID, BusinessKey, SagaID string
	Segment, Kind, SupplierID        string // segment: its id in the booking
	Amount                           int64  // minor units
	Currency                         string
}

// Reserved writes a reservation of a saga down; a repeat of the operation writes nothing.
func (b *Bookings) Reserved(ctx context.Context, tx *outbox.Tx, r Reservation) error {
	if _, err := tx.Exec(ctx, b.sql.upsertReservation, r.OperationID, r.BusinessKey, r.SagaID, r.Segment, r.Kind, r.SupplierID, r.Amount, r.Currency); err != nil {
		return fmt.Errorf("write reservation: %w", err)
	}
	return nil
}

// Released writes down that a reservation is undone, whether or not it was written down before.
func (b *Bookings) Released(ctx context.Context, tx *outbox.Tx, r Reservation) error {
	if _, err := tx.Exec(ctx, b.sql.releaseReservation, r.OperationID, r.BusinessKey, r.SagaID, r.Segment, r.Kind, r.SupplierID, r.Amount, r.Currency); err != nil {
		return fmt.Errorf("release reservation: %w", err)
	}
	return nil
}

// GiveBack writes down that a reservation of the booking itself is given back.
func (b *Bookings) GiveBack(ctx context.Context, tx *outbox.Tx, k Booking, supplierID string) error {
	if _, err := tx.Exec(ctx, b.sql.giveBack, k.SagaID, supplierID); err != nil {
		return fmt.Errorf("give a reservation back: %w", err)
	}
	return nil
}

// Amend gives a booking under amendment the new reservation of a saga and the new price, and ends the amendment.
//
// Errors: *[MoveError] when the booking is in no amendment; [ErrUnknown] when the saga has no such reservation.
func (b *Bookings) Amend(ctx context.Context, tx *outbox.Tx, k Booking, sagaID, segment, kind, supplierID string, amount int64) (Booking, error) {
	tag, err := tx.Exec(ctx, b.sql.adopt, sagaID, supplierID, k.SagaID)
	if err != nil {
		return k, fmt.Errorf("adopt reservation: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return k, fmt.Errorf("reservation %s of %s: %w", supplierID, sagaID, ErrUnknown)
	}
	if _, err := tx.Exec(ctx, b.sql.amend, k.BusinessKey, amount); err != nil {
		return k, fmt.Errorf("amend booking %q: %w", k.BusinessKey, err)
	}
	k.Amount = amount
	return b.move(ctx, tx, k, k.EndAmendmentEvent(), Detail{Segment: segment, Kind: kind, Supplier: supplierID})
}
