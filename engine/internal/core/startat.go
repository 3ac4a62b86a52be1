package core

import "github.com/vitrip/journeyman/bpmn"

// startable finds the element of a start instruction, or says why an instance cannot begin there.
func startable(p *Process, id string) (*Node, error) {
	const intent = "CREATE"
	n := p.nodes[id]
	if n == nil || n.Parent == nil {
		return nil, reject(intent, InvalidArgument, "Expected to create instance of process with start instructions but no element found with id '%s'.", id)
	}
	for s := n; s != nil; s = s.Parent {
		if s != n && s.loop != nil {
			return nil, reject(intent, InvalidArgument, "Expected to create instance of process with start instructions but the element with id '%s' is inside a multi-instance subprocess. The creation of elements inside a multi-instance subprocess is not supported.", id)
		}
	}
	switch n.Kind {
	case bpmn.KindStartEvent, bpmn.KindBoundaryEvent:
		return nil, reject(intent, InvalidArgument, "Expected to create instance of process with start instructions but the element with id '%s' targets unsupported element type '%s'.", id, n.Type)
	}
	for _, f := range n.in {
		if f.from.Kind == bpmn.KindEventBasedGateway {
			return nil, reject(intent, InvalidArgument, "Expected to create instance of process with start instructions but the element with id '%s' belongs to an event-based gateway. The creation of elements belonging to an event-based gateway is not supported.", id)
		}
	}
	return n, nil
}

// startAt enters the given elements below root, creating the subprocesses around them once.
func (c *Core) startAt(root *Element, nodes []*Node) {
	scopes := map[*Node]*Element{root.Node: root}
	var scopeOf func(n *Node) *Element
	scopeOf = func(n *Node) *Element {
		if e := scopes[n]; e != nil {
			return e
		}
		e := c.newElement(n, scopeOf(n.Parent))
		scopes[n] = e
		e.State = Active
		if err := c.applyInputs(e); err != nil {
			e.State = Activating
			c.raise(e, opActivate, IOMappingError, err.Error())
			return e
		}
		if err := c.subscribe(e); err != nil {
			e.State = Activating
			c.raise(e, opActivate, ExtractValueError, err.Error())
		}
		return e
	}
	for _, n := range nodes {
		s := scopeOf(n.Parent)
		if s.incident == nil {
			c.enter(n, s)
		}
	}
}
