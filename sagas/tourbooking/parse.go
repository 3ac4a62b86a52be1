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
	Booking    string          `json:"booking"` // the partner's own number
	Travellers int             `json:"travellers"`
	Flight     FlightRequest   `json:"flight"`
	Hotel      HotelRequest    `json:"hotel"`
	Transfer   TransferRequest `json:"transfer"`
	Payment    PaymentRequest  `json:"payment"`
}

// FlightRequest names the flight.
type FlightRequest struct {
	Offer string `json:"offer"`
}

// HotelRequest names the hotel and how long the stay is.
type HotelRequest struct {
	Offer  string `json:"offer"`
	Nights int    `json:"nights"`
}

// TransferRequest names the transfer.
type TransferRequest struct {
	Offer string `json:"offer"`
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
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)                       //nolint:gochecknoglobals // compiled once
)

// Offers says which offers exist. The zero value knows numbered ones: FL-1 to FL-999999, HT-…, TR-….
type Offers struct {
	// Known replaces the rule; segment is "flight", "hotel" or "transfer". It must be safe for concurrent use.
	Known func(ctx context.Context, segment, offer string) (bool, error)
}

var numbered = map[string]*regexp.Regexp{ //nolint:gochecknoglobals // compiled once
	segmentFlight:   regexp.MustCompile(`^FL-[0-9]{1,6}$`),
	segmentHotel:    regexp.MustCompile(`^HT-[0-9]{1,6}$`),
	segmentTransfer: regexp.MustCompile(`^TR-[0-9]{1,6}$`),
}

func (o Offers) known(ctx context.Context, segment, offer string) (bool, error) {
	if o.Known != nil {
		return o.Known(ctx, segment, offer)
	}
	return numbered[segment].MatchString(offer), nil
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

// check names every field that is wrong, not only the first.
func (r Request) check(ctx context.Context, offers Offers) error {
	errs := []error{
		CheckBooking("booking", r.Booking),
		checkRange("travellers", r.Travellers, maxTravellers),
	}
	for _, o := range []struct{ segment, offer string }{
		{segmentFlight, r.Flight.Offer}, {segmentHotel, r.Hotel.Offer}, {segmentTransfer, r.Transfer.Offer},
	} {
		err := offers.Check(ctx, o.segment+".offer", o.segment, o.offer)
		var wrong *sagas.FieldError
		if err != nil && !errors.As(err, &wrong) {
			return err
		}
		errs = append(errs, err)
	}
	errs = append(errs, checkRange("hotel.nights", r.Hotel.Nights, maxNights))
	errs = append(errs, r.Payment.Check("payment"))
	return errors.Join(errs...)
}
