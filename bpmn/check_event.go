package bpmn

import (
	"slices"
	"strings"
)

func (c *checker) event(e *Element) {
	switch e.Kind {
	case KindStartEvent:
		if len(e.Incoming) > 0 {
			c.fail(e, "has incoming flows: a start event has none")
		}
		c.startKind(e)
	case KindEndEvent:
		if len(e.Outgoing) > 0 {
			c.fail(e, "has outgoing flows: an end event has none")
		}
		c.eventKind(e, EventError, EventMessage, EventTerminate, EventSignal, EventEscalation, EventCompensation)
	case KindBoundaryEvent:
		c.boundary(e)
	case KindCatchEvent:
		if e.Event == nil {
			c.fail(e, "has no event definition: expected message, timer, signal or link")
		}
		c.eventKind(e, EventMessage, EventTimer, EventSignal, EventLink)
	case KindThrowEvent:
		c.eventKind(e, EventMessage, EventSignal, EventEscalation, EventLink, EventCompensation)
	}
	if e.Event == nil {
		return
	}
	throws := e.Kind == KindEndEvent || e.Kind == KindThrowEvent
	switch d := e.Event; d.Kind {
	case EventMessage:
		if throws {
			c.job(e, true)
			return
		}
		c.message(e, d.Message, !(e.Kind == KindStartEvent && e.Parent == nil))
	case EventTimer:
		c.timer(e)
	case EventError:
		c.errorEvent(e, throws)
	case EventSignal:
		if d.Signal == nil || d.Signal.Name == "" {
			c.fail(e, "has no signal with a name")
		} else {
			c.attribute(e, "signal name", d.Signal.Name, false)
		}
	case EventEscalation:
		if throws && (d.Escalation == nil || d.Escalation.Code == "") {
			c.fail(e, "throws an escalation without a code")
		}
		if d.Escalation != nil {
			if !throws && strings.HasPrefix(d.Escalation.Code, "=") {
				c.fail(e, "catches an escalation by the expression %q: expected static text", short(d.Escalation.Code))
			}
			c.attribute(e, "escalation code", d.Escalation.Code, false)
		}
	}
}

// eventKind refuses what such an event can neither catch nor throw.
func (c *checker) eventKind(e *Element, can ...EventKind) {
	if e.Event == nil || slices.Contains(can, e.Event.Kind) {
		return
	}
	names := make([]string, len(can))
	for i, k := range can {
		names[i] = string(k)
	}
	c.fail(e, "has a %s definition: expected one of %s", e.Event.Kind, strings.Join(names, ", "))
}

// startKind checks what may start a process; subprocesses are checked with their scope.
func (c *checker) startKind(e *Element) {
	if e.Event == nil {
		return
	}
	switch e.Event.Kind {
	case EventMessage, EventTimer, EventSignal:
	case EventError, EventEscalation:
		if e.Parent == nil {
			c.fail(e, "starts a process by %s: expected none, message, timer or signal", e.Event.Kind)
		}
		if e.Event.Kind == EventError && !e.Interrupting {
			c.fail(e, "catches an error without interrupting: an error always interrupts")
		}
	default:
		c.fail(e, "starts by %s: expected none, message, timer, signal, error or escalation", e.Event.Kind)
	}
}

func (c *checker) boundary(e *Element) {
	if len(e.Incoming) > 0 {
		c.fail(e, "has incoming flows: a boundary event has none")
	}
	if e.AttachedTo != nil && !e.AttachedTo.Kind.isActivity() {
		c.fail(e, "is attached to the %s %q: expected an activity", e.AttachedTo.Kind, e.AttachedTo.ID)
	}
	if e.Event == nil {
		c.fail(e, "has no event definition: expected timer, message, error, signal, escalation or compensation")
		return
	}
	switch e.Event.Kind {
	case EventTimer, EventMessage, EventSignal, EventEscalation, EventCompensation:
	case EventError:
		if !e.Interrupting {
			c.fail(e, "catches an error without interrupting: an error always interrupts")
		}
	default:
		c.fail(e, "has a %s definition: expected timer, message, error, signal, escalation or compensation", e.Event.Kind)
	}
}

