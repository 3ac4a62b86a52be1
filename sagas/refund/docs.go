package refund

import (
	"github.com/vitrip/journeyman/sagas"
)

// docs is what the OpenAPI document says about refunds.
func docs() sagas.Docs {
	return sagas.Docs{
		Reasons: map[string]string{
			CodeBookingUnknown:       "there is no such booking of this tenant",
			CodeBookingNotRefundable: "the booking is not sold, or is already being given back",
			CodeRefundTooHigh:        "more is asked back than was captured and not paid back yet",
			CodeRefundIncomplete:     "a supplier did not take its part back; what others took back was reinstated",
			CodeRefundRefused:        "the payment provider refused to pay back",
			CodeOutcomeUnknown:       "a supplier did not say in time whether it acted",
		},
		Segments: map[string][]string{
			"payment":            {"paid", "failed"},
			"<kind> <reference>": {"refunded", "refused", "unknown"},
		},
	}
}
