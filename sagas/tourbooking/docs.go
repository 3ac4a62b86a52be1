package tourbooking

import (
	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/sagas"
)

// docs is what the OpenAPI document says about tour bookings.
func docs() sagas.Docs {
	segment := []string{"pending", "confirmed", "failed", "unknown"}
	return sagas.Docs{
		Reasons: map[string]string{
			CodeBookingExists:              "a booking of this number is being made, or is sold; nothing was reserved",
			models.CodeSoldOut:             "a supplier has nothing left",
			models.CodeOfferUnknown:        "a supplier does not know the offer any more",
			models.CodeReservationRefused:  "a supplier refused the reservation for another reason",
			models.CodePaymentDeclined:     "the payment was declined",
			models.CodeOutcomeUnknown:      "a supplier did not say in time whether it acted; what it had done was undone",
			models.CodeStepTimedOut:        "a supplier took longer than one step may; what it had done was undone",
			models.CodeBookingNotConfirmed: "the booking had moved on and could not be confirmed",
			models.CodeCaptureRefused:      "the booking is confirmed, taking the money failed, and a person settled it as failed",
			models.CodeNotReserved:         "a supplier had no reservation where one was looked for",
		},
		Segments: map[string][]string{
			segmentFlight: segment, segmentHotel: segment, segmentTransfer: segment,
			segmentPayment: {"pending", "authorized", "captured", "failed", "unknown"},
		},
	}
}
