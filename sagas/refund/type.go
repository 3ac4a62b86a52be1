package refund

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/worker"
)

// TypeName is the operation type of a refund.
const TypeName = "refund"

// Codes that refuse a refund before any process starts.
const (
	CodeBookingUnknown       = "BOOKING_UNKNOWN"
	CodeBookingNotRefundable = "BOOKING_NOT_REFUNDABLE" // not sold, or already being given back
	CodeRefundTooHigh        = "REFUND_TOO_HIGH"        // more than was captured and not paid back
)

//go:embed catalog.yaml
var catalog []byte

// Catalog is the catalog of the refund events, for events.ParseCatalog.
func Catalog() []byte { return append([]byte(nil), catalog...) }

// Request is the body of POST /v1/operations/refund. Amounts are in minor units.
type Request struct {
	Booking  string    `json:"booking"`
	Segments []Segment `json:"segments"`
	Currency string    `json:"currency"` // ISO 4217
}

// Segment is one part to give back.
type Segment struct {
	Kind      string `json:"kind"`      // flight, hotel or transfer
	Reference string `json:"reference"` // the supplier's, from the result of the booking
	Amount    int64  `json:"amount"`
}

const (
	maxSegments  = 20
	maxReference = 100
)

func (r Request) check() error {
	errs := []error{tourbooking.CheckBooking("booking", r.Booking), tourbooking.CheckCurrency("currency", r.Currency)}
	switch {
	case len(r.Segments) == 0:
		errs = append(errs, sagas.Invalid("segments", "is missing"))
	case len(r.Segments) > maxSegments:
		errs = append(errs, sagas.Invalid("segments", fmt.Sprintf("must have at most %d entries", maxSegments)))
		return errors.Join(errs...)
	}
	seen := map[string]bool{}
	for i, s := range r.Segments {
		at := func(name string) string { return fmt.Sprintf("segments[%d].%s", i, name) }
		switch s.Kind {
		case "flight", "hotel", "transfer":
		case "":
			errs = append(errs, sagas.Invalid(at("kind"), "is missing"))
		default:
			errs = append(errs, sagas.Invalid(at("kind"), "must be flight, hotel or transfer"))
		}
		switch {
		case s.Reference == "":
			errs = append(errs, sagas.Invalid(at("reference"), "is missing"))
		case len(s.Reference) > maxReference:
			errs = append(errs, sagas.Invalid(at("reference"), fmt.Sprintf("must be at most %d bytes", maxReference)))
		case seen[s.Kind+" "+s.Reference]:
			errs = append(errs, sagas.Invalid(at("reference"), "stands twice"))
		}
		seen[s.Kind+" "+s.Reference] = true
		errs = append(errs, tourbooking.CheckAmount(at("amount"), s.Amount))
	}
	return errors.Join(errs...)
}

// retention is how long a refund's answer is kept (spec I5).
const retention = 90 * 24 * time.Hour

// TypeConfig is for [Type]. The zero value works.
type TypeConfig struct {
	Schema  string        // "" = "journeyman"
	Timeout time.Duration // of the saga; 0 = 60 min (spec I5)
}

