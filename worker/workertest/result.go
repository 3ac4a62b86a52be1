package workertest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

// Result is what a handler came to, as a worker would record and answer it.
type Result struct {
	Class     outcome.Class    // SUCCESS, RETRYABLE_ERROR, BUSINESS_ERROR or FATAL_ERROR
	Reason    string           // says more about the class, for example "unknown", "panic", "input"; may be empty
	Code      string           // BPMN error code of a BUSINESS_ERROR
	Message   string           // of a class other than SUCCESS
	Output    json.RawMessage  // variables of the completed job, or of the BPMN error; nil = none
	Messages  []events.Message // what would be staged
	After     time.Duration    // the wait that a RETRYABLE_ERROR asks for; 0 = the worker's back-off
	Discarded bool             // what the handler wrote was rolled back
	UndoType  string           // job type of the declared compensation, "" = none

	t      testing.TB
	trial  *worker.Trial
	effect json.RawMessage
}

// String gives class, reason, code and message.
func (r Result) String() string {
	s := string(r.Class)
	if r.Reason != "" {
		s += " (" + r.Reason + ")"
	}
	if r.Code != "" {
		s += " " + r.Code
	}
	if r.Message != "" {
		s += ": " + r.Message
	}
	return s
}

// Types lists the types of the messages, in order.
func (r Result) Types() []string {
	out := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		out[i] = m.Type
	}
	return out
}

// WantSuccess ends the test when the handler did not succeed.
func (r Result) WantSuccess() Result {
	r.t.Helper()
	if r.Class != outcome.Success {
		r.t.Fatalf("handler ended with %s, want SUCCESS", r)
	}
	return r
}

// WantCode ends the test when the handler did not refuse with this BPMN error code.
func (r Result) WantCode(code string) Result {
	r.t.Helper()
	if r.Class != outcome.Business || r.Code != code {
		r.t.Fatalf("handler ended with %s, want BUSINESS_ERROR %s", r, code)
	}
	return r
}

// Want ends the test when the class is another, or the reason where one is given.
func (r Result) Want(class outcome.Class, reason string) Result {
	r.t.Helper()
	if r.Class != class || reason != "" && r.Reason != reason {
		r.t.Fatalf("handler ended with %s, want %s %s", r, class, reason)
	}
	return r
}

// Decode reads the output into a value of the handler's output type.
func Decode[T any](r Result) T {
	r.t.Helper()
	var v T
	if len(r.Output) > 0 {
		if err := json.Unmarshal(r.Output, &v); err != nil {
			r.t.Fatalf("output does not fit %T: %v", v, err)
		}
	}
	return v
}

// Data reads the data of the nth message, from 0, into a T.
func Data[T any](r Result, n int) T {
	r.t.Helper()
	var v T
	if n >= len(r.Messages) {
		r.t.Fatalf("%d messages, want one with number %d", len(r.Messages), n)
	}
	doc, err := json.Marshal(r.Messages[n].Data)
	if err == nil {
		err = json.Unmarshal(doc, &v)
	}
	if err != nil {
		r.t.Fatal(fmt.Errorf("data of message %d (%s) does not fit %T: %w", n, r.Messages[n].Type, v, err))
	}
	return v
}
