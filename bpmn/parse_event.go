package bpmn

import "strings"

// event reads the event definitions of an event. Zeebe allows one.
func (p *parser) event(n *node, e *Element) {
	for _, c := range n.children {
		if c.space != nsBPMN {
			continue
		}
		kind, ok := strings.CutSuffix(c.local, "EventDefinition")
		if !ok {
			if c.local == "eventDefinitionRef" {
				e.Unknown = append(e.Unknown, "bpmn:eventDefinitionRef")
			}
			continue
		}
		if e.Event != nil {
			p.problem(c, e.ID, "second event definition: expected one")
			continue
		}
		d := &EventDefinition{Kind: EventKind(kind)}
		e.Event = d
		switch d.Kind {
		case EventMessage:
			d.Message = p.message(c, e.ID)
			if ext := c.child(nsBPMN, "extensionElements"); ext != nil {
				p.extensions(ext, e)
			}
		case EventError:
			d.Error = lookupRef(p, c, e.ID, "errorRef", p.defs.Errors)
		case EventSignal:
			d.Signal = lookupRef(p, c, e.ID, "signalRef", p.defs.Signals)
		case EventEscalation:
			d.Escalation = lookupRef(p, c, e.ID, "escalationRef", p.defs.Escalations)
		case EventTimer:
			d.Timer = p.timer(c, e.ID)
		case EventCompensation:
			d.ActivityRef = strings.TrimSpace(c.attr("activityRef"))
			d.NoWait = !p.flag(c, "waitForCompletion", true)
		case EventLink:
			d.LinkName = c.attr("name")
		}
	}
}

func lookupRef[T any](p *parser, n *node, id, attr string, known map[string]*T) *T {
	name, ok := n.lookup(attr)
	if !ok {
		return nil
	}
	v, ok := ref(known, name)
	if !ok {
		p.problem(n, id, "%s %q leads to nothing in this file", attr, name)
	}
	return v
}

func (p *parser) timer(n *node, id string) *Timer {
	t := &Timer{}
	count := 0
	for _, c := range n.children {
		if c.space != nsBPMN {
			continue
		}
		switch c.local {
		case "timeDate":
			t.Date = c.trimmed()
		case "timeDuration":
			t.Duration = c.trimmed()
		case "timeCycle":
			t.Cycle = c.trimmed()
		default:
			continue
		}
		count++
	}
	if count != 1 {
		p.problem(n, id, "timer has %d of timeDate, timeDuration and timeCycle: expected exactly one", count)
	}
	return t
}
