package tourbooking

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/bpmn/models"
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

type confirmIn struct {
	Booking string `json:"booking"`
}

type confirmOut struct {
	SagaDecision sagas.Decision `json:"sagaDecision"`
	TicketingID  string         `json:"ticketingOperationId,omitempty"`
}

func (c confirmation) handler() worker.Handler {
	return worker.Transactional(c.confirm,
		worker.Pivot(), worker.NotCompensable("the pivot: a confirmed booking is given back by a refund, an operation of its own"),
		worker.Throws(models.CodeBookingNotConfirmed, worker.CodeSagaGivenUp))
}

// confirm makes the booking visible as confirmed, takes the decision and starts ticketing, all in one
// transaction (spec I11): no answer, webhook or event says confirmed before.
func (c confirmation) confirm(ctx context.Context, tx *outbox.Tx, job worker.Job[confirmIn]) (confirmOut, error) {
	out := confirmOut{SagaDecision: sagas.Completed}
	k, err := c.bookings.Move(ctx, tx, job.BusinessKey, Confirm, Detail{})
	var refused *MoveError
	if errors.As(err, &refused) {
		return out, worker.BusinessError(models.CodeBookingNotConfirmed, refused.Error())
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
	var flight string
	err = tx.QueryRow(ctx, c.bookings.sql.flightReservation, job.SagaID).Scan(&flight)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, worker.Fatal(fmt.Errorf("booking %q is held without a flight", job.BusinessKey))
	}
	if err != nil {
		return out, fmt.Errorf("read flight reservation: %w", err)
	}
	r := c.ticketing(job.BusinessKey, k.Booking, k.Travellers, flight)
	r.Tenant, r.Key, r.CorrelationID, r.Traceparent, r.Actor = job.Tenant, job.SagaID, job.CorrelationID, job.Traceparent, job.Actor
	out.TicketingID, err = c.sagas.StartTx(ctx, tx, r)
	return out, err
}
