package sagas

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/zeebe"
)

// HeaderSandbox says, on a server in sandbox mode, how the operation that a request starts will end.
const HeaderSandbox = "X-Sandbox-Outcome"

// sandboxRunning is the outcome of an operation that runs until its time-out, or until it is cancelled.
const sandboxRunning = "in_progress"

var sandboxForm = regexp.MustCompile(`^(completed|expired|cancelled|in_progress|failed(:[A-Za-z0-9_-]{1,64})?)$`) //nolint:gochecknoglobals // compiled once

var errSandbox = errors.New("header X-Sandbox-Outcome must be completed, failed, failed:<reason code>, expired, cancelled or in_progress, once")

// sandboxOutcome reads the header. Outside of sandbox mode it is refused: who believes to be in the sandbox must not buy.
// It has answered when ok is false.
func (a *api) sandboxOutcome(w http.ResponseWriter, r request) (outcome string, ok bool) {
	values := r.Header.Values(HeaderSandbox)
	switch {
	case len(values) == 0 && a.cfg.Sandbox:
		return string(Completed), true
	case len(values) == 0:
		return "", true
	case !a.cfg.Sandbox:
		a.refuse(w, http.StatusBadRequest, problemInvalid, "This is not the sandbox", "operations started here are real; nothing was started",
			withErrors([]*FieldError{{Field: HeaderSandbox, Reason: "is not allowed outside of the sandbox"}}))
		return "", false
	case len(values) > 1 || !sandboxForm.MatchString(values[0]):
		a.refuse(w, http.StatusBadRequest, problemInvalid, "The request is invalid", errSandbox.Error(),
			withErrors([]*FieldError{{Field: HeaderSandbox, Reason: "is not an outcome"}}))
		return "", false
	}
	return values[0], true
}

// sandbox ends an attempt as it was asked for, in its start transaction: no process begins and the domain is not asked.
// The answer takes the way every answer takes.
func (s *Sagas) sandbox(ctx context.Context, tx *outbox.Tx, t *Type, row Saga, outcome string) (*zeebe.Queued, error) {
	if outcome == sandboxRunning {
		return nil, nil //nolint:nilnil // nothing to send
	}
	kind, code, _ := strings.Cut(outcome, ":")
	e := Ending{Decision: Decision(kind), State: kind, Code: code}
	switch e.Decision {
	case Expired:
		e.Code = "deadline"
	case Cancelled:
		e.State, e.Code = string(Failed), string(Cancelled)
	case Failed:
		if code == "" {
			e.Code = string(Failed)
		}
	}
	return nil, s.closeIn(ctx, tx, t.sandboxed(), row, e, true)
}

// sandboxVariable marks a saga of the sandbox. It has no other variables, as no process will read them.
const sandboxVariable = "$sandbox"

func (row Saga) sandbox() bool { return row.Variables[sandboxVariable] != nil }

// sandboxed is the type without its domain.
func (t *Type) sandboxed() *Type { return &Type{Name: t.Name, Result: t.Sandbox} }
