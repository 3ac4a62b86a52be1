package amendment

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

// Sagas is what amendment.confirm needs of *sagas.Sagas: to decide, in its own transaction.
type Sagas interface {
	Decide(ctx context.Context, tx *outbox.Tx, sagaID string, d sagas.Decision) error
}

// Config is for [Install]. The clients and Sagas must be set.
type Config struct {
	Schema                   string // "" = "journeyman"
	Hotel, Transfer, Payment *supplier.Client
	Sagas                    Sagas
	SLA                      time.Duration // how long a supplier's answer may stay unknown before the model follows up; 0 = 5 min
	KeyValidFor              time.Duration // how long the payment provider honours an idempotency key; 0 = 24 h
	PerSecond                float64       // amendments per second that are expected (spec W10); 0 = 0.5
	// Retain is how long what the handlers did is known, at least the retention of the operation type (spec D1); 0 = 30 days.
	Retain time.Duration
}

// desk does the work of an amendment.
type desk struct {
	bookings  *tourbooking.Bookings
	sagas     Sagas
	payment   *supplier.Client
	suppliers map[string]*supplier.Client

	sla, honoured, retain worker.Option

	own, call, seldom worker.Option // the expected throughput of our own work, of calls, and of follow-ups (spec W10)
}

//go:generate journeyman generate ../../bpmn/models/amendment.bpmn

var _ AmendmentHandlers = desk{}

// followUpSLA bounds a follow-up task. The deadline of the saga ends it before.
const followUpSLA = 24 * time.Hour

// Install registers the handlers of all job types of the amendment. One handler serves both suppliers, and the hotel ignores
// keys: so amendment.reserve and amendment.release-old are declared at-least-once as a whole.
//
// Errors: every field that is missing, at once.
func Install(mux *worker.Mux, cfg Config) error {
	var errs []error
	for _, c := range []struct {
		name   string
		client *supplier.Client
	}{{"Hotel", cfg.Hotel}, {"Transfer", cfg.Transfer}, {"Payment", cfg.Payment}} {
		if c.client == nil {
			errs = append(errs, fmt.Errorf("amendment: %s is nil, want a supplier client", c.name))
		}
	}
	if cfg.Sagas == nil {
		errs = append(errs, errors.New("amendment: Sagas is nil, want *sagas.Sagas"))
	}
	if cfg.SLA < 0 || cfg.KeyValidFor < 0 || cfg.Retain < 0 || cfg.PerSecond < 0 {
		errs = append(errs, fmt.Errorf("amendment: SLA is %v, KeyValidFor is %v, Retain is %v and PerSecond is %v, want 0 or more", cfg.SLA, cfg.KeyValidFor, cfg.Retain, cfg.PerSecond))
	}
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
	if cfg.PerSecond == 0 {
		cfg.PerSecond = 0.5
	}
	const costOwn, costCall = 10 * time.Millisecond, 300 * time.Millisecond
	RegisterAmendment(mux, desk{
		bookings: b, sagas: cfg.Sagas, payment: cfg.Payment, suppliers: map[string]*supplier.Client{"hotel": cfg.Hotel, "transfer": cfg.Transfer},
		sla: worker.SLA(cfg.SLA), honoured: worker.KeyValidFor(cfg.KeyValidFor), retain: worker.Retain(max(cfg.Retain, worker.RetainDefault)),
		own: worker.Expect(cfg.PerSecond, costOwn), call: worker.Expect(cfg.PerSecond, costCall), seldom: worker.Expect(cfg.PerSecond/100, costCall),
	})
	return nil
}
