package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

// Decision is who won a saga (path rule 10). The zero value means undecided.
type Decision string

// The four decisions, as stored.
const (
	Undecided Decision = ""
	Completed Decision = "completed"
	Failed    Decision = "failed"
	Expired   Decision = "expired"
	Cancelled Decision = "cancelled"
)

// Codes of the BUSINESS outcomes that sagas give to jobs.
const (
	CodeGivenUp = worker.CodeSagaGivenUp // the saga was decided otherwise, or is closed
	CodeNotMine = worker.CodeSagaNotMine // the operation is bound to another process instance
)

// Type is one kind of long-running operation. Name, Timeout, Retention and Parse
// must be set; the functions must be safe for concurrent use.
type Type struct {
	// Name is the path segment of the HTTP API and the tail of the start message
	// "saga.start.<Name>": lower-case letters, digits and "-".
	Name string
	// ProcessID is the BPMN process id; "" means Name.
	ProcessID string
	// Timeout is how long an attempt may take before it is undone (spec I5), counted from the request. The model gets what is
	// left of it as the variable "timeout", for example "PT30M".
	Timeout time.Duration
	// Retention is how long the final answer is kept after the end (spec I5).
	Retention time.Duration
	// Money says that operations of this type move money: their business key and the hash of their answer outlive the
	// deletion of the record (spec D3).
	Money bool
	// Estimate is the usual duration, shown as estimated_completion_at; 0 means Timeout.
	Estimate time.Duration
	// SLA is how long an operation is expected to take at most; later it is late: shown and told ([EventSLABreached]). 0 = half
	// of Timeout. It must not be longer than Timeout.
	SLA time.Duration
	// StepSLA is the same for single steps, by job type, from the first attempt on (spec W14). Each must be shorter than Timeout
	// (spec I4). It is seen of external handlers only: a transactional one leaves nothing behind while it runs.
	StepSLA map[string]time.Duration
	// OnUndoFailure is the policy of an undo that fails for good, by the job type of the step it undoes; absent = [UndoStops].
	OnUndoFailure map[string]UndoFailure
	// Steps are the element ids of the forward steps, in the order they are shown. A plan may replace them.
	Steps []string

	// Parse checks a request body and plans the attempt. It runs before anything is stored: an
	// error keeps the key free. Errors made with [Invalid], joined with errors.Join, become a
	// 400 that names every field; any other error is a 500. tenant is the authenticated one.
	Parse func(ctx context.Context, tenant string, body []byte) (Plan, error)
	// OnStart writes the domain's own rows and events in the start transaction. A BUSINESS
	// outcome ends the attempt as failed before any process starts. nil = nothing to do.
	// It runs again when the transaction is repeated, never after it committed.
	OnStart func(ctx context.Context, tx *outbox.Tx, a Attempt) error
	// OnGiveUp moves the domain's state when the saga is decided against, in that transaction. nil = nothing to do.
	OnGiveUp func(ctx context.Context, tx *outbox.Tx, a Attempt, e Ending) error
	// Result moves the domain's state to its end in the closing transaction and returns what
	// the final answer shows as "result" (marshalled with encoding/json). nil = no result.
	Result func(ctx context.Context, tx *outbox.Tx, a Attempt, e Ending) (any, error)
	// Partial is what a partner sees of one finished step: shown under partial_result.<segment>.
	// segment "" shows nothing. It is called for SUCCESS and BUSINESS outcomes and must be pure.
	Partial func(s worker.Step) (segment string, view any)

	// Sandbox makes the "result" of an operation of the sandbox, where no domain function runs; nil = none.
	Sandbox func(ctx context.Context, tx *outbox.Tx, a Attempt, e Ending) (any, error)

	// Docs is what the OpenAPI document says about this type: its final reasons and the parts of its partial result.
	Docs Docs
}

