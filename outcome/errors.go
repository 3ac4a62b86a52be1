package outcome

import (
	"errors"
	"fmt"
	"time"
)

// ReasonUnavailable and the others below are set by [Classify] and by the runtime.
const (
	ReasonUnavailable = "unavailable" // RETRYABLE: a dependency did not answer or is shutting down
	ReasonContention  = "contention"  // RETRYABLE: deadlock, serialization failure, lock time-out
	ReasonCanceled    = "canceled"    // RETRYABLE: the work was told to stop
	ReasonError       = "error"       // RETRYABLE: an ordinary Go error
	ReasonStatement   = "statement"   // FATAL: SQL that can never succeed as written
	ReasonOutput      = "output"      // FATAL: the handler's output breaks a limit (path rule 28)
	ReasonGuard       = "crash_loop"  // FATAL: the job alone killed its process (path rule 7)
	ReasonKeyExpired  = "key_expired" // FATAL: the other system no longer honours the key (path rule 18)
	ReasonUndo        = "undo"        // FATAL: a compensation could not be done
)

// CodeUnknown is the BPMN error code of an external call whose result stayed unknown past its SLA (path rule 19).
const CodeUnknown = "OUTCOME_UNKNOWN"

// Error gives class, reason or code, and message; never variables.
func (e *Error) Error() string {
	s := string(e.Class)
	switch {
	case e.Code != "":
		s += " " + e.Code
	case e.Reason != "":
		s += " (" + e.Reason + ")"
	}
	if e.Message != "" {
		s += ": " + e.Message
	} else if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause, nil when there is none.
func (e *Error) Unwrap() error { return e.Err }

// Is lets errors.Is compare by class and code: a target with an empty field matches any value of that field.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	if !ok {
		return false
	}
	return (t.Class == "" || t.Class == e.Class) && (t.Code == "" || t.Code == e.Code) && (t.Reason == "" || t.Reason == e.Reason)
}

// NewRetryable says that the work may succeed when it is run again. after is the
// least waiting time, 0 = the caller's back-off. err must not be nil.
func NewRetryable(err error, after time.Duration) *Error {
	return &Error{Class: Retryable, Reason: ReasonError, After: after, Err: orUnspecified(err), Message: orUnspecified(err).Error()}
}

// NewUnknown says that the other system may have acted (spec Z3): the work is to be
// resolved by asking, its retries stay as they are.
func NewUnknown(err error) *Error {
	return &Error{Class: Retryable, Reason: ReasonUnknown, Err: orUnspecified(err), Message: orUnspecified(err).Error()}
}

// NewBusiness says that the domain refused. code is the BPMN error code.
func NewBusiness(code, message string) *Error {
	return &Error{Class: Business, Code: code, Message: message}
}

// NewFatal says that no repetition helps: a person must look.
func NewFatal(err error) *Error {
	return &Error{Class: Fatal, Reason: ReasonError, Err: orUnspecified(err), Message: orUnspecified(err).Error()}
}

// Fatalf is NewFatal with a reason and a message.
func Fatalf(reason, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: Fatal, Reason: reason, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Panicked is the FATAL outcome of a recovered panic. The stack belongs in the log, not here.
func Panicked(value any) *Error {
	err, _ := value.(error)
	return &Error{Class: Fatal, Reason: ReasonPanic, Message: fmt.Sprintf("panic: %v", value), Err: err}
}

// ClassOf gives the class of err: SUCCESS for nil, else what [Classify] says.
func ClassOf(err error) Class {
	if e := Classify(err); e != nil {
		return e.Class
	}
	return Success
}

func orUnspecified(err error) error {
	if err == nil {
		return errors.New("unspecified error")
	}
	return err
}
