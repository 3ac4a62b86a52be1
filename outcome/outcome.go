// Package outcome holds the four ways a piece of work can end, the error type
// that says which, a classifier for ordinary Go errors and the back-off between
// attempts.
//
// It is a leaf: it imports the standard library and pgconn only, so that
// workers, consumers and sagas can share one vocabulary.
package outcome

import (
	"time"
)

// Class is how a piece of work ended. There are exactly four (spec Z3).
type Class string

// The four classes, spelled as in records, logs and metric labels.
const (
	Success   Class = "SUCCESS"
	Retryable Class = "RETRYABLE_ERROR"
	Business  Class = "BUSINESS_ERROR"
	Fatal     Class = "FATAL_ERROR"
)

// Reasons say more about a class. Handlers may use their own.
const (
	ReasonUnknown  = "unknown"  // RETRYABLE: the other system may have acted (spec Z3)
	ReasonPanic    = "panic"    // FATAL: the handler panicked
	ReasonDeadline = "deadline" // RETRYABLE: the handler ran out of time
	ReasonConflict = "conflict" // FATAL: same operation id, other payload (spec W8)
	ReasonInput    = "input"    // FATAL: job variables are missing or of the wrong type (spec W2)
	ReasonRevoked  = "revoked"  // BUSINESS: undo was faster (path rule 11)
)

// Error is an outcome other than SUCCESS, as a Go error. The zero value is not useful.
type Error struct {
	Class     Class
	Reason    string         // constant word, "" when the class says it all
	Code      string         // BPMN error code, BUSINESS only
	Message   string         // shown to operators; no payload, no secret
	Variables map[string]any // sent with a BPMN error, BUSINESS only
	After     time.Duration  // RETRYABLE: wait at least this long; 0 = the worker's back-off
	Backoff   *Backoff       // RETRYABLE: waits of this kind of error, instead of the worker's; nil = none
	Keep      bool           // BUSINESS: keep the handler's changes instead of rolling them back (path rule 3)
	Err       error          // cause, may be nil
}
