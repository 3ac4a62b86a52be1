package tourbooking

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
)

// TypeName is the operation type of a tour booking.
const TypeName = "tour-booking"

// CodeBookingExists refuses a booking whose number is being booked, or is sold.
const CodeBookingExists = "BOOKING_EXISTS"

// The segments of a tour, as suppliers, partners and events call them.
const (
	segmentFlight   = "flight"
	segmentHotel    = "hotel"
	segmentTransfer = "transfer"
	segmentPayment  = "payment"
)

// segments is how many suppliers must confirm before a booking is held.
const segments = 3

//go:embed catalog.yaml
var catalog []byte

// Catalog is the catalog of the booking and settlement events, for events.ParseCatalog.
func Catalog() []byte { return append([]byte(nil), catalog...) }

// TypeConfig is for [Type]. The zero value works.
type TypeConfig struct {
	Schema      string        // "" = "journeyman"
	Timeout     time.Duration // of the saga; 0 = 30 min (spec I5)
	StepTimeout time.Duration // of one reservation; 0 = 10 min. It must be shorter than Timeout
	Offers      Offers
}

// Type describes the tour booking saga to package sagas.
//
// Errors: a bad schema name, time-outs that do not nest.
func Type(cfg TypeConfig) (sagas.Type, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Minute
	}
	if cfg.StepTimeout == 0 {
		cfg.StepTimeout = 10 * time.Minute
	}
	if cfg.StepTimeout < time.Second || cfg.StepTimeout >= cfg.Timeout {
		return sagas.Type{}, fmt.Errorf("tour booking: StepTimeout is %v, want at least 1s and less than Timeout, %v", cfg.StepTimeout, cfg.Timeout)
	}
	b, err := NewBookings(cfg.Schema)
	if err != nil {
		return sagas.Type{}, fmt.Errorf("tour booking: %w", err)
	}
	t := bookingType{cfg: cfg, bookings: b}
	return sagas.Type{
		Name: TypeName, ProcessID: ProcessTourBooking,
		Timeout: cfg.Timeout, Retention: 30 * 24 * time.Hour, Estimate: 30 * time.Second,
		Steps: []string{
			ElementTourBookingFlightReserve, ElementTourBookingHotelReserve, ElementTourBookingTransferReserve,
			ElementTourBookingPaymentAuthorize, ElementTourBookingBookingConfirm, ElementTourBookingPaymentCapture,
		},
		Parse: t.parse, OnStart: t.onStart, OnGiveUp: b.GiveUp, Result: t.result, Partial: partial, Docs: docs(), Money: true,
	}, nil
}

type bookingType struct {
	cfg      TypeConfig
	bookings *Bookings
}

func (t bookingType) parse(ctx context.Context, tenant string, body []byte) (sagas.Plan, error) {
	r, err := sagas.Decode[Request](body)
	if err != nil {
		return sagas.Plan{}, err
	}
	if err := r.check(ctx, t.cfg.Offers); err != nil {
		return sagas.Plan{}, err
	}
	pending := map[string]any{"status": "pending"}
	return sagas.Plan{
		BusinessKey: BusinessKey(tenant, r.Booking),
		Variables: map[string]any{
			"booking": r.Booking, "travellers": r.Travellers, "flight": r.Flight, "hotel": r.Hotel, "transfer": r.Transfer,
			"payment": r.Payment, "stepTimeout": isoSeconds(t.cfg.StepTimeout),
		},
		Partial: map[string]any{segmentFlight: pending, segmentHotel: pending, segmentTransfer: pending, segmentPayment: pending},
	}, nil
}

func isoSeconds(d time.Duration) string { return fmt.Sprintf("PT%dS", int64(d/time.Second)) }

// onStart writes the booking down and accepts the quote.
func (t bookingType) onStart(ctx context.Context, tx *outbox.Tx, a sagas.Attempt) error {
	var r Request
	err := a.Request(&r)
	if err != nil {
		return outcome.NewFatal(err)
	}
	_, err = t.bookings.Open(ctx, tx, Booking{
		BusinessKey: a.BusinessKey, Tenant: a.Tenant, Booking: r.Booking, SagaID: a.OperationID,
		Travellers: r.Travellers, Amount: r.Payment.Amount, Currency: r.Payment.Currency,
	})
	var refused *MoveError
	if errors.As(err, &refused) {
		return worker.BusinessError(CodeBookingExists, refused.Error())
	}
	return err
}

