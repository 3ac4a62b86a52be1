package core

// compensation remembers a completed activity: its handler, and what completed
// inside it. Each is triggered once.
type compensation struct {
	node   *Node
	muted  bool // its own handler does not count: a migration dropped it
	inside []*compensation
}

// remember notes the completed activity e in its scope, so that a later throw can compensate it.
func (c *Core) remember(e *Element) {
	n := e.Node
	if n.forCompensation || e.Parent == nil {
		return
	}
	if e.Inner {
		// One handler call per multi-instance activity: only what is inside goes up to the body.
		e.Parent.comps = append(e.Parent.comps, e.comps...)
		return
	}
	if n.handler == nil && len(e.comps) == 0 {
		return
	}
	e.Parent.comps = append(e.Parent.comps, &compensation{node: n, inside: e.comps})
}

// compensate is a compensation throw event: all handlers of the completed
// activities in reach start at once, in the order of completion, and the event waits for them.
// The reach is the event's scope and, from inside an event subprocess, the scope around it.
func (c *Core) compensate(e *Element) {
	scopes := []*Element{e.Parent}
	for s := e.Parent; s.Node.isESP && s.Parent != nil; s = s.Parent {
		scopes = append(scopes, s.Parent)
	}
	var handlers []*Node
	for _, s := range scopes {
		keep := s.comps[:0]
		for _, comp := range s.comps {
			if ref := e.Node.activityRef; ref != "" && comp.node.ID != ref {
				keep = append(keep, comp)
				continue
			}
			handlers = comp.handlers(handlers)
		}
		s.comps = keep
	}
	for _, h := range handlers {
		hi := c.enter(h, e.Parent)
		hi.throw = e
		e.pending++
	}
	if e.pending == 0 {
		c.push(opComplete, e)
	}
}

// handlers appends the handlers of comp: its own and those of what completed inside it.
func (comp *compensation) handlers(list []*Node) []*Node {
	for _, in := range comp.inside {
		list = in.handlers(list)
	}
	if comp.node.handler != nil && !comp.muted {
		list = append(list, comp.node.handler)
	}
	return list
}

// handlerDone counts a completed handler; the last one lets the throw event go on.
func (c *Core) handlerDone(throw *Element) {
	throw.pending--
	if throw.pending > 0 || throw.ended() {
		return
	}
	c.push(opComplete, throw)
}