func (c *checker) message(e *Element, m *Message, keyed bool) {
	if m == nil || m.Name == "" {
		c.fail(e, "has no message with a name")
		return
	}
	c.attribute(e, "message name", m.Name, false)
	if !keyed || c.messages[m] {
		return
	}
	c.messages[m] = true
	fail := func(reason string) {
		c.errs = append(c.errs, &Error{Line: m.Line, ElementID: m.ID, Kind: "message", Reason: reason})
	}
	if m.CorrelationKey == "" {
		fail("has no zeebe:subscription with a correlationKey, which " + string(e.Kind) + " \"" + e.ID + "\" needs")
		return
	}
	if reason := expression(m.CorrelationKey, true); reason != "" {
		fail("correlationKey: " + reason)
	}
}

func (c *checker) errorEvent(e *Element, throws bool) {
	d := e.Event.Error
	if throws {
		if d == nil || d.Code == "" {
			c.fail(e, "throws an error without an errorCode")
			return
		}
		c.attribute(e, "errorCode", d.Code, false)
		return
	}
	if d != nil && strings.HasPrefix(d.Code, "=") {
		c.fail(e, "catches an error by the expression %q: a catch event needs a static errorCode", short(d.Code))
	}
}

func (c *checker) timer(e *Element) {
	t := e.Event.Timer
	c.attribute(e, "timeDate", t.Date, false)
	c.attribute(e, "timeDuration", t.Duration, false)
	c.attribute(e, "timeCycle", t.Cycle, false)
	if err := t.check(); err != nil {
		c.fail(e, "%v", err)
	}
	switch {
	case t.Date == "" && t.Duration == "" && t.Cycle == "":
		c.fail(e, "has a timer without a date, duration or cycle")
	case e.Kind == KindCatchEvent && t.Cycle != "":
		c.fail(e, "waits for a cycle: an intermediate timer needs a duration or a date")
	case (e.Kind == KindBoundaryEvent || e.Kind == KindStartEvent && e.Parent != nil) && e.Interrupting && t.Cycle != "":
		c.fail(e, "interrupts by a cycle: an interrupting timer needs a duration or a date")
	case e.Kind == KindStartEvent && e.Parent == nil && t.Duration != "":
		c.fail(e, "starts a process after a duration: a timer start event needs a date or a cycle")
	}
}

// catchKey says what an event waits for; two equal keys compete.
func catchKey(e *Element) string {
	d := e.Event
	if d == nil {
		return ""
	}
	switch d.Kind {
	case EventError:
		if d.Error == nil {
			return "every error"
		}
		if d.Error.Code == "" {
			return "every error"
		}
		return "error " + d.Error.Code
	case EventEscalation:
		if d.Escalation == nil || d.Escalation.Code == "" {
			return "every escalation"
		}
		return "escalation " + d.Escalation.Code
	case EventMessage:
		if d.Message != nil {
			return "message " + d.Message.Name
		}
	case EventSignal:
		if d.Signal != nil {
			return "signal " + d.Signal.Name
		}
	}
	return ""
}

func (c *checker) equalCatches(events []*Element, where string) {
	first := map[string]*Element{}
	for _, e := range events {
		key := catchKey(e)
		if key == "" {
			continue
		}
		if other := first[key]; other != nil {
			c.fail(e, "catches %s like %q: two equal catch events on %s", key, other.ID, where)
			continue
		}
		first[key] = e
	}
}

func (c *checker) links(s *Scope) {
	catches := map[string]*Element{}
	for _, e := range s.Elements {
		if e.Event == nil || e.Event.Kind != EventLink {
			continue
		}
		if e.Event.LinkName == "" {
			c.fail(e, "is a link event without a name")
			continue
		}
		if e.Kind == KindCatchEvent {
			if other := catches[e.Event.LinkName]; other != nil {
				c.fail(e, "catches link %q like %q: expected one catch event per link", e.Event.LinkName, other.ID)
			}
			catches[e.Event.LinkName] = e
		}
	}
	for _, e := range s.Elements {
		if e.Event != nil && e.Event.Kind == EventLink && e.Kind == KindThrowEvent && e.Event.LinkName != "" && catches[e.Event.LinkName] == nil {
			c.fail(e, "throws link %q, which nothing catches in its scope", e.Event.LinkName)
		}
	}
}