// Plan is what Parse makes of a request.
type Plan struct {
	BusinessKey string         // order and partition key of the saga, scoped by tenant
	Variables   map[string]any // the type's own process variables; they must not use the reserved names
	Steps       []string       // replaces Type.Steps, "<elementId>" or "<elementId>:<n>" for multi-instance; nil = Type.Steps
	Partial     map[string]any // first partial_result, by segment; may be nil
}

// Attempt is one run of an operation: what OnStart and the other functions of a Type are given.
type Attempt struct {
	OperationID   string // "op_…", the saga id
	Tenant        string
	Type          string
	Key           string // idempotency key as the partner sent it
	Number        int    // 1 for the first attempt, 2 for the first forced retry
	BusinessKey   string
	CorrelationID string
	Traceparent   string
	Actor         events.Actor
	Variables     map[string]any // of the plan, decoded from JSON
	StartedAt     time.Time
	Deadline      time.Time
}

// Request reads the plan's variables, which have been through JSON, back into the request they were made of: a pointer to a
// struct with the same field names.
func (a Attempt) Request(into any) error {
	text, err := json.Marshal(a.Variables)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	return nil
}

// Ending is how a saga is ending.
type Ending struct {
	Decision    Decision
	State       string          // completed, failed or expired: what the partner will see
	Code        string          // reason code: the error code that failed it, "deadline", "cancelled"; "" when completed
	Undone      []string        // operation ids of effects that were undone, in the order of undoing
	Open        []string        // operation ids of effects left to a person
	Remediation json.RawMessage // what the person reported, nil when there was none
}

// reserved are the process variables that sagas set themselves.
var reserved = []string{ //nolint:gochecknoglobals // constant
	"sagaId", "operationId", "businessKey", "correlationId", "traceparent", "tenant", "timeout", "actor", "httpIdempotencyKey",
}

var typeName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`) //nolint:gochecknoglobals // compiled once

func (t Type) check() error {
	var errs []error
	bad := func(field, want string, got any) {
		errs = append(errs, fmt.Errorf("saga type %q: %s is %v, want %s", t.Name, field, got, want))
	}
	if !typeName.MatchString(t.Name) {
		bad("Name", "lower-case letters, digits and -, at most 63", t.Name)
	}
	if t.Timeout < time.Second {
		bad("Timeout", "1s or more", t.Timeout)
	}
	if t.Retention < time.Hour {
		bad("Retention", "1h or more", t.Retention)
	}
	if t.Estimate < 0 {
		bad("Estimate", "0 or more", t.Estimate)
	}
	if t.SLA < 0 || t.SLA > t.Timeout {
		bad("SLA", "0 to Timeout", t.SLA)
	}
	for _, job := range slices.Sorted(maps.Keys(t.StepSLA)) {
		if sla := t.StepSLA[job]; sla <= 0 || sla >= t.Timeout {
			bad("StepSLA of "+job, "more than 0 and less than Timeout", sla)
		}
	}
	if t.Parse == nil {
		bad("Parse", "a function", "nil")
	}
	return errors.Join(errs...)
}

func (t Type) withDefaults() *Type {
	if t.ProcessID == "" {
		t.ProcessID = t.Name
	}
	if t.Estimate == 0 {
		t.Estimate = t.Timeout
	}
	if t.SLA == 0 {
		t.SLA = t.Timeout / 2
	}
	return &t
}

func (p Plan) check() error {
	if p.BusinessKey == "" {
		return errors.New("plan: business key is empty")
	}
	if len(p.BusinessKey) > maxBusinessKey {
		return Invalid("businessKey", fmt.Sprintf("is %d bytes long, at most %d", len(p.BusinessKey), maxBusinessKey))
	}
	for _, name := range reserved {
		if _, ok := p.Variables[name]; ok {
			return fmt.Errorf("plan: variable %q is reserved", name)
		}
	}
	return nil
}

const maxBusinessKey = 200

func givenUp(why string) error {
	return &outcome.Error{Class: outcome.Business, Code: CodeGivenUp, Reason: outcome.ReasonRevoked, Message: why}
}

func notMine(why string) error {
	return &outcome.Error{Class: outcome.Business, Code: CodeNotMine, Message: why}
}
