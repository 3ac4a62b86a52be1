package tourbooking

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
)

// confirmation is the pivot step.
type confirmation struct {
	bookings  *Bookings
	sagas     Sagas
	ticketing TicketingPlan
}

// BookingConfirm is the pivot.
func (h handlers) BookingConfirm() BookingConfirmHandler {
	return BookingConfirmTx(h.confirm.run, worker.Pivot(), h.retain, h.expect(oftenForward, costOwn),
		worker.NotCompensable("the pivot: a confirmed booking is given back by a refund, an operation of its own"))
}

// run makes the booking visible as confirmed, takes the decision and starts ticketing, all in one
// transaction (spec I11): no answer, webhook or event says confirmed before.
func (c confirmation) run(ctx context.Context, tx *outbox.Tx, job worker.Job[BookingConfirmIn]) (BookingConfirmOut, error) {
	out := BookingConfirmOut{SagaDecision: string(sagas.Completed)}
	k, err := c.bookings.Move(ctx, tx, job.BusinessKey, Confirm, Detail{})
	var refused *MoveError
	if errors.As(err, &refused) {
		return out, worker.BusinessError(CodeBookingNotConfirmable, refused.Error())
	}
	if err != nil {
		return out, err
	}
	if err := c.sagas.Decide(ctx, tx, job.SagaID, sagas.Completed); err != nil {
		return out, err
	}
	if c.ticketing == nil {
		return out, nil
	}
	rows, err := tx.Query(ctx, c.bookings.sql.flights, job.SagaID)
	if err != nil {
		return out, fmt.Errorf("read flight reservations: %w", err)
	}
	flights, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return out, fmt.Errorf("read flight reservations: %w", err)
	}
	if len(flights) == 0 {
		return out, nil // nothing to ticket
	}
	r := c.ticketing(job.BusinessKey, k.Booking, k.Travellers, flights)
	r.Tenant, r.Key, r.CorrelationID, r.Traceparent, r.Actor = job.Tenant, job.SagaID, job.CorrelationID, job.Traceparent, job.Actor
	_, err = c.sagas.StartTx(ctx, tx, r)
	return out, err
}
