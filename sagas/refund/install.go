package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// Sagas is what refund.approve needs of *sagas.Sagas: to decide, in its own transaction.
type Sagas interface {
	Decide(ctx context.Context, tx *outbox.Tx, sagaID string, d sagas.Decision) error
}

// Config is for [Install]. The four clients and Sagas must be set.
type Config struct {
	Schema                           string // "" = "journeyman"
	Flight, Hotel, Transfer, Payment *supplier.Client
	Sagas                            Sagas
	SLA                              time.Duration // how long a supplier's answer may stay unknown before the model follows up; 0 = 5 min
	PerSecond                        float64       // refunds per second that are expected, for tools to show beside what is measured (spec W10); 0 = 0.5
	KeyValidFor                      time.Duration // how long suppliers honour an idempotency key; 0 = 24 h
	// Retain is how long what the handlers did is known, at least the retention of the operation type (spec D1); 0 = 90 days.
	Retain time.Duration
}

// followUpSLA bounds a follow-up task. The deadline of the saga comes before.
const followUpSLA = 24 * time.Hour

// Install registers the handlers of all job types of the refund.
//
// One handler serves all three suppliers, and the hotel ignores keys: so segment.refund is declared at-least-once as a whole.
//
// Errors: every field that is missing, at once.
func Install(mux *worker.Mux, cfg Config) error {
	var errs []error
	for _, c := range []struct {
		name   string
		client *supplier.Client
	}{{"Flight", cfg.Flight}, {"Hotel", cfg.Hotel}, {"Transfer", cfg.Transfer}, {"Payment", cfg.Payment}} {
		if c.client == nil {
			errs = append(errs, fmt.Errorf("refund: %s is nil, want a supplier client", c.name))
		}
	}
	if cfg.Sagas == nil {
		errs = append(errs, errors.New("refund: Sagas is nil, want *sagas.Sagas"))
	}
	if cfg.SLA < 0 || cfg.KeyValidFor < 0 || cfg.PerSecond < 0 || cfg.Retain < 0 {
		errs = append(errs, fmt.Errorf("refund: SLA is %v, KeyValidFor is %v, Retain is %v and PerSecond is %v, want 0 or more", cfg.SLA, cfg.KeyValidFor, cfg.Retain, cfg.PerSecond))
	}
	errs = append(errs, postgres.CheckSchema(postgres.SchemaOr(cfg.Schema)))
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
	if cfg.PerSecond == 0 {
		cfg.PerSecond = 0.5
	}
	RegisterRefund(mux, desk{
		sql: render(postgres.SchemaOr(cfg.Schema)), bookings: b, sagas: cfg.Sagas, payment: cfg.Payment,
		suppliers:   map[string]*supplier.Client{"flight": cfg.Flight, "hotel": cfg.Hotel, "transfer": cfg.Transfer},
		keyValidFor: worker.KeyValidFor(cfg.KeyValidFor), sla: worker.SLA(cfg.SLA), retain: worker.Retain(max(cfg.Retain, worker.RetainDefault)), perSecond: cfg.PerSecond,
	})
	return nil
}

//go:generate journeyman generate ../../bpmn/models/refund.bpmn

// desk has the handlers of refund.bpmn.
type desk struct {
	sql       queries
	bookings  *tourbooking.Bookings
	sagas     Sagas
	suppliers map[string]*supplier.Client // by segment kind
	payment   *supplier.Client

	keyValidFor, sla worker.Option
	retain           worker.Option // how long their answers are kept (spec D1)
	perSecond        float64       // refunds
}

// expect declares how often a step runs per refund, and what one run costs (spec W10).
func (d desk) expect(perRefund float64, cost time.Duration) worker.Option {
	return worker.Expect(d.perSecond*perRefund, cost)
}

const (
	costCall       = 300 * time.Millisecond
	costOwn        = 10 * time.Millisecond
	segmentsOfEach = 3
	oftenAsked     = 0.01
)

var _ RefundHandlers = desk{}
