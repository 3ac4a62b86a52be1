package core

import "github.com/vitrip/journeyman/bpmn"

// complete runs the completion step of e: output mappings, the end of its
// subscriptions, then the flows that leave it.
func (c *Core) complete(e *Element) {
	n := e.Node
	if e.State < Completing {
		e.State = Completing
	}
	if e.Body {
		c.completeBody(e)
		return
	}
	if n.Parent == nil {
		c.unsubscribe(e)
		c.finish(e, Completed)
		c.instanceEnded(e.Inst)
		return
	}
	if err := c.applyOutputs(e); err != nil {
		c.raise(e, opComplete, IOMappingError, err.Error())
		return
	}
	if e.Inner {
		c.completeIteration(e)
		return
	}
	if n.event == bpmn.EventTerminate {
		c.terminateScope(e)
		return
	}
	c.leave(e)
}

// leave ends e as completed and moves on along its flows.
func (c *Core) leave(e *Element) {
	scope, flows := e.Parent, e.Node.out
	if e.chosen != nil {
		flows = e.chosen
	}
	throw := e.throw
	c.unsubscribe(e)
	c.remember(e)
	c.finish(e, Completed)
	if e.Inst.stopping {
		return
	}
	if throw != nil {
		c.handlerDone(throw)
		return
	}
	if to := linkTarget(e.Node); to != nil {
		c.enter(to, scope)
		return
	}
	c.take(flows, scope)
	c.childDone(scope)
}

// take follows flows in scope: the next element is entered, or a token waits at a join.
func (c *Core) take(flows []*Flow, scope *Element) {
	for _, f := range flows {
		if !f.to.isJoin() {
			c.enter(f.to, scope)
			continue
		}
		if scope.joins == nil {
			scope.joins = map[*Node][]int{}
		}
		tokens := scope.joins[f.to]
		if tokens == nil {
			tokens = make([]int, len(f.to.in))
			scope.joins[f.to] = tokens
		}
		tokens[f.index]++
		scope.waiting++
		c.join(f.to, scope, false)
	}
}

// join enters a joining gateway when each incoming flow holds a token. With
// partial, one token is enough (inclusive gateway that nothing can reach any more).
func (c *Core) join(n *Node, scope *Element, partial bool) {
	tokens := scope.joins[n]
	have := 0
	for _, t := range tokens {
		if t > 0 {
			have++
		}
	}
	if have == 0 || (have < len(tokens) && !partial) {
		return
	}
	for i, t := range tokens {
		if t > 0 {
			tokens[i]--
			scope.waiting--
		}
	}
	c.enter(n, scope)
}

// childDone checks whether scope can go on or end after a child left it.
func (c *Core) childDone(scope *Element) {
	if scope == nil || scope.ended() {
		return
	}
	if scope.waiting > 0 {
		c.inclusiveJoins(scope)
	}
	if scope.children > 0 || scope.waiting > 0 || scope.Body || scope.State != Active {
		return
	}
	scope.State = Completing
	c.push(opComplete, scope)
}

// inclusiveJoins enters the inclusive gateways whose missing flows can no longer be taken.
func (c *Core) inclusiveJoins(scope *Element) {
	for _, n := range scope.Node.children {
		if n.reach == nil || scope.joins[n] == nil {
			continue
		}
		reachable := false
		for ch := scope.first; ch != nil && !reachable; ch = ch.next {
			reachable = n.reach[ch.Node]
		}
		for j, tokens := range scope.joins {
			for _, t := range tokens {
				if t > 0 && j != n && n.reach[j] {
					reachable = true
				}
			}
		}
		if !reachable {
			c.join(n, scope, true)
		}
	}
}

// terminateScope is a terminate end event: everything else in the scope ends, the scope completes.
func (c *Core) terminateScope(e *Element) {
	scope := e.Parent
	c.finish(e, Completed)
	c.clearScope(scope)
	scope.State = Completing
	c.push(opComplete, scope)
}

// clearScope terminates all children of scope and drops waiting tokens.
func (c *Core) clearScope(scope *Element) {
	for scope.first != nil {
		c.terminate(scope.first)
	}
	scope.joins, scope.waiting = nil, 0
}

// linkTarget is the catch event of a link throw event.
func linkTarget(n *Node) *Node {
	if n.event != bpmn.EventLink || n.isCatch {
		return nil
	}
	for _, o := range n.Parent.children {
		if o.event == bpmn.EventLink && o.isCatch && o.link == n.link {
			return o
		}
	}
	return nil
}
