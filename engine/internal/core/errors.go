package core

import (
	"fmt"
	"sort"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
)

// catcher is a place that catches an error or escalation.
type catcher struct {
	el   *Element // element instance whose boundary event or event subprocess catches
	node *Node
}

// findCatcher walks from e outward, through call activities, and returns the
// first scope that catches code: an exact code beats a catch-all in one scope.
// Interrupted scopes are skipped. codes lists what else could have been caught.
func findCatcher(e *Element, kind bpmn.EventKind, code string) (found catcher, codes []string) {
	seen := map[string]bool{}
	for e != nil {
		if !e.interrupted {
			var all catcher
			for _, n := range catchNodes(e) {
				if n.event != kind {
					continue
				}
				x := n.errorCode
				if kind == bpmn.EventEscalation {
					x = n.escalation
				}
				switch {
				case x == nil || x.src == "":
					if all.node == nil {
						all = catcher{e, n}
					}
				case x.src == code:
					return catcher{e, n}, nil
				default:
					seen[x.src] = true
				}
			}
			if all.node != nil {
				return all, nil
			}
		}
		if e.Parent != nil {
			e = e.Parent
		} else {
			e = e.Inst.Caller
		}
	}
	for s := range seen {
		codes = append(codes, s)
	}
	sort.Strings(codes)
	return catcher{}, codes
}

// catchNodes lists the boundary events and event subprocess start events of e.
func catchNodes(e *Element) []*Node {
	var out []*Node
	if !e.Body {
		for _, esp := range e.Node.eventSubs {
			out = append(out, esp.starts...)
		}
	}
	if !e.Inner {
		out = append(out, e.Node.boundary...)
	}
	return out
}

// catch makes the catching event happen.
func (c *Core) catch(at catcher, vars Doc) {
	if at.node.attached != nil {
		c.fireBoundary(at.el, at.node, vars)
		return
	}
	c.fireEventSubprocess(at.el, at.node, vars)
}

func uncaught(code, message string, available []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Expected to throw an error event with the code '%s'", code)
	if message != "" {
		fmt.Fprintf(&b, " with message '%s'", message)
	}
	b.WriteString(", but it was not caught.")
	if len(available) == 0 {
		b.WriteString(" No error events are available in the scope.")
	} else {
		fmt.Fprintf(&b, " Available error events are [%s]", strings.Join(available, ", "))
	}
	return b.String()
}

// throwErrorEvent is an error end event.
func (c *Core) throwErrorEvent(e *Element) {
	code := ""
	if e.Node.errorCode != nil {
		var err error
		if code, err = e.Node.errorCode.text(c, e.lookup); err != nil {
			c.raise(e, opActivate, ExtractValueError, err.Error())
			return
		}
	}
	at, available := findCatcher(e.Parent, bpmn.EventError, code)
	if at.node == nil {
		c.raise(e, opActivate, UnhandledErrorEvent, uncaught(code, "", available))
		return
	}
	e.State = Active
	c.catch(at, nil)
}

// throwEscalation is an escalation throw or end event; without a catcher it simply passes.
func (c *Core) throwEscalation(e *Element) {
	code := ""
	if e.Node.escalation != nil {
		var err error
		if code, err = e.Node.escalation.text(c, e.lookup); err != nil {
			c.raise(e, opActivate, ExtractValueError, err.Error())
			return
		}
	}
	e.State = Active
	at, _ := findCatcher(e.Parent, bpmn.EventEscalation, code)
	if at.node == nil {
		c.push(opComplete, e)
		return
	}
	c.catch(at, nil)
	if !e.ended() {
		c.push(opComplete, e)
	}
}

// throwSignal is a signal throw or end event.
func (c *Core) throwSignal(e *Element) {
	name, err := e.Node.signal.text(c, e.lookup)
	if err != nil {
		c.raise(e, opActivate, ExtractValueError, err.Error())
		return
	}
	e.State = Active
	c.push(opComplete, e)
	c.broadcast(name, c.throwVars(e))
}

// throwVars are the variables a throw event carries: its input mappings' results.
func (c *Core) throwVars(e *Element) Doc {
	d := Doc{}
	for n, v := range e.vars {
		d[n] = v.Value
	}
	return d
}
