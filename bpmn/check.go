package bpmn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vitrip/journeyman/bpmn/feel"
)

// Check validates the model as Zeebe does at deployment and returns every
// mistake as a joined [*Error], by line; nil means that the model may be
// deployed. Processes that are not executable are looked into only when none
// is executable, so that all mistakes are named at once. What an engine does not support although BPMN allows it is for that engine to refuse.
func (d *Definitions) Check() error {
	c := &checker{defs: d, errs: slices.Clone(d.problems), messages: map[*Message]bool{}}
	processes, executable := d.meant()
	if !executable {
		c.noProcess()
	}
	for _, p := range processes {
		c.process(p)
	}
	slices.SortStableFunc(c.errs, func(a, b *Error) int { return a.Line - b.Line })
	errs := make([]error, len(c.errs))
	for i, e := range c.errs {
		errs[i] = e
	}
	return errors.Join(errs...)
}

// meant returns the processes that are to run: the executable ones, or all when
// the file marks none.
func (d *Definitions) meant() (processes []*Process, executable bool) {
	for _, p := range d.Processes {
		if p.Executable {
			processes = append(processes, p)
		}
	}
	if len(processes) == 0 {
		return d.Processes, false
	}
	return processes, true
}

type checker struct {
	defs     *Definitions
	errs     []*Error
	messages map[*Message]bool // whose key was checked
}

func (c *checker) noProcess() {
	if len(c.defs.Processes) == 0 {
		c.errs = append(c.errs, &Error{Reason: "no process found: expected one with isExecutable=\"true\""})
		return
	}
	p := c.defs.Processes[0]
	c.errs = append(c.errs, &Error{Line: p.Line, ElementID: p.ID, Kind: "process", Reason: fmt.Sprintf("none of the %d processes is executable: expected isExecutable=\"true\" on one", len(c.defs.Processes))})
}

func (c *checker) fail(e *Element, format string, args ...any) {
	c.errs = append(c.errs, &Error{Line: e.Line, ElementID: e.ID, Kind: e.Kind, Reason: fmt.Sprintf(format, args...)})
}

func (c *checker) process(p *Process) {
	fail := func(reason string) {
		c.errs = append(c.errs, &Error{Line: p.Line, ElementID: p.ID, Kind: "process", Reason: reason})
	}
	starts, none := 0, 0
	names := map[string]bool{}
	for _, e := range p.Elements {
		if e.Kind != KindStartEvent {
			continue
		}
		starts++
		switch {
		case e.Event == nil:
			none++
		case e.Event.Kind == EventMessage && e.Event.Message != nil:
			if names[e.Event.Message.Name] {
				c.fail(e, "second start event for message %q", e.Event.Message.Name)
			}
			names[e.Event.Message.Name] = true
		}
	}
	if starts == 0 {
		fail("has no start event")
	}
	if none > 1 {
		fail(fmt.Sprintf("has %d start events without a trigger: expected at most one", none))
	}
	c.scope(&p.Scope, nil)
}

// scope checks the elements of a process or subprocess.
func (c *checker) scope(s *Scope, owner *Element) {
	for _, e := range s.Elements {
		c.element(e)
		if e.Scope != nil {
			c.scope(e.Scope, e)
		}
	}
	for _, f := range s.Flows {
		c.flow(f)
	}
	var eventSubs []*Element
	for _, e := range s.Elements {
		if e.TriggeredByEvent && e.Scope != nil {
			for _, start := range e.Scope.Elements {
				if start.Kind == KindStartEvent {
					eventSubs = append(eventSubs, start)
				}
			}
		}
	}
	c.equalCatches(eventSubs, "event subprocesses of one scope")
	c.links(s)
	c.loops(s)
	if owner != nil {
		c.subprocess(owner)
	}
}

func (c *checker) subprocess(e *Element) {
	var starts []*Element
	for _, inner := range e.Scope.Elements {
		if inner.Kind == KindStartEvent {
			starts = append(starts, inner)
		}
	}
	if e.Kind != KindSubProcess {
		return
	}
	if len(starts) != 1 {
		c.fail(e, "has %d start events: expected exactly one", len(starts))
	}
	if e.TriggeredByEvent {
		if len(e.Incoming) > 0 || len(e.Outgoing) > 0 {
			c.fail(e, "is an event subprocess with sequence flows: expected none")
		}
		if len(e.Boundary) > 0 {
			c.fail(e, "is an event subprocess with boundary events: expected none")
		}
		for _, s := range starts {
			if s.Event == nil {
				c.fail(s, "starts an event subprocess: expected a message, timer, error, signal or escalation definition")
			}
		}
		return
	}
	for _, s := range starts {
		if s.Event != nil {
			c.fail(s, "starts an embedded subprocess with a %s definition: expected none", s.Event.Kind)
		}
	}
}

func (c *checker) flow(f *Flow) {
	fail := func(format string, args ...any) {
		c.errs = append(c.errs, &Error{Line: f.Line, ElementID: f.ID, Kind: "sequenceFlow", Reason: fmt.Sprintf(format, args...)})
	}
	branching := f.Source.Kind == KindExclusiveGateway || f.Source.Kind == KindInclusiveGateway
	if f.Condition == "" {
		if branching && len(f.Source.Outgoing) > 1 && f.Source.Default != f {
			fail("leaves %q without a condition and is not its default flow", f.Source.ID)
		}
		return
	}
	if !branching {
		fail("has a condition but leaves the %s %q: conditions belong behind exclusive and inclusive gateways", f.Source.Kind, f.Source.ID)
		return
	}
	if f.Source.Default == f {
		fail("is the default flow of %q and has a condition: expected none", f.Source.ID)
	}
	if reason := expression(f.Condition, true); reason != "" {
		fail("condition %s", reason)
	}
}

// expression says what is wrong with the text of an attribute; "" when nothing is.
func expression(text string, feelOnly bool) string {
	if feelOnly && (!strings.HasPrefix(text, "=") || strings.TrimSpace(text[1:]) == "") {
		hint := ""
		if strings.HasPrefix(text, "${") || strings.HasPrefix(text, "#{") {
			hint = " (this is a Camunda 7 expression)"
		}
		return fmt.Sprintf("%q is not an expression: expected a leading \"=\"%s", short(text), hint)
	}
	if _, err := feel.ParseExpression(text); err != nil {
		return err.Error()
	}
	return ""
}

func short(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// attribute checks an optional attribute that may hold FEEL.
func (c *checker) attribute(e *Element, name, text string, feelOnly bool) {
	if text == "" {
		return
	}
	if reason := expression(text, feelOnly); reason != "" {
		c.fail(e, "%s: %s", name, reason)
	}
}
