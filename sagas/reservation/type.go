package reservation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// TypeName is the operation type of a booking with a single supplier.
const TypeName = "reservation"

// Segments that can be booked by themselves.
const (
	flight   = "flight"
	hotel    = "hotel"
	transfer = "transfer"
)

// Request is the body of POST /v1/operations/reservation. Amounts are in minor units.
type Request struct {
	Booking    string                     `json:"booking"` // the partner's own number, of all its bookings
	Segment    string                     `json:"segment"` // flight, hotel or transfer
	Offer      string                     `json:"offer"`
	Nights     int                        `json:"nights,omitempty"` // hotel only
	Travellers int                        `json:"travellers"`
	Payment    tourbooking.PaymentRequest `json:"payment"`
}

// check names every field that is wrong, not only the first.
func (r Request) check(ctx context.Context, offers tourbooking.Offers) error {
	errs := []error{tourbooking.CheckBooking("booking", r.Booking), tourbooking.CheckTravellers("travellers", r.Travellers), r.Payment.Check("payment")}
	switch r.Segment {
	case flight, hotel, transfer:
		err := offers.Check(ctx, "offer", r.Segment, r.Offer)
		var wrong *sagas.FieldError
		if err != nil && !errors.As(err, &wrong) {
			return err
		}
		errs = append(errs, err)
	case "":
		errs = append(errs, sagas.Invalid("segment", "is missing"))
	default:
		errs = append(errs, sagas.Invalid("segment", "must be flight, hotel or transfer"))
	}
	switch {
	case r.Segment == hotel:
		errs = append(errs, tourbooking.CheckNights("nights", r.Nights))
	case r.Nights != 0:
		errs = append(errs, sagas.Invalid("nights", "is for a hotel only"))
	}
	return errors.Join(errs...)
}

// Times of the type (spec I5).
const (
	timeout   = 5 * time.Minute
	retention = 30 * 24 * time.Hour
	stepSLA   = time.Minute
)

// TypeConfig is for [Type]. The zero value works.
type TypeConfig struct {
	Schema  string        // "" = "journeyman"
	Timeout time.Duration // of the saga; 0 = 5 min (spec I5). It must be more than a minute, the SLA of its steps (spec I4)
	Offers  tourbooking.Offers
}

