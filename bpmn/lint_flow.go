package bpmn

import (
	"strings"

	"github.com/vitrip/journeyman/bpmn/feel"
)

// payloadNames are parts of names that stand for data which belongs into a
// service (spec B0: variables hold ids, links, routing and technical metadata).
var payloadNames = []string{"payload", "body", "document", "base64", "blob", "html", "xml", "attachment", "passport", "iban", "cardnumber", "cvv", "password", "secret", "email", "phone", "birthdate", "dateofbirth", "rawrequest", "rawresponse"}

func (l *linter) payload(e *Element) {
	check := func(direction string, m Mapping) {
		name := strings.ToLower(m.Target)
		for _, p := range payloadNames {
			if strings.Contains(name, p) {
				l.add(e, "payload", SeverityWarning, "pass an id or a link", "%s variable %q looks like payload: variables hold ids, links and routing", direction, m.Target)
				return
			}
		}
	}
	for _, m := range e.Inputs {
		check("input", m)
	}
	for _, m := range e.Outputs {
		check("output", m)
	}
}

// condition finds domain rules in gateways: a gateway looks at a result, it
// does not compute one.
func (l *linter) condition(f *Flow) {
	expr, err := feel.ParseExpression(f.Condition)
	if f.Condition == "" || err != nil || expr.IsStatic() || !expr.Expr().Computes() {
		return
	}
	l.add(f.Source, "domain-rule", SeverityWarning, "let a service decide and branch on its answer", "condition %q of flow %q computes a domain rule", short(f.Condition), f.ID)
}

// connected finds elements that no token reaches or leaves. Compensation
// handlers and their boundary events stand outside sequence flow by definition.
func (l *linter) connected(e *Element) {
	if e.ForCompensation || e.TriggeredByEvent {
		return
	}
	compensation := e.Event != nil && e.Event.Kind == EventCompensation
	link := e.Event != nil && e.Event.Kind == EventLink
	switch {
	case e.Kind == KindStartEvent || e.Kind == KindBoundaryEvent || link && e.Kind == KindCatchEvent:
	case len(e.Incoming) == 0 && hasStart(e.In): // else Check names the missing start event
		l.add(e, "connected", SeverityError, "", "is reached by no sequence flow")
	}
	switch {
	case e.Kind == KindEndEvent || link && e.Kind == KindThrowEvent:
	case e.Kind == KindBoundaryEvent && compensation:
	case e.Kind == KindBoundaryEvent && len(e.Outgoing) == 0:
		l.add(e, "connected", SeverityError, "", "is a %s boundary event that leads nowhere", eventName(e))
	case len(e.Outgoing) == 0:
		l.add(e, "connected", SeverityWarning, "add an end event", "ends the path without an end event")
	}
}

func hasStart(s *Scope) bool {
	for _, e := range s.Elements {
		if e.Kind == KindStartEvent {
			return true
		}
	}
	return false
}

func eventName(e *Element) string {
	if e.Event == nil {
		return "plain"
	}
	return string(e.Event.Kind)
}

// losesHandlers finds interrupting events on a subprocess that holds
// compensation handlers: terminating it deletes what could be compensated.
func (l *linter) losesHandlers(e *Element) {
	if e.Scope == nil || e.TriggeredByEvent {
		return
	}
	handler := firstHandler(e.Scope)
	if handler == nil {
		return
	}
	for _, b := range e.Boundary {
		if b.Interrupting && b.Event != nil && b.Event.Kind != EventCompensation {
			l.add(b, "lost-compensation", SeverityError, "use an interrupting event subprocess inside "+e.ID, "terminates subprocess %q, and with it the right to call compensation handler %q", e.ID, handler.ID)
		}
	}
}

func firstHandler(s *Scope) *Element {
	for _, e := range s.Elements {
		if e.CompensationHandler != nil {
			return e.CompensationHandler
		}
		if e.Scope != nil {
			if h := firstHandler(e.Scope); h != nil {
				return h
			}
		}
	}
	return nil
}

// unordered finds a throw event without activityRef where several handlers
// wait: Zeebe starts them all at once.
func (l *linter) unordered(e *Element) {
	if e.Event == nil || e.Event.Kind != EventCompensation || e.Event.ActivityRef != "" || e.Kind == KindBoundaryEvent || e.Kind == KindStartEvent {
		return
	}
	n := countHandlers(e.In)
	if e.Parent != nil && e.Parent.TriggeredByEvent {
		n += countHandlers(e.Parent.In)
	}
	if n > 1 {
		l.add(e, "unordered-compensation", SeverityWarning, "one throw event with activityRef per step, in the order of undoing", "starts %d compensation handlers at once, in no order", n)
	}
}

func countHandlers(s *Scope) int {
	n := 0
	for _, e := range s.Elements {
		if e.CompensationHandler != nil {
			n++
		}
		if e.Scope != nil && !e.TriggeredByEvent {
			n += countHandlers(e.Scope)
		}
	}
	return n
}
