package ticketing

import (
	"github.com/vitrip/journeyman/sagas"
)

// docs is what the OpenAPI document says about ticketing.
func docs() sagas.Docs {
	return sagas.Docs{
		Reasons: map[string]string{
			CodeTicketingRefused: "the airline refused to issue the tickets",
			CodeOutcomeUnknown:   "the airline did not say in time whether it took the request",
		},
		Segments: map[string][]string{"tickets": {"asked", "issued", "failed"}},
	}
}