// Type describes the refund saga to package sagas.
//
// Errors: a bad schema name.
func Type(cfg TypeConfig) (sagas.Type, error) {
	b, err := tourbooking.NewBookings(cfg.Schema)
	if err != nil {
		return sagas.Type{}, fmt.Errorf("refund: %w", err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Hour
	}
	t := refundType{bookings: b, sql: render(postgres.SchemaOr(cfg.Schema))}
	return sagas.Type{
		Name: TypeName, ProcessID: ProcessRefund,
		Timeout: cfg.Timeout, Retention: retention, Estimate: min(time.Minute, cfg.Timeout),
		Steps: []string{ElementRefundSegmentRefund, ElementRefundRefundApprove, ElementRefundRefundPay},
		Parse: parse, OnStart: t.onStart, Result: t.result, Partial: partial, Docs: docs(), Money: true,
	}, nil
}

func parse(_ context.Context, tenant string, body []byte) (sagas.Plan, error) {
	r, err := sagas.Decode[Request](body)
	if err != nil {
		return sagas.Plan{}, err
	}
	if err := r.check(); err != nil {
		return sagas.Plan{}, err
	}
	steps := make([]string, 0, len(r.Segments)+2)
	shown := map[string]any{}
	for i := range r.Segments {
		step := fmt.Sprintf("%s:%d", ElementRefundSegmentRefund, i+1)
		steps = append(steps, step)
		shown[r.Segments[i].Kind+" "+r.Segments[i].Reference] = view{Status: "pending"}
	}
	return sagas.Plan{
		BusinessKey: tourbooking.BusinessKey(tenant, r.Booking),
		Variables:   map[string]any{"booking": r.Booking, "segments": r.Segments, "currency": r.Currency},
		Steps:       append(steps, ElementRefundRefundApprove, ElementRefundRefundPay),
		Partial:     shown,
	}, nil
}

type refundType struct {
	bookings *tourbooking.Bookings
	sql      queries
}

// onStart decides whether the money may be paid back at all, and begins the cancellation, in one transaction (spec I11).
func (t refundType) onStart(ctx context.Context, tx *outbox.Tx, a sagas.Attempt) error {
	var r Request
	err := a.Request(&r)
	if err != nil {
		return worker.Fatal(err)
	}
	_, err = t.bookings.Move(ctx, tx, a.BusinessKey, tourbooking.BeginCancellation, tourbooking.Detail{})
	var refused *tourbooking.MoveError
	switch {
	case errors.As(err, &refused) && refused.State == "":
		return worker.BusinessError(CodeBookingUnknown, refused.Error())
	case errors.As(err, &refused):
		return worker.BusinessError(CodeBookingNotRefundable, refused.Error())
	case err != nil:
		return err
	}
	captured, err := t.bookings.Captured(ctx, tx, a.BusinessKey, r.Currency)
	if err != nil {
		return err
	}
	var asked int64
	for _, s := range r.Segments {
		asked += s.Amount
	}
	if asked > captured {
		return worker.BusinessError(CodeRefundTooHigh, fmt.Sprintf("%d asked back, %d captured and not paid back", asked, captured))
	}
	return nil
}

// Result is what the final answer of a refund shows.
type Result struct {
	Booking  string            `json:"booking"`
	State    tourbooking.State `json:"state"`    // of the booking; "" when it is not ours to tell
	Segments []SegmentResult   `json:"segments"` // sorted by kind; those that a supplier answered for
	Amount   int64             `json:"amount"`   // paid back, minor units
	Currency string            `json:"currency"`
}

// SegmentResult is one answered segment.
type SegmentResult struct {
	Kind      string `json:"kind"`
	Reference string `json:"reference"` // the supplier's, of the return; "" when it refused
	Status    string `json:"status"`    // refunded, refused or reinstated
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
}

// result takes a given-up cancellation back: the booking is as it was.
func (t refundType) result(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) (any, error) {
	var r Request
	err := a.Request(&r)
	if err != nil {
		return nil, worker.Fatal(err)
	}
	out := Result{Booking: r.Booking, Currency: r.Currency}
	if out.Segments, err = t.answered(ctx, tx, a.OperationID); err != nil {
		return nil, err
	}
	if e.Decision == sagas.Completed {
		out.State = tourbooking.Cancelled
		if e.State == string(sagas.Completed) {
			_, out.Amount, err = t.taken(ctx, tx, a.OperationID)
		}
		return out, err
	}
	if refusedAtStart(e.Code) {
		return out, nil
	}
	k, err := t.bookings.Lock(ctx, tx, a.BusinessKey)
	if err != nil {
		return nil, err
	}
	if k, err = t.bookings.Move(ctx, tx, a.BusinessKey, k.ResumeEvent(), tourbooking.Detail{Reason: e.Code}); err != nil {
		return nil, tourbooking.FatalIfRefused(err)
	}
	out.State = k.State
	return out, nil
}

// refusedAtStart says that onStart refused: the cancellation never began, or is another refund's.
func refusedAtStart(code string) bool {
	return code == CodeBookingUnknown || code == CodeBookingNotRefundable || code == CodeRefundTooHigh
}

// taken is how many segments the suppliers took back, and for how much.
func (t refundType) taken(ctx context.Context, tx *outbox.Tx, sagaID string) (n int, amount int64, err error) {
	return sumSegments(ctx, tx, t.sql, sagaID)
}

func sumSegments(ctx context.Context, tx *outbox.Tx, sql queries, sagaID string) (n int, amount int64, err error) {
	if err := tx.QueryRow(ctx, sql.sumSegments, sagaID).Scan(&n, &amount); err != nil {
		return 0, 0, fmt.Errorf("sum segments of %s: %w", sagaID, err)
	}
	return n, amount, nil
}

func (t refundType) answered(ctx context.Context, tx *outbox.Tx, sagaID string) ([]SegmentResult, error) {
	rows, err := tx.Query(ctx, t.sql.segments, sagaID)
	if err != nil {
		return nil, fmt.Errorf("list segments of %s: %w", sagaID, err)
	}
	defer rows.Close()
	out := []SegmentResult{}
	for rows.Next() {
		var s SegmentResult
		if err := rows.Scan(&s.Kind, &s.Reference, &s.Status, &s.Amount, &s.Currency); err != nil {
			return nil, fmt.Errorf("list segments of %s: %w", sagaID, err)
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

// view is what a partner sees of one segment while the refund runs.
type view struct {
	Status    string `json:"status"`
	Reference string `json:"reference,omitempty"`
	Code      string `json:"code,omitempty"`
}

func partial(s worker.Step) (segment string, v any) {
	switch s.Type {
	case JobRefundPay, JobRefundFollowUp:
		if s.Class != outcome.Success {
			return "payment", view{Status: "failed", Code: s.Code}
		}
		return "payment", view{Status: "paid"}
	case JobSegmentRefund, JobSegmentFollowUp:
		var in SegmentRefundIn
		var res returned
		if json.Unmarshal(s.Input, &in) != nil {
			return "", nil
		}
		name := in.Segment.Kind + " " + in.Segment.Reference
		if s.Class != outcome.Success {
			return name, view{Status: "unknown", Code: s.Code}
		}
		if json.Unmarshal(s.Result, &res) != nil {
			return "", nil
		}
		return name, view{Status: res.Status, Reference: res.ID, Code: res.Code}
	default:
		return "", nil
	}
}
