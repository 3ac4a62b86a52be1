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

// CodeStepTimedOut is the reason of a booking that was given up because a supplier took longer than one step may.
const CodeStepTimedOut = "STEP_TIMED_OUT"

// Kinds of segments, as partners and events call them; there is one supplier for each.
const (
	KindFlight   = "flight"
	KindHotel    = "hotel"
	KindTransfer = "transfer"
)

// partPayment is the part of the partial result, and of the events, that is no segment. No segment has this id.
const partPayment = "payment"

// reserveElement is the element that reserves a segment, by kind. A step of it is "<element>:<segment id>".
var reserveElement = map[string]string{ //nolint:gochecknoglobals // a constant table
	KindFlight: ElementTourBookingFlightReserve, KindHotel: ElementTourBookingHotelReserve, KindTransfer: ElementTourBookingTransferReserve,
}

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
	steps, shown := make([]string, 0, len(r.Segments)+3), map[string]any{partPayment: view{Status: "pending"}}
	for _, s := range r.Segments {
		steps = append(steps, reserveElement[s.Kind]+":"+s.ID)
		shown[s.ID] = view{Status: "pending", Kind: s.Kind}
	}
	return sagas.Plan{
		BusinessKey: BusinessKey(tenant, r.Booking),
		Variables: map[string]any{
			"booking": r.Booking, "travellers": r.Travellers, "segments": r.Segments,
			"payment": r.Payment, "stepTimeout": isoSeconds(t.cfg.StepTimeout),
		},
		Steps:   append(steps, ElementTourBookingPaymentAuthorize, ElementTourBookingBookingConfirm, ElementTourBookingPaymentCapture),
		Partial: shown,
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
		Segments: len(r.Segments), Travellers: r.Travellers, Amount: r.Payment.Amount, Currency: r.Payment.Currency,
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
	Segments []SegmentResult `json:"segments"` // sorted by segment; only those that a supplier confirmed
	Payment  PaymentResult   `json:"payment"`
}

// SegmentResult is one confirmed segment.
type SegmentResult struct {
	Segment   string `json:"segment"` // its id in the request
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
		if err := rows.Scan(&s.Segment, &s.Kind, &s.Reference, &s.Status, &s.Amount, &s.Currency); err != nil {
			return nil, fmt.Errorf("list reservations of %s: %w", sagaID, err)
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// shown says what a job type tells about its part of the partial result: status when it succeeds, and the kind of its segment,
// "" for the payment.
var shown = map[string]struct{ kind, status string }{ //nolint:gochecknoglobals // a constant table
	JobFlightReserve:          {KindFlight, "confirmed"},
	JobFlightFollowUp:         {KindFlight, "confirmed"},
	JobHotelReserve:           {KindHotel, "confirmed"},
	JobHotelFollowUp:          {KindHotel, "confirmed"},
	JobTransferReserve:        {KindTransfer, "confirmed"},
	JobTransferFollowUp:       {KindTransfer, "confirmed"},
	JobPaymentAuthorize:       {"", "authorized"},
	JobPaymentFollowUp:        {"", "authorized"},
	JobPaymentCapture:         {"", "captured"},
	JobPaymentCaptureFollowUp: {"", "captured"},
}

// view is what a partner sees of one segment, or of the payment, while the operation runs.
type view struct {
	Kind      string `json:"kind,omitempty"`
	Status    string `json:"status"`
	Reference string `json:"reference,omitempty"`
	Code      string `json:"code,omitempty"`
}

func partial(s worker.Step) (part string, v any) {
	is, ok := shown[s.Type]
	if !ok {
		return "", nil
	}
	part = partPayment
	if is.kind != "" {
		var in struct{ SegmentID string }
		if json.Unmarshal(s.Input, &in) != nil || in.SegmentID == "" {
			return "", nil
		}
		part = in.SegmentID
	}
	switch {
	case s.Class != outcome.Success && s.Code == CodeOutcomeUnknown:
		return part, view{Kind: is.kind, Status: "unknown", Code: s.Code}
	case s.Class != outcome.Success:
		return part, view{Kind: is.kind, Status: "failed", Code: s.Code}
	}
	var res held
	if err := json.Unmarshal(s.Result, &res); err != nil {
		return part, view{Kind: is.kind, Status: is.status}
	}
	return part, view{Kind: is.kind, Status: is.status, Reference: res.ID}
}
