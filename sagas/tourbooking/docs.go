package tourbooking

import (
	"github.com/vitrip/journeyman/sagas"
)

// docs is what the OpenAPI document says about tour bookings.
func docs() sagas.Docs {
	segment := []string{"pending", "confirmed", "failed", "unknown"}
	return sagas.Docs{
		Reasons: map[string]string{
			CodeBookingExists:         "a booking of this number is being made, or is sold; nothing was reserved",
			CodeSoldOut:               "a supplier has nothing left",
			CodeOfferUnknown:          "a supplier does not know the offer any more",
			CodeReservationRefused:    "a supplier refused the reservation for another reason",
			CodePaymentDeclined:       "the payment was declined",
			CodeOutcomeUnknown:        "a supplier did not say in time whether it acted; what it had done was undone",
			CodeStepTimedOut:          "a supplier took longer than one step may; what it had done was undone",
			CodeBookingNotConfirmable: "the booking had moved on and could not be confirmed",
			CodeCaptureRefused:        "the booking is confirmed, taking the money failed, and a person settled it as failed",
			CodeNotReserved:           "a supplier had no reservation where one was looked for",
		},
		Segments: map[string][]string{
			"<segment id>": segment,
			partPayment:    {"pending", "authorized", "captured", "failed", "unknown"},
		},
	}
}
