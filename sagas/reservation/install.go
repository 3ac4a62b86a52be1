package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// Config is for [Install]. The clients and Sagas must be set.
type Config struct {
	Schema                           string // "" = "journeyman"
	Flight, Hotel, Transfer, Payment *supplier.Client
	Sagas                            tourbooking.Sagas
	Ticketing                        tourbooking.TicketingPlan // started by the confirmation of a flight; nil = no ticketing is started
	SLA                              time.Duration             // how long a supplier's answer may stay unknown before the model follows up; 0 = 1 min
	KeyValidFor                      time.Duration             // how long suppliers honour an idempotency key; 0 = 24 h
	PerSecond                        float64                   // reservations per second that are expected (spec W10); 0 = 5
	// Retain is how long what the handlers did is known, at least the retention of the operation type (spec D1); 0 = 30 days.
	Retain time.Duration
}

// followUpSLA bounds a follow-up task. The deadline of the saga ends it before.
const followUpSLA = 24 * time.Hour

//go:generate journeyman generate ../../bpmn/models/reservation.bpmn

// desk has the handlers of reservation.bpmn.
type desk struct {
	bookings  *tourbooking.Bookings
	sagas     tourbooking.Sagas
	ticketing tourbooking.TicketingPlan
	payment   *supplier.Client
	segments  map[string]*supplier.Client

	sla, honoured, retain, often, seldom worker.Option
}

var _ ReservationHandlers = desk{}

// Install registers the handlers of all job types of the reservation. One handler serves all three suppliers, and the hotel
// ignores keys: so reservation.reserve is declared at-least-once as a whole; a repeat asks first.
//
// Errors: every field that is missing or bad, at once.
func Install(mux *worker.Mux, cfg Config) error {
	var errs []error
	for _, c := range []struct {
		name   string
		client *supplier.Client
	}{{"Flight", cfg.Flight}, {"Hotel", cfg.Hotel}, {"Transfer", cfg.Transfer}, {"Payment", cfg.Payment}} {
		if c.client == nil {
			errs = append(errs, fmt.Errorf("reservation: %s is nil, want a supplier client", c.name))
		}
	}
	if cfg.Sagas == nil {
		errs = append(errs, errors.New("reservation: Sagas is nil, want *sagas.Sagas"))
	}
	if cfg.SLA < 0 || cfg.KeyValidFor < 0 || cfg.PerSecond < 0 || cfg.Retain < 0 {
		errs = append(errs, fmt.Errorf("reservation: SLA is %v, KeyValidFor is %v, Retain is %v and PerSecond is %v, want 0 or more", cfg.SLA, cfg.KeyValidFor, cfg.Retain, cfg.PerSecond))
	}
	b, err := tourbooking.NewBookings(cfg.Schema)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	if cfg.SLA == 0 {
		cfg.SLA = stepSLA
	}
	if cfg.KeyValidFor == 0 {
		cfg.KeyValidFor = 24 * time.Hour
	}
	if cfg.PerSecond == 0 {
		cfg.PerSecond = 5
	}
	const costCall = 300 * time.Millisecond
	RegisterReservation(mux, desk{
		bookings: b, sagas: cfg.Sagas, ticketing: cfg.Ticketing, payment: cfg.Payment,
		segments: map[string]*supplier.Client{flight: cfg.Flight, hotel: cfg.Hotel, transfer: cfg.Transfer},
		sla:      worker.SLA(cfg.SLA), honoured: worker.KeyValidFor(cfg.KeyValidFor), retain: worker.Retain(max(cfg.Retain, worker.RetainDefault)),
		often: worker.Expect(cfg.PerSecond, costCall), seldom: worker.Expect(cfg.PerSecond/100, costCall),
	})
	return nil
}

// ReservationConfirm is the pivot.
func (d desk) ReservationConfirm() ReservationConfirmHandler {
	return ReservationConfirmTx(d.confirm, worker.Pivot(), d.retain, d.often,
		worker.NotCompensable("the pivot: a confirmed booking is given back by a refund, an operation of its own"))
}

// confirm makes the booking visible as confirmed, takes the decision and starts ticketing of a flight, in one transaction (spec I11).
func (d desk) confirm(ctx context.Context, tx *outbox.Tx, job worker.Job[ReservationConfirmIn]) (ReservationConfirmOut, error) {
	out := ReservationConfirmOut{SagaDecision: string(sagas.Completed)}
	k, err := d.bookings.Move(ctx, tx, job.BusinessKey, tourbooking.Confirm, tourbooking.Detail{})
	var refused *tourbooking.MoveError
	if errors.As(err, &refused) {
		return out, worker.BusinessError(CodeBookingNotConfirmable, refused.Error())
	}
	if err != nil {
		return out, err
	}
	if err := d.sagas.Decide(ctx, tx, job.SagaID, sagas.Completed); err != nil {
		return out, err
	}
	if d.ticketing == nil || job.In.Segment != flight {
		return out, nil
	}
	_, id, err := d.bookings.Standing(ctx, tx, k, flight)
	if err != nil {
		return out, tourbooking.FatalIfNotMoved(err)
	}
	r := d.ticketing(job.BusinessKey, k.Booking, k.Travellers, []string{id})
	r.Tenant, r.Key, r.CorrelationID, r.Traceparent, r.Actor = job.Tenant, job.SagaID, job.CorrelationID, job.Traceparent, job.Actor
	_, err = d.sagas.StartTx(ctx, tx, r)
	return out, err
}
