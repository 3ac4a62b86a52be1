package tourbooking

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// Bookings is the one place where bookings move. It works in the caller's transaction and takes the row
// lock of the booking; it holds no state and is safe for concurrent use.
type Bookings struct{ sql queries }

// NewBookings works on the tables in schema ("" = "journeyman").
func NewBookings(schema string) (*Bookings, error) {
	if err := postgres.CheckSchema(postgres.SchemaOr(schema)); err != nil {
		return nil, err
	}
	return &Bookings{sql: render(postgres.SchemaOr(schema))}, nil
}

// Booking is one row as it was read under its lock.
type Booking struct {
	BusinessKey string
	Tenant      string
	Booking     string // as the partner calls it
	SagaID      string // attempt that booked last
	State       State
	Resume      State // where a cancellation that is given up, or an amendment, goes back to; "" outside one
	Segments    int   // that its suppliers must confirm before it is held
	Travellers  int
	Amount      int64 // minor units
	Currency    string
}

// BusinessKey is the key of a booking: scoped by tenant, so that two tenants with one booking number never meet.
func BusinessKey(tenant, booking string) string { return tenant + ":" + booking }

// ErrUnknown says that there is no such booking.
var ErrUnknown = errors.New("no such booking")

// Lock reads a booking and locks it to the end of the transaction.
//
// Errors: [ErrUnknown].
func (b *Bookings) Lock(ctx context.Context, tx *outbox.Tx, businessKey string) (Booking, error) {
	k := Booking{BusinessKey: businessKey}
	err := tx.QueryRow(ctx, b.sql.lockBooking, businessKey).
		Scan(&k.Tenant, &k.Booking, &k.SagaID, &k.State, &k.Resume, &k.Segments, &k.Travellers, &k.Amount, &k.Currency)
	if errors.Is(err, pgx.ErrNoRows) {
		return Booking{}, fmt.Errorf("booking %q: %w", businessKey, ErrUnknown)
	}
	if err != nil {
		return Booking{}, fmt.Errorf("lock booking %q: %w", businessKey, err)
	}
	return k, nil
}

// Moved is the data of every domain event of a booking.
type Moved struct {
	Booking  string `json:"booking"`
	Tenant   string `json:"tenant"`
	SagaID   string `json:"sagaId"`
	From     State  `json:"from"`
	State    State  `json:"state"`
	Segment  string `json:"segment,omitempty"`  // of a confirmation or release: the segment's id, or "payment"
	Kind     string `json:"kind,omitempty"`     // of the segment
	Supplier string `json:"supplier,omitempty"` // the supplier's own reference
	Reason   string `json:"reason,omitempty"`   // code, of a give-up or an end
	Amount   int64  `json:"amount"`             // of the booking, minor units
	Currency string `json:"currency"`
}

// Detail adds to the event of a move; the zero value adds nothing.
type Detail struct{ Segment, Kind, Supplier, Reason string }

// Move makes one move and emits its domain event. It locks the booking.
//
// Errors: *[MoveError] when there is no such booking or the table does not allow the move; nothing is changed then.
func (b *Bookings) Move(ctx context.Context, tx *outbox.Tx, businessKey string, e Event, d Detail) (Booking, error) {
	k, err := b.Lock(ctx, tx, businessKey)
	if errors.Is(err, ErrUnknown) {
		return Booking{}, &MoveError{BusinessKey: businessKey, Event: e}
	}
	if err != nil {
		return Booking{}, err
	}
	return b.move(ctx, tx, k, e, d)
}

// move needs a booking that was locked in this transaction.
func (b *Bookings) move(ctx context.Context, tx *outbox.Tx, k Booking, e Event, d Detail) (Booking, error) {
	next, ok := Next(k.State, e)
	if !ok {
		return k, &MoveError{BusinessKey: k.BusinessKey, State: k.State, Event: e}
	}
	from, resume := k.State, k.resumeAfter(e, next)
	tag, err := tx.Exec(ctx, b.sql.moveBooking, k.BusinessKey, string(from), string(next), string(resume))
	if err != nil {
		return k, fmt.Errorf("move booking %q: %w", k.BusinessKey, err)
	}
	if tag.RowsAffected() != 1 {
		return k, fmt.Errorf("move booking %q: its state is no longer %s, although it was locked", k.BusinessKey, from)
	}
	k.State, k.Resume = next, resume
	tx.Emit(events.Message{Type: told[e], Version: 1, BusinessKey: k.BusinessKey, Data: Moved{
		Booking: k.Booking, Tenant: k.Tenant, SagaID: k.SagaID, From: from, State: next,
		Segment: d.Segment, Kind: d.Kind, Supplier: d.Supplier, Reason: d.Reason, Amount: k.Amount, Currency: k.Currency,
	}})
	return k, nil
}

// resumeAfter is where a cancellation or an amendment would go back to: the state it began in, moved along with ticketing, which goes on.
func (k Booking) resumeAfter(e Event, next State) State {
	switch {
	case next != Cancelling && next != Amending:
		return ""
	case e == BeginCancellation || e == BeginAmendment:
		return k.State
	case e == RequestTickets:
		return InTicketing
	case e == IssueTickets:
		return Ticketed
	case e == GiveUpTickets:
		return Confirmed
	default:
		return k.Resume
	}
}

// ResumeEvent is the event that takes a given-up cancellation back. Outside a cancellation it is one
// that the table refuses.
func (k Booking) ResumeEvent() Event { return Event("resume_" + string(k.Resume)) }

// create writes a new booking in state draft, or reopens one whose last attempt ended without a sale.
//
// Errors: *[MoveError] when the booking is in any other state.
func (b *Bookings) create(ctx context.Context, tx *outbox.Tx, k Booking) (Booking, error) {
	tag, err := tx.Exec(ctx, b.sql.insertBooking, k.BusinessKey, k.Tenant, k.Booking, k.SagaID, string(Draft), k.Segments, k.Travellers, k.Amount, k.Currency)
	if err != nil {
		return k, fmt.Errorf("create booking %q: %w", k.BusinessKey, err)
	}
	k.State = Draft
	if tag.RowsAffected() == 1 {
		return k, nil
	}
	old, err := b.Lock(ctx, tx, k.BusinessKey)
	if err != nil {
		return k, err
	}
	if _, ok := Next(old.State, Reopen); !ok {
		return k, &MoveError{BusinessKey: k.BusinessKey, State: old.State, Event: Reopen}
	}
	if _, err := tx.Exec(ctx, b.sql.reopenBooking, k.BusinessKey, k.SagaID, k.Segments, k.Travellers, k.Amount, k.Currency, string(old.State)); err != nil {
		return k, fmt.Errorf("reopen booking %q: %w", k.BusinessKey, err)
	}
	k.State = old.State
	return b.move(ctx, tx, k, Reopen, Detail{})
}