// Result is what the final answer of a tour booking shows.
type Result struct {
	Booking  string          `json:"booking"`
	State    State           `json:"state"`
	Segments []SegmentResult `json:"segments"` // sorted by kind; only those that a supplier confirmed
	Payment  PaymentResult   `json:"payment"`
}

// SegmentResult is one confirmed segment.
type SegmentResult struct {
	Kind      string `json:"kind"`
	Reference string `json:"reference"` // the supplier's; a refund names it
	Status    string `json:"status"`    // confirmed or released
	Amount    int64  `json:"amount"`    // minor units
	Currency  string `json:"currency"`
}

// PaymentResult is what was to be paid.
type PaymentResult struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

func (t bookingType) result(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) (any, error) {
	var r Request
	err := a.Request(&r)
	if err != nil {
		return nil, outcome.NewFatal(err)
	}
	out := Result{Booking: r.Booking, Payment: PaymentResult{r.Payment.Amount, r.Payment.Currency}}
	if out.State, err = t.bookings.End(ctx, tx, a, e); err != nil {
		return nil, err
	}
	out.Segments, err = t.bookings.segments(ctx, tx, a.OperationID)
	return out, err
}

// lastMove is the event that ends a booking whose saga was given up.
func lastMove(e sagas.Ending) Event {
	switch {
	case e.Decision == sagas.Expired:
		return EndExpired
	case e.Decision == sagas.Cancelled:
		return EndCancelled
	case len(e.Undone) > 0 && len(e.Open) == 0:
		return EndCompensated
	default:
		return EndFailed
	}
}

// segments lists what suppliers confirmed for an attempt.
func (b *Bookings) segments(ctx context.Context, tx *outbox.Tx, sagaID string) ([]SegmentResult, error) {
	rows, err := tx.Query(ctx, b.sql.reservations, sagaID)
	if err != nil {
		return nil, fmt.Errorf("list reservations of %s: %w", sagaID, err)
	}
	defer rows.Close()
	out := []SegmentResult{}
	for rows.Next() {
		var s SegmentResult
		if err := rows.Scan(&s.Kind, &s.Reference, &s.Status, &s.Amount, &s.Currency); err != nil {
			return nil, fmt.Errorf("list reservations of %s: %w", sagaID, err)
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// shown says which segment of the partial result a job type tells about, and as what.
var shown = map[string]struct{ segment, status string }{ //nolint:gochecknoglobals // a constant table
	JobFlightReserve:          {segmentFlight, "confirmed"},
	JobFlightFollowUp:         {segmentFlight, "confirmed"},
	JobHotelReserve:           {segmentHotel, "confirmed"},
	JobHotelFollowUp:          {segmentHotel, "confirmed"},
	JobTransferReserve:        {segmentTransfer, "confirmed"},
	JobTransferFollowUp:       {segmentTransfer, "confirmed"},
	JobPaymentAuthorize:       {segmentPayment, "authorized"},
	JobPaymentFollowUp:        {segmentPayment, "authorized"},
	JobPaymentCapture:         {segmentPayment, "captured"},
	JobPaymentCaptureFollowUp: {segmentPayment, "captured"},
}

// view is what a partner sees of one segment while the operation runs.
type view struct {
	Status    string `json:"status"`
	Reference string `json:"reference,omitempty"`
	Code      string `json:"code,omitempty"`
}

func partial(s worker.Step) (segment string, v any) {
	is, ok := shown[s.Type]
	if !ok {
		return "", nil
	}
	if s.Class != outcome.Success {
		if s.Code == CodeOutcomeUnknown {
			return is.segment, view{Status: "unknown", Code: s.Code}
		}
		return is.segment, view{Status: "failed", Code: s.Code}
	}
	var res held
	if err := json.Unmarshal(s.Result, &res); err != nil {
		return is.segment, view{Status: is.status}
	}
	return is.segment, view{Status: is.status, Reference: res.ID}
}
