package worker

import (
	"errors"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
)

// ErrNotHappened is what Resolve returns when it is certain that the call took no effect and will take none.
var ErrNotHappened = errors.New("the call did not happen")

// Codes of BUSINESS outcomes that the runtime itself gives.
const (
	CodeSagaGivenUp    = "SAGA_GIVEN_UP"     // the operation was revoked, or its saga decided otherwise (path rules 10, 11)
	CodeSagaNotMine    = "SAGA_NOT_MINE"     // another instance owns the saga (path rule 15)
	CodeOutcomeUnknown = outcome.CodeUnknown // still unknown past the SLA (path rule 19)
)

// ErrorOption adds to an outcome made by BusinessError, Retryable or Unknown.
type ErrorOption interface{ apply(*refusal) }

type errorOption func(*refusal)

func (f errorOption) apply(e *refusal) { f(e) }

// refusal is an outcome with the events attached to it.
type refusal struct {
	end  *outcome.Error
	msgs []events.Message
}

// Error gives the outcome's text.
func (r *refusal) Error() string { return r.end.Error() }

// Unwrap gives the outcome.
func (r *refusal) Unwrap() error { return r.end }

// eventsOf gives the events attached to a refusal.
func eventsOf(err error) []events.Message {
	var r *refusal
	if errors.As(err, &r) {
		return r.msgs
	}
	return nil
}

// WithEvents stages these messages with a refusal; what the handler emitted before is dropped with its changes (path rule 3).
func WithEvents(msgs ...events.Message) ErrorOption {
	return errorOption(func(e *refusal) { e.msgs = append(e.msgs, msgs...) })
}

// After asks for a wait of at least d before the next attempt, instead of the worker's back-off.
func After(d time.Duration) ErrorOption { return errorOption(func(e *refusal) { e.end.After = d }) }

// WaitBy sets the waits between attempts for this kind of error, instead of the handler's: the n-th attempt waits by b.Wait(n). Bounds
// that make no sense are FATAL.
func WaitBy(b outcome.Backoff) ErrorOption {
	return errorOption(func(e *refusal) { e.end.Backoff = &b })
}

// WithVariables sends variables with a BPMN error. An error boundary keeps them local unless it maps them.
func WithVariables(v map[string]any) ErrorOption {
	return errorOption(func(e *refusal) { e.end.Variables = v })
}

// KeepChanges keeps what the handler wrote and emitted, instead of rolling it back (path rule 3).
func KeepChanges() ErrorOption { return errorOption(func(e *refusal) { e.end.Keep = true }) }

// BusinessError says that the domain refused: ThrowError with this BPMN error code. The handler's changes are rolled back
// and its buffered events dropped, unless KeepChanges is given.
func BusinessError(code, message string, opts ...ErrorOption) error {
	return with(outcome.NewBusiness(code, message), opts)
}

// Retryable says that a later attempt may succeed: FailJob with one retry fewer. From an external Call it also says that the
// other system certainly did nothing.
func Retryable(err error, opts ...ErrorOption) error {
	return with(outcome.NewRetryable(err, 0), opts)
}

// Fatal says that a person must look: FailJob with no retries left, so an incident. From an external Call it also says that
// the other system certainly did nothing.
func Fatal(err error) error { return outcome.NewFatal(err) }

// Unknown says that the other system may have acted. Retries stay as they are, the next attempt asks it first (path rule 19).
func Unknown(err error, opts ...ErrorOption) error { return with(outcome.NewUnknown(err), opts) }

func with(e *outcome.Error, opts []ErrorOption) error {
	r := &refusal{end: e}
	for _, o := range opts {
		o.apply(r)
	}
	if b := e.Backoff; b != nil {
		if err := b.Check(); err != nil {
			return outcome.Fatalf(outcome.ReasonError, "WaitBy: %w", err)
		}
	}
	if r.msgs == nil {
		return e
	}
	return r
}
