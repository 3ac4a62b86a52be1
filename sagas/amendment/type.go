package amendment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/worker"
)

// TypeName is the operation type of an amendment.
const TypeName = "amendment"

// Request is the body of POST /v1/operations/amendment. Amounts are in minor units.
type Request struct {
	Booking  string `json:"booking"`          // the partner's own number
	Segment  string `json:"segment"`          // id of the segment in the booking
	Kind     string `json:"kind"`             // of the segment: hotel or transfer
	Offer    string `json:"offer"`            // that replaces the present one
	Nights   int64  `json:"nights,omitempty"` // hotel only
	Amount   int64  `json:"amount"`           // of the whole booking afterwards
	Currency string `json:"currency"`         // that of the booking
	Token    string `json:"token"`            // of the payment provider, for what it costs more
}

const (
	maxNights = 365
	maxToken  = 200
	maxOffer  = 64
)

func (r Request) check() error {
	errs := []error{tourbooking.CheckBooking("booking", r.Booking), tourbooking.CheckAmount("amount", r.Amount), tourbooking.CheckCurrency("currency", r.Currency)}
	errs = append(errs, tourbooking.CheckSegment("segment", r.Segment))
	if r.Kind != tourbooking.KindHotel && r.Kind != tourbooking.KindTransfer {
		errs = append(errs, sagas.Invalid("kind", "must be hotel or transfer"))
	}
	if r.Offer == "" || len(r.Offer) > maxOffer {
		errs = append(errs, sagas.Invalid("offer", fmt.Sprintf("must have 1 to %d bytes", maxOffer)))
	}
	if (r.Kind == tourbooking.KindHotel) != (r.Nights >= 1 && r.Nights <= maxNights) {
		errs = append(errs, sagas.Invalid("nights", fmt.Sprintf("must be 1 to %d for a hotel, and absent otherwise", maxNights)))
	}
	if r.Token == "" || len(r.Token) > maxToken {
		errs = append(errs, sagas.Invalid("token", fmt.Sprintf("must have 1 to %d bytes", maxToken)))
	}
	return errors.Join(errs...)
}

// TypeConfig is for [Type]. The zero value works.
type TypeConfig struct {
	Schema  string        // "" = "journeyman"
	Timeout time.Duration // of the saga; 0 = 30 min, as of the booking it changes
}

// Type describes the amendment saga to package sagas.
//
// Errors: a bad schema name.
func Type(cfg TypeConfig) (sagas.Type, error) {
	b, err := tourbooking.NewBookings(cfg.Schema)
	if err != nil {
		return sagas.Type{}, fmt.Errorf("amendment: %w", err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Minute
	}
	return sagas.Type{
		Name: TypeName, ProcessID: ProcessAmendment, Timeout: cfg.Timeout, Retention: 30 * 24 * time.Hour, Estimate: min(30*time.Second, cfg.Timeout), Money: true,
		Steps: []string{
			ElementAmendmentAmendmentBegin, ElementAmendmentSegmentReserve, ElementAmendmentDifferenceAuthorize, ElementAmendmentAmendmentConfirm,
			ElementAmendmentDifferenceSettle, ElementAmendmentOldRelease,
		},
		Parse: parse, Result: result{b}.of, Partial: partial,
		Docs: sagas.Docs{
			Reasons: map[string]string{
				CodeNotAmendable: "there is no such booking of this tenant, it is not sold, it has no such segment of this kind, another change is under way, or the currency is another",
				CodeSoldOut:      "the supplier has no room left", CodeOfferUnknown: "the supplier does not know the offer",
				CodeReservationRefused: "the supplier refused", CodePaymentDeclined: "the difference was not authorized",
				CodeNotReserved:    "the supplier had no reservation where one was looked for",
				CodeOutcomeUnknown: "a supplier did not say in time whether it acted; what it did was undone",
			},
			Segments: map[string][]string{"segment": {"pending", "reserved", "failed", "unknown"}, "difference": {"authorized", "settled", "failed", "unknown"}, "old": {"released", "failed", "unknown"}},
		},
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
	return sagas.Plan{
		BusinessKey: tourbooking.BusinessKey(tenant, r.Booking),
		Variables: map[string]any{
			"booking": r.Booking, "segment": r.Segment, "kind": r.Kind, "offer": r.Offer, "nights": r.Nights, "amount": r.Amount, "currency": r.Currency, "token": r.Token,
		},
		Partial: map[string]any{"segment": view{Status: "pending"}},
	}, nil
}

// Result is what the final answer of an amendment shows.
type Result struct {
	Booking  string            `json:"booking"`
	State    tourbooking.State `json:"state"`  // of the booking; "" when there is none
	Amount   int64             `json:"amount"` // of the booking, minor units
	Currency string            `json:"currency"`
	Segment  string            `json:"segment"`
	Supplier string            `json:"supplier,omitempty"` // the supplier's reference of the segment that stands
}

type result struct{ bookings *tourbooking.Bookings }

func (t result) of(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) (any, error) {
	var r Request
	if err := a.Request(&r); err != nil {
		return nil, worker.Fatal(err)
	}
	out := Result{Booking: r.Booking, Currency: r.Currency, Segment: r.Segment}
	k, err := t.bookings.Lock(ctx, tx, a.BusinessKey)
	if errors.Is(err, tourbooking.ErrUnknown) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if len(e.Remediation) > 0 {
		if k, err = t.byHand(ctx, tx, k, a.OperationID, e.Remediation); err != nil {
			return nil, err
		}
	}
	out.State, out.Amount, out.Currency = k.State, k.Amount, k.Currency
	_, out.Supplier, err = t.bookings.Standing(ctx, tx, k, r.Segment)
	if errors.Is(err, tourbooking.ErrUnknown) {
		err = nil
	}
	return out, err
}

// byHand takes over what a person reported: beside "outcome" and their own words the fields of [tourbooking.ByHand], each of which may be
// missing. What does not fit the booking is refused: nothing is closed until the report is right.
func (t result) byHand(ctx context.Context, tx *outbox.Tx, k tourbooking.Booking, sagaID string, report json.RawMessage) (tourbooking.Booking, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(report), []byte("{")) {
		return k, nil // words only
	}
	var h tourbooking.ByHand
	if err := json.Unmarshal(report, &h); err != nil {
		return k, outcome.Fatalf("remediation", "the report of what was done by hand: %v", err)
	}
	if err := t.bookings.SettledByHand(ctx, tx, k, sagaID, h); err != nil {
		if errors.Is(err, tourbooking.ErrByHand) {
			err = outcome.NewFatal(err)
		}
		return k, err
	}
	return t.bookings.Lock(ctx, tx, k.BusinessKey)
}

// view is what a partner sees of one part while the operation runs.
type view struct {
	Status    string `json:"status"`
	Reference string `json:"reference,omitempty"`
	Code      string `json:"code,omitempty"`
}

func partial(s worker.Step) (segment string, v any) {
	is, ok := map[string]struct{ segment, status string }{
		JobAmendmentReserve: {"segment", "reserved"}, JobAmendmentFollowUp: {"segment", "reserved"},
		JobAmendmentAuthorize: {"difference", "authorized"}, JobAmendmentPaymentFollowUp: {"difference", "authorized"},
		JobAmendmentSettle: {"difference", "settled"}, JobAmendmentSettleFollowUp: {"difference", "settled"}, JobAmendmentReleaseOld: {"old", "released"},
	}[s.Type]
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
	if json.Unmarshal(s.Result, &res) != nil {
		return is.segment, view{Status: is.status}
	}
	return is.segment, view{Status: is.status, Reference: res.ID}
}
