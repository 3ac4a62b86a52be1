package sagas

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Problem is an RFC 9457 problem document. It never repeats what the request held.
type Problem struct {
	Type        string        `json:"type"` // "urn:journeyman:problem:<name>"
	Title       string        `json:"title"`
	Status      int           `json:"status"`
	Detail      string        `json:"detail,omitempty"`
	OperationID string        `json:"operation_id,omitempty"`
	Errors      []*FieldError `json:"errors,omitempty"`
}

const problemURN = "urn:journeyman:problem:"

// The problems of the API, by the tail of their type.
const (
	problemUnauthorized = "unauthorized"
	problemForbidden    = "forbidden"
	problemNotFound     = "not-found"
	problemKeyMissing   = "idempotency-key-missing"
	problemKeyInvalid   = "idempotency-key-invalid"
	problemKeyReused    = "idempotency-key-reused"
	problemInvalid      = "invalid-request"
	problemTooLarge     = "body-too-large"
	problemMediaType    = "unsupported-media-type"
	problemTooFast      = "polling-too-fast"
	problemNotRetryable = "not-retryable"
	problemGone         = "operation-gone"
	problemMethod       = "method-not-allowed"
	problemChanged      = "precondition-failed"
	problemUnavailable  = "unavailable"
)

func writeProblem(w http.ResponseWriter, status int, name, title, detail string, more ...func(*Problem)) {
	p := Problem{Type: problemURN + name, Title: title, Status: status, Detail: detail}
	for _, f := range more {
		f(&p)
	}
	body, err := json.Marshal(p)
	if err != nil {
		http.Error(w, title, status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func withOperation(id string) func(*Problem) { return func(p *Problem) { p.OperationID = id } }

func withErrors(errs []*FieldError) func(*Problem) { return func(p *Problem) { p.Errors = errs } }

// fieldErrors takes the field errors out of an error tree; ok is false when there is any other error in it.
func fieldErrors(err error) (out []*FieldError, ok bool) {
	var one *FieldError
	if joined, isJoin := err.(interface{ Unwrap() []error }); isJoin { //nolint:errorlint // walks the tree itself
		for _, e := range joined.Unwrap() {
			part, ok := fieldErrors(e)
			if !ok {
				return nil, false
			}
			out = append(out, part...)
		}
		return out, len(out) > 0
	}
	if errors.As(err, &one) {
		return []*FieldError{one}, true
	}
	return nil, false
}

func setRetryAfter(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(d/time.Second)))
}