// Type describes the saga to package sagas.
//
// Errors: a bad schema name, a time-out that is too short.
func Type(cfg TypeConfig) (sagas.Type, error) {
	b, err := tourbooking.NewBookings(cfg.Schema)
	if err != nil {
		return sagas.Type{}, fmt.Errorf("reservation: %w", err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = timeout
	}
	if cfg.Timeout <= stepSLA {
		return sagas.Type{}, fmt.Errorf("reservation: Timeout is %v, want more than %v, the SLA of a step", cfg.Timeout, stepSLA)
	}
	t := kind{cfg, b}
	return sagas.Type{
		Name: TypeName, ProcessID: ProcessReservation, Timeout: cfg.Timeout, Retention: retention, Estimate: 5 * time.Second, Money: true,
		StepSLA: map[string]time.Duration{JobReservationReserve: stepSLA, JobReservationAuthorize: stepSLA, JobReservationCapture: stepSLA},
		Steps: []string{
			ElementReservationSegmentReserve, ElementReservationPaymentAuthorize, ElementReservationReservationConfirm, ElementReservationPaymentCapture,
		},
		Parse: t.parse, OnStart: t.onStart, OnGiveUp: b.GiveUp, Result: t.result, Partial: partial, Docs: docs(),
	}, nil
}

type kind struct {
	cfg      TypeConfig
	bookings *tourbooking.Bookings
}

func (t kind) parse(ctx context.Context, tenant string, body []byte) (sagas.Plan, error) {
	r, err := sagas.Decode[Request](body)
	if err != nil {
		return sagas.Plan{}, err
	}
	if err := r.check(ctx, t.cfg.Offers); err != nil {
		return sagas.Plan{}, err
	}
	pending := view{Status: "pending"}
	return sagas.Plan{
		BusinessKey: tourbooking.BusinessKey(tenant, r.Booking),
		Variables: map[string]any{
			"booking": r.Booking, "segment": r.Segment, "offer": r.Offer, "nights": r.Nights, "travellers": r.Travellers, "payment": r.Payment,
		},
		Partial: map[string]any{"segment": pending, "payment": pending},
	}, nil
}

// onStart writes the booking down and accepts the quote.
func (t kind) onStart(ctx context.Context, tx *outbox.Tx, a sagas.Attempt) error {
	var r Request
	err := a.Request(&r)
	if err != nil {
		return worker.Fatal(err)
	}
	_, err = t.bookings.Open(ctx, tx, tourbooking.Booking{
		BusinessKey: a.BusinessKey, Tenant: a.Tenant, Booking: r.Booking, SagaID: a.OperationID,
		Segments: 1, Travellers: r.Travellers, Amount: r.Payment.Amount, Currency: r.Payment.Currency,
	})
	var refused *tourbooking.MoveError
	if errors.As(err, &refused) {
		return worker.BusinessError(tourbooking.CodeBookingExists, refused.Error())
	}
	return err
}

// result moves the booking to its end.
func (t kind) result(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) (any, error) {
	var r Request
	err := a.Request(&r)
	if err != nil {
		return nil, worker.Fatal(err)
	}
	out := tourbooking.Result{Booking: r.Booking, Payment: tourbooking.PaymentResult{Amount: r.Payment.Amount, Currency: r.Payment.Currency}}
	if out.State, err = t.bookings.End(ctx, tx, a, e); err != nil {
		return nil, err
	}
	out.Segments, err = t.bookings.Segments(ctx, tx, a.OperationID)
	return out, err
}

// view is what a partner sees of one part while the operation runs.
type view struct {
	Status    string `json:"status"`
	Reference string `json:"reference,omitempty"` // the supplier's
	Code      string `json:"code,omitempty"`
}

func partial(s worker.Step) (part string, v any) {
	is, ok := map[string]struct{ part, status string }{
		JobReservationReserve: {"segment", "confirmed"}, JobReservationFollowUp: {"segment", "confirmed"},
		JobReservationAuthorize: {"payment", "authorized"}, JobReservationPaymentFollowUp: {"payment", "authorized"},
		JobReservationCapture: {"payment", "captured"}, JobReservationCaptureFollowUp: {"payment", "captured"},
	}[s.Type]
	switch {
	case !ok:
		return "", nil
	case s.Class != outcome.Success && s.Code == CodeOutcomeUnknown:
		return is.part, view{Status: "unknown", Code: s.Code}
	case s.Class != outcome.Success:
		return is.part, view{Status: "failed", Code: s.Code}
	}
	var res supplier.Held
	if json.Unmarshal(s.Result, &res) != nil {
		return is.part, view{Status: is.status}
	}
	return is.part, view{Status: is.status, Reference: res.ID}
}

// docs is what the OpenAPI document says about reservations.
func docs() sagas.Docs {
	return sagas.Docs{
		Reasons: map[string]string{
			tourbooking.CodeBookingExists: "a booking of this number is being made, or is sold; nothing was reserved",
			CodeSoldOut:                   "the supplier has nothing left",
			CodeOfferUnknown:              "the supplier does not know the offer any more",
			CodeReservationRefused:        "the supplier refused the reservation for another reason",
			CodeNotReserved:               "the supplier had no reservation where one was looked for",
			CodePaymentDeclined:           "the payment was declined",
			CodeBookingNotConfirmable:     "the booking had moved on and could not be confirmed",
			CodeCaptureRefused:            "the booking is confirmed, taking the money failed, and a person settled it as failed",
			CodeOutcomeUnknown:            "a supplier did not say in time whether it acted; what it had done was undone",
		},
		Segments: map[string][]string{
			"segment": {"pending", "confirmed", "failed", "unknown"}, "payment": {"pending", "authorized", "captured", "failed", "unknown"},
		},
	}
}
