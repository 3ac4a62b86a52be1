package ticketing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// Sagas is what ticket.record needs of *sagas.Sagas: to decide, in its own transaction.
type Sagas interface {
	Decide(ctx context.Context, tx *outbox.Tx, sagaID string, d sagas.Decision) error
}

// Config is for [Install]. Flight, Sagas, CallbackURL and CallbackSecret must be set.
type Config struct {
	Schema         string // "" = "journeyman"
	Flight         *supplier.Client
	Sagas          Sagas
	CallbackURL    string        // where [NewCallback] is served, as the airline reaches it
	CallbackSecret []byte        // the same as that of NewCallback; at least 16 bytes
	SLA            time.Duration // how long the airline's receipt may stay unknown before the model follows up; 0 = 5 min
	PerSecond      float64       // ticketings per second that are expected, for tools to show beside what is measured (spec W10); 0 = 5
	KeyValidFor    time.Duration // how long the airline honours an idempotency key; 0 = 24 h
	Retain         time.Duration // how long what the handlers did is known, at least the retention of the operation type (spec D1); 0 = 90 days
}

//go:generate journeyman generate ../../bpmn/models/ticketing.bpmn

// desk has the handlers of ticketing.bpmn.
type desk struct {
	cfg      Config
	sql      queries
	bookings *tourbooking.Bookings
}

var _ TicketingHandlers = desk{}

// followUpSLA bounds a follow-up task. The deadline of the saga ends it.
const followUpSLA = 24 * time.Hour

// Install registers the handlers of all job types of ticketing.
//
// Errors: every field that is missing or bad, at once.
func Install(mux *worker.Mux, cfg Config) error {
	var errs []error
	if cfg.Flight == nil {
		errs = append(errs, errors.New("ticketing: Flight is nil, want a supplier client"))
	}
	if cfg.Sagas == nil {
		errs = append(errs, errors.New("ticketing: Sagas is nil, want *sagas.Sagas"))
	}
	if u, err := url.Parse(cfg.CallbackURL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" {
		errs = append(errs, fmt.Errorf("ticketing: CallbackURL is %q, want an http or https address without a query", cfg.CallbackURL))
	}
	if cfg.SLA < 0 || cfg.KeyValidFor < 0 || cfg.PerSecond < 0 || cfg.Retain < 0 {
		errs = append(errs, fmt.Errorf("ticketing: SLA is %v, KeyValidFor is %v, Retain is %v and PerSecond is %v, want 0 or more", cfg.SLA, cfg.KeyValidFor, cfg.Retain, cfg.PerSecond))
	}
	errs = append(errs, checkSecret(cfg.CallbackSecret), postgres.CheckSchema(postgres.SchemaOr(cfg.Schema)))
	b, err := tourbooking.NewBookings(cfg.Schema)
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	if cfg.SLA == 0 {
		cfg.SLA = 5 * time.Minute
	}
	if cfg.KeyValidFor == 0 {
		cfg.KeyValidFor = 24 * time.Hour
	}
	if cfg.Retain == 0 {
		cfg.Retain = retention
	}
	cfg.Retain = max(cfg.Retain, worker.RetainDefault)
	if cfg.PerSecond == 0 {
		cfg.PerSecond = 5
	}
	RegisterTicketing(mux, desk{cfg: cfg, sql: render(postgres.SchemaOr(cfg.Schema)), bookings: b})
	return nil
}

// TicketRecord is the pivot.
func (d desk) TicketRecord() TicketRecordHandler {
	return TicketRecordTx(d.record, worker.Pivot(), worker.NotCompensable("the pivot: issued tickets are given back by a refund, an operation of its own"),
		worker.Retain(d.cfg.Retain), worker.Expect(d.cfg.PerSecond, 10*time.Millisecond))
}

// Recorded is the data of ticketing.ticket.recorded, one per ticket.
type Recorded struct {
	Booking string `json:"booking"`
	SagaID  string `json:"sagaId"`
	Number  string `json:"number"`
}

// record writes the tickets down, moves the booking and takes the decision, in one transaction.
func (d desk) record(ctx context.Context, tx *outbox.Tx, job worker.Job[TicketRecordIn]) (TicketRecordOut, error) {
	out := TicketRecordOut{SagaDecision: string(sagas.Completed)}
	if len(job.In.Tickets) == 0 {
		return out, worker.Fatal(errors.New("variable tickets is empty, want the airline's ticket numbers"))
	}
	if _, err := d.bookings.Move(ctx, tx, job.BusinessKey, tourbooking.IssueTickets, tourbooking.Detail{}); err != nil {
		return out, tourbooking.FatalIfRefused(err)
	}
	for _, number := range job.In.Tickets {
		tag, err := tx.Exec(ctx, d.sql.insertTicket, number, job.BusinessKey, job.SagaID)
		if err != nil {
			return out, fmt.Errorf("write ticket: %w", err)
		}
		if tag.RowsAffected() != 1 {
			return out, worker.Fatal(fmt.Errorf("ticket %q is recorded for another booking", number))
		}
		tx.Emit(events.Message{Type: "ticketing.ticket.recorded", Version: 1, BusinessKey: job.BusinessKey, Data: Recorded{job.In.Booking, job.SagaID, number}})
	}
	return out, d.cfg.Sagas.Decide(ctx, tx, job.SagaID, sagas.Completed)
}
