package events

import "time"

// Kind says whether a message states a fact or asks for one.
type Kind string

// The two kinds (spec E1).
const (
	KindEvent   Kind = "event"
	KindCommand Kind = "command"
)

// Message is what a handler stages. The outbox makes the envelope around it.
type Message struct {
	Type        string    // "<domain>.<entity>.<action>", or a command name (spec E2)
	Version     int       // major version, 0 means 1
	Kind        Kind      // "" means KindEvent
	BusinessKey string    // partition and order key; "" means the business key of the operation that stages it
	OccurredAt  time.Time // zero means the database's time of staging
	Data        any       // marshalled with encoding/json; must become a JSON object
	Corrects    string    // messageId this one corrects (spec E13), "" for none
}

// Actor is who started an operation; it is carried along to everything the operation causes (spec E1).
type Actor struct {
	UserID        string `json:"userId,omitempty"`
	Context       string `json:"actorContext,omitempty"`
	ServiceClient string `json:"serviceClient,omitempty"`
}

// Origin is the operation on whose behalf messages are staged. It fills the envelope's metadata and headers.
type Origin struct {
	OperationID        string
	BusinessKey        string
	CorrelationID      string
	ProcessInstanceKey int64  // 0 when there is none
	Traceparent        string // W3C, "" when there is none
	HTTPIdempotencyKey string
	Actor              Actor
	Replay             bool

	// IDSeed is what message ids are derived from, so that a re-run stages the
	// same ids (spec O7). "" means OperationID; when both are empty ids are
	// random. A run that is a publication of its own under an operation id that
	// was published before, such as one after an operator's retry (path rule 5),
	// must bring another seed.
	IDSeed string
}
