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

// startAt enters the given elements below scope. A subprocess on the way is
// entered once and takes along what is to start inside it. given holds
// variables for the entered elements, by element id.
func (c *Core) startAt(scope *Element, nodes []*Node, given map[string]Doc) {
	enter := func(n *Node) *Element {
		e := c.enter(n, scope)
		c.mergeLocal(e, given[n.ID])
		return e
	}
	inside := map[*Node]*Element{}
	for _, n := range nodes {
		if n.Parent == scope.Node {
			enter(n)
			continue
		}
		via := n.Parent
		for via.Parent != scope.Node {
			via = via.Parent
		}
		if inside[via] == nil {
			inside[via] = enter(via)
			inside[via].given = given
		}
		inside[via].startNodes = append(inside[via].startNodes, n)
	}
}
