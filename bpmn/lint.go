package bpmn

import (
	"fmt"
	"slices"
	"strings"
)

// Severity tells whether a finding stops a deployment.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is one departure from the platform's rules for models (spec B0, B3, B4).
type Finding struct {
	Rule      string // stable name, for example "correlation"
	Severity  Severity
	ElementID string
	Kind      Kind   // of the element; may be empty
	Line      int    // 1-based; 0 = unknown
	Message   string // without the place
	Fix       string // text to paste or what to do; may be empty
}

// String renders one line: place, message and rule.
func (f Finding) String() string {
	e := Error{Line: f.Line, ElementID: f.ElementID, Kind: f.Kind, Reason: f.Message}
	return fmt.Sprintf("%s (%s, %s)", e.Error(), f.Rule, f.Severity)
}

// Properties of an element (zeebe:property) that Lint reads. Each is a promise
// that a reviewer can see in the model.
const (
	PropertyPivot      = "journeyman:pivot"           // from here on the saga goes forward only
	PropertyAfterPivot = "journeyman:after-pivot"     // runs after the pivot: retried, never undone
	PropertyUndo       = "journeyman:undo"            // job type that undoes it from the ledger
	PropertyEffect     = "journeyman:effect"          // "none": reads only
	PropertyNoUndo     = "journeyman:not-compensable" // why it cannot be undone
	PropertyManual     = "journeyman:manual"          // what a person does instead
	PropertyTimeout    = "journeyman:timeout"         // ISO duration that the worker keeps
	PropertyErrors     = "journeyman:errors"          // business error codes it throws, by comma
	PropertyAllow      = "journeyman:allow"           // "rule: reason" silences one rule here
)

// MaxRetries is the highest number of retries that a job may declare.
const MaxRetries = 10

// Property returns the value of a zeebe:property; ok is false when it is absent.
func (e *Element) Property(name string) (value string, ok bool) {
	for _, p := range e.Properties {
		if p.Key == name {
			return p.Value, true
		}
	}
	return "", false
}

// Machinery says whether the element's job type belongs to the saga machinery
// (saga.begin, saga.give-up, saga.undo-rest, saga.close), which has no effect
// outside the platform.
func (e *Element) Machinery() bool {
	return e.Task != nil && strings.HasPrefix(e.Task.Type, "saga.")
}

// Lint finds what the platform forbids although Zeebe would run it, and what
// [Definitions.Check] refuses (rule "deploy"). Findings are sorted by line; it
// is empty for a clean model. It looks into the same processes as Check.
func Lint(defs *Definitions) []Finding {
	l := &linter{defs: defs, operations: map[string]*Element{}}
	for _, e := range Errors(defs.Check()) {
		l.out = append(l.out, Finding{Rule: "deploy", Severity: SeverityError, ElementID: e.ElementID, Kind: e.Kind, Line: e.Line, Message: e.Reason})
	}
	processes, _ := defs.meant()
	for _, p := range processes {
		l.scope(&p.Scope)
	}
	slices.SortStableFunc(l.out, func(a, b Finding) int { return a.Line - b.Line })
	return l.out
}

type linter struct {
	defs       *Definitions
	out        []Finding
	operations map[string]*Element // operationId source → who uses it
}

func (l *linter) add(e *Element, rule string, s Severity, fix, format string, args ...any) {
	for _, p := range e.Properties {
		if name, reason, ok := strings.Cut(p.Value, ":"); p.Key == PropertyAllow && ok && strings.TrimSpace(name) == rule && strings.TrimSpace(reason) != "" {
			return
		}
	}
	l.out = append(l.out, Finding{Rule: rule, Severity: s, ElementID: e.ID, Kind: e.Kind, Line: e.Line, Message: fmt.Sprintf(format, args...), Fix: fix})
}

func (l *linter) scope(s *Scope) {
	for _, e := range s.Elements {
		if e.Task != nil {
			l.correlation(e)
			l.connector(e)
			l.retries(e)
			l.timeout(e)
			l.compensable(e)
			l.declaredErrors(e)
		}
		l.headers(e)
		l.payload(e)
		l.connected(e)
		l.losesHandlers(e)
		l.unordered(e)
		l.thrown(e)
		if e.Scope != nil {
			l.scope(e.Scope)
		}
	}
	for _, f := range s.Flows {
		l.condition(f)
	}
}

// headers finds a key that stands twice; the worker would see one of them.
func (l *linter) headers(e *Element) {
	seen := map[string]bool{}
	for _, h := range e.Headers {
		if seen[h.Key] {
			l.add(e, "headers", SeverityError, "", "task header %q stands twice", h.Key)
		}
		seen[h.Key] = true
	}
}
