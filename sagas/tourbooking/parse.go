package tourbooking

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/vitrip/journeyman/sagas"
)

// Request is the body of POST /v1/operations/tour-booking. Amounts are in minor units.
type Request struct {
	Booking    string           `json:"booking"` // the partner's own number
	Travellers int              `json:"travellers"`
	Segments   []SegmentRequest `json:"segments"` // 1 to MaxSegments, of any kinds
	Payment    PaymentRequest   `json:"payment"`
}

// MaxSegments is the most segments of one booking.
const MaxSegments = 20

// SegmentRequest names one part of the tour.
type SegmentRequest struct {
	ID     string `json:"id"`   // the partner's own, unique in the booking: operation ids are made of it
	Kind   string `json:"kind"` // flight, hotel or transfer
	Offer  string `json:"offer"`
	Nights int    `json:"nights,omitempty"` // hotel only
}

// PaymentRequest says who pays how much.
type PaymentRequest struct {
	Token    string `json:"token"` // of the payment provider; never a card number
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"` // ISO 4217
}

// Limits of a request.
const (
	maxTravellers = 99
	maxNights     = 365
	maxAmount     = 1_000_000_000_00 // minor units
	maxToken      = 200
)

var (
	bookingPattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) //nolint:gochecknoglobals // compiled once
	segmentPattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`) //nolint:gochecknoglobals // compiled once
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)                       //nolint:gochecknoglobals // compiled once
)

// Offers says which offers exist. The zero value knows numbered ones: FL-1 to FL-999999, HT-…, TR-….
type Offers struct {
	// Known replaces the rule; kind is "flight", "hotel" or "transfer". It must be safe for concurrent use.
	Known func(ctx context.Context, kind, offer string) (bool, error)
}

var numbered = map[string]*regexp.Regexp{ //nolint:gochecknoglobals // compiled once
	KindFlight:   regexp.MustCompile(`^FL-[0-9]{1,6}$`),
	KindHotel:    regexp.MustCompile(`^HT-[0-9]{1,6}$`),
	KindTransfer: regexp.MustCompile(`^TR-[0-9]{1,6}$`),
}

func (o Offers) known(ctx context.Context, kind, offer string) (bool, error) {
	if o.Known != nil {
		return o.Known(ctx, kind, offer)
	}
	return numbered[kind].MatchString(offer), nil
}

// CheckBooking refuses a booking number that is missing or has other than letters, digits, "-" and "_".
func CheckBooking(field, booking string) error {
	switch {
	case booking == "":
		return sagas.Invalid(field, "is missing")
	case !bookingPattern.MatchString(booking):
		return sagas.Invalid(field, "must be 1 to 64 letters, digits, - and _, and begin with a letter or digit")
	}
	return nil
}

// CheckCurrency refuses what is not three upper-case letters.
func CheckCurrency(field, currency string) error {
	switch {
	case currency == "":
		return sagas.Invalid(field, "is missing")
	case !currencyPattern.MatchString(currency):
		return sagas.Invalid(field, "must be three upper-case letters")
	}
	return nil
}

// CheckAmount refuses an amount that is not above 0 or is out of all reason.
func CheckAmount(field string, amount int64) error {
	if amount < 1 || amount > maxAmount {
		return sagas.Invalid(field, fmt.Sprintf("must be from 1 to %d, in minor units", int64(maxAmount)))
	}
	return nil
}

func checkRange(field string, n, most int) error {
	if n < 1 || n > most {
		return sagas.Invalid(field, fmt.Sprintf("must be from 1 to %d", most))
	}
	return nil
}

// CheckSegment refuses a segment id that is missing, has other than letters, digits, "-" and "_", or is the name of the payment.
func CheckSegment(field, id string) error {
	switch {
	case id == "":
		return sagas.Invalid(field, "is missing")
	case !segmentPattern.MatchString(id):
		return sagas.Invalid(field, "must be 1 to 32 letters, digits, - and _, and begin with a letter or digit")
	case id == partPayment:
		return sagas.Invalid(field, "must not be "+partPayment+", which is another part of the answer")
	}
	return nil
}

// CheckKind refuses what is no kind of segment.
func CheckKind(field, kind string) error {
	switch kind {
	case KindFlight, KindHotel, KindTransfer:
		return nil
	case "":
		return sagas.Invalid(field, "is missing")
	}
	return sagas.Invalid(field, "must be flight, hotel or transfer")
}

// check names every field that is wrong, not only the first. An error that names no field is not the partner's mistake.
func (r Request) check(ctx context.Context, offers Offers) error {
	errs := []error{
		CheckBooking("booking", r.Booking),
		checkRange("travellers", r.Travellers, maxTravellers),
	}
	switch n := len(r.Segments); {
	case n == 0:
		errs = append(errs, sagas.Invalid("segments", "is missing"))
	case n > MaxSegments:
		errs = append(errs, sagas.Invalid("segments", fmt.Sprintf("has %d entries, must have at most %d", n, MaxSegments)))
	default:
		of, err := checkSegments(ctx, r.Segments, offers)
		if err != nil {
			return err
		}
		errs = append(errs, of...)
	}
	errs = append(errs, r.Payment.Check("payment"))
	return errors.Join(errs...)
}

// checkSegments gives what is wrong with the segments; err is not the partner's mistake.
func checkSegments(ctx context.Context, segments []SegmentRequest, offers Offers) (wrong []error, err error) {
	seen := map[string]int{}
	for i, s := range segments {
		at := func(name string) string { return fmt.Sprintf("segments[%d].%s", i, name) }
		wrong = append(wrong, CheckSegment(at("id"), s.ID))
		if first, twice := seen[s.ID]; twice && s.ID != "" {
			wrong = append(wrong, sagas.Invalid(at("id"), fmt.Sprintf("is that of segments[%d] too", first)))
		} else {
			seen[s.ID] = i
		}
		if bad := CheckKind(at("kind"), s.Kind); bad != nil {
			wrong = append(wrong, bad)
			continue
		}
		err := offers.Check(ctx, at("offer"), s.Kind, s.Offer)
		var field *sagas.FieldError
		if err != nil && !errors.As(err, &field) {
			return nil, err
		}
		wrong = append(wrong, err)
		switch {
		case s.Kind == KindHotel:
			wrong = append(wrong, checkRange(at("nights"), s.Nights, maxNights))
		case s.Nights != 0:
			wrong = append(wrong, sagas.Invalid(at("nights"), "is for a hotel only"))
		}
	}
	return wrong, nil
}
