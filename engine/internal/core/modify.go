package core

import "github.com/vitrip/journeyman/bpmn"

// Modification changes where a running instance stands: elements to activate,
// then element instances to terminate.
type Modification struct {
	Instance  int64
	Activate  []ActivateInstruction
	Terminate []int64
}

// ActivateInstruction activates one element.
type ActivateInstruction struct {
	ElementID string
	Ancestor  int64 // flow scope instance to activate it in; 0 or less = the only one there is
	Variables []VariableInstruction
}

// VariableInstruction sets variables in a scope that the modification enters.
type VariableInstruction struct {
	Scope string // element id; empty = the process instance
	Vars  Doc
}

// Modify runs a modification; nothing changes when any instruction is refused.
func (c *Core) Modify(m Modification) error {
	c.record(Record{Op: opModify, Change: &m})
	const intent = "MODIFY"
	inst := c.instances[m.Instance]
	if inst == nil || inst.Root.ended() {
		return reject(intent, NotFound, "Expected to modify process instance but no process instance found with key '%d'", m.Instance)
	}
	refuse := func(format string, args ...any) error {
		return reject(intent, InvalidArgument, "Expected to modify instance of process '"+inst.Process.ID+"' but it contains one or more "+format, args...)
	}
	type target struct {
		node  *Node
		scope *Element // nearest scope that exists
		vars  []VariableInstruction
	}
	var targets []target
	for _, a := range m.Activate {
		n := inst.Process.nodes[a.ElementID]
		if n == nil || n.Parent == nil {
			return refuse("activate instructions with an element that could not be found: '%s'", a.ElementID)
		}
		if why := unreachable(n); why != "" {
			return refuse("activate instructions for elements that are unsupported: '%s'. %s", n.ID, why)
		}
		scope, err := c.scopeFor(inst, n, a.Ancestor, refuse)
		if err != nil {
			return err
		}
		for _, v := range a.Variables {
			if v.Scope != "" && !encloses(v.Scope, n) {
				return refuse("variable instructions with a scope element id that does not belong to the activating element's flow scope: '%s'", v.Scope)
			}
		}
		targets = append(targets, target{n, scope, a.Variables})
	}
	for _, k := range m.Terminate {
		if e := c.elements[k]; e == nil || e.Inst != inst || e.ended() {
			return refuse("terminate instructions with an element instance that could not be found: '%d'", k)
		}
	}
	for _, t := range targets {
		given := map[string]Doc{}
		for _, v := range t.vars {
			switch at := t.scope.around(v.Scope); {
			case v.Scope == "":
				c.mergeLocal(inst.Root, v.Vars)
			case at != nil:
				c.mergeLocal(at, v.Vars)
			default:
				given[v.Scope] = v.Vars
			}
		}
		c.startAt(t.scope, []*Node{t.node}, given)
	}
	for _, k := range m.Terminate {
		c.terminateUp(c.elements[k])
	}
	return nil
}

// unreachable says why an instance cannot be put at n; empty = it can.
func unreachable(n *Node) string {
	switch n.Kind {
	case bpmn.KindStartEvent, bpmn.KindBoundaryEvent:
		return "The activation of events with type '" + n.Type + "' is not supported."
	}
	for _, f := range n.in {
		if f.from.Kind == bpmn.KindEventBasedGateway {
			return "The activation of events belonging to an event-based gateway is not supported."
		}
	}
	for s := n.Parent; s != nil; s = s.Parent {
		if s.loop != nil {
			return "The activation of elements inside a multi-instance subprocess is not supported."
		}
	}
	return ""
}

// scopeFor finds the innermost existing scope around n.
func (c *Core) scopeFor(inst *Instance, n *Node, ancestor int64, refuse func(string, ...any) error) (*Element, error) {
	if ancestor > 0 {
		e := c.elements[ancestor]
		if e == nil || e.Inst != inst || e.ended() {
			return nil, refuse("activate instructions with an ancestor scope key that does not exist, or is not in an active state: '%d'", ancestor)
		}
		if e.Node == n || !encloses(e.Node.ID, n) {
			return nil, refuse("activate instructions with an ancestor scope key that is not an ancestor of the element to activate: '%d'", ancestor)
		}
		return e, nil
	}
	for s := n.Parent; s != nil; s = s.Parent {
		var found []*Element
		for _, e := range append([]*Element{inst.Root}, inst.elements...) {
			if e.Node == s && !e.ended() && !e.Body {
				found = append(found, e)
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], nil
		}
		return nil, refuse("activate instructions for an element that has a flow scope with more than one active instance: '%s'. Can't decide in which instance of the flow scope the element should be activated. Please specify an ancestor element instance key for this activate instruction.", n.ID)
	}
	return inst.Root, nil
}

func encloses(id string, n *Node) bool {
	for s := n; s != nil; s = s.Parent {
		if s.ID == id {
			return true
		}
	}
	return false
}

// around is the element instance of id that is e or stands around it; nil when there is none.
func (e *Element) around(id string) *Element {
	for ; e != nil; e = e.Parent {
		if e.Node.ID == id {
			return e
		}
	}
	return nil
}

// terminateUp ends e and each scope around it that is left with nothing inside.
func (c *Core) terminateUp(e *Element) {
	for e != nil && !e.ended() {
		c.terminate(e)
		if e = e.Parent; e == nil || e.children > 0 || e.waiting > 0 {
			return
		}
	}
}
