package tourbooking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// Sagas is what booking.confirm needs of *sagas.Sagas: to decide, and to start ticketing, in its own transaction.
type Sagas interface {
	Decide(ctx context.Context, tx *outbox.Tx, sagaID string, d sagas.Decision) error
	StartTx(ctx context.Context, tx *outbox.Tx, r sagas.StartRequest) (operationID string, err error)
}

// TicketingPlan plans the ticketing of a confirmed booking with at least one flight; package ticketing has it. reservations are the
// airline's references of its flights.
type TicketingPlan func(businessKey, booking string, travellers int, reservations []string) sagas.StartRequest

// Config is for [Install]. The four clients and Sagas must be set.
type Config struct {
	Schema                           string // "" = "journeyman"
	Flight, Hotel, Transfer, Payment *supplier.Client
	Sagas                            Sagas
	Ticketing                        TicketingPlan // nil = no ticketing is started
	SLA                              time.Duration // how long a supplier's answer may stay unknown before the model follows up; 0 = 5 min
	PerSecond                        float64       // bookings per second that are expected, for tools to show beside what is measured (spec W10); 0 = 5
	KeyValidFor                      time.Duration // how long suppliers honour an idempotency key; 0 = 24 h
	// Retain is how long what the handlers did is known, at least the retention of the operation type (spec D1); 0 = 30 days.
	Retain time.Duration
}

// followUpSLA bounds a follow-up task. The deadline of the saga comes long before.
const followUpSLA = 24 * time.Hour

// Install registers the handlers of all job types of the tour booking.
//
// Errors: every field that is missing, at once.
func Install(mux *worker.Mux, cfg Config) error {
	var errs []error
	for _, c := range []struct {
		name   string
		client *supplier.Client
	}{{"Flight", cfg.Flight}, {"Hotel", cfg.Hotel}, {"Transfer", cfg.Transfer}, {"Payment", cfg.Payment}} {
		if c.client == nil {
			errs = append(errs, fmt.Errorf("tour booking: %s is nil, want a supplier client", c.name))
		}
	}
	if cfg.Sagas == nil {
		errs = append(errs, errors.New("tour booking: Sagas is nil, want *sagas.Sagas"))
	}
	if cfg.SLA < 0 || cfg.KeyValidFor < 0 || cfg.PerSecond < 0 || cfg.Retain < 0 {
		errs = append(errs, fmt.Errorf("tour booking: SLA is %v, KeyValidFor is %v, Retain is %v and PerSecond is %v, want 0 or more", cfg.SLA, cfg.KeyValidFor, cfg.Retain, cfg.PerSecond))
	}
	b, err := NewBookings(cfg.Schema)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	if cfg.SLA == 0 {
		cfg.SLA = 5 * time.Minute
	}
	if cfg.KeyValidFor == 0 {
		cfg.KeyValidFor = 24 * time.Hour
	}
	if cfg.PerSecond == 0 {
		cfg.PerSecond = 5
	}
	RegisterTourBooking(mux, handlers{
		flight: desk{b, cfg.Flight, KindFlight}, hotel: desk{b, cfg.Hotel, KindHotel}, transfer: desk{b, cfg.Transfer, KindTransfer},
		till: till{b, cfg.Payment}, confirm: confirmation{b, cfg.Sagas, cfg.Ticketing},
		honoured: worker.KeyValidFor(cfg.KeyValidFor), sla: worker.SLA(cfg.SLA), retain: worker.Retain(max(cfg.Retain, worker.RetainDefault)), perSecond: cfg.PerSecond,
	})
	return nil
}
