package core

import "github.com/vitrip/journeyman/bpmn"

// movedJoins are the waiting tokens of a scope at the gateways of the target.
type movedJoins struct {
	scope *Element
	joins map[*Node][]int
}

// movedSubs are the catch events of an element instance after the migration.
type movedSubs struct {
	el    *Element
	kept  map[*Subscription]*Node // mapped ones go on as they are, at another event
	fresh []*Subscription
}

// checkScope checks what e holds besides itself: waiting tokens and what it begins with.
func (p *migration) checkScope(e *Element, n *Node) error {
	for _, s := range append([]*Node{e.espStart}, e.startNodes...) {
		if s != nil && p.to[s] == nil {
			return p.refuse("no mapping instruction defined for element with id '%s', which is to be started. Elements cannot be migrated without a mapping.", s.ID)
		}
	}
	if e.Parent == nil {
		for _, s := range append([]*Node{p.inst.start}, p.inst.starts...) {
			if s != nil && p.begin(s) == nil {
				return p.refuse("no mapping instruction defined for element with id '%s', which is to be started. Elements cannot be migrated without a mapping.", s.ID)
			}
		}
	}
	moved := movedJoins{scope: e}
	by := map[*Node]*Node{}
	for _, g := range e.Node.children { // in the order of the model, so that the first refusal is always the same
		tokens := e.joins[g]
		if !waits(tokens) {
			continue
		}
		t := p.to[g]
		switch {
		case t == nil:
			return p.refuse("no mapping instruction defined for joining gateway with id '%s', at which tokens wait. Elements cannot be migrated without a mapping.", g.ID)
		case t.Type != g.Type:
			return p.refuse("joining gateway with id '%s' and type '%s' is mapped to an element with id '%s' and different type '%s'. Elements must be mapped to elements of the same type.", g.ID, g.Type, t.ID, t.Type)
		case t.Parent != n:
			return p.refuse("the flow scope of joining gateway with id '%s' is changed. The flow scope of an element cannot be changed during migration yet.", g.ID)
		case len(t.in) < len(g.in):
			return p.refuse("joining gateway with id '%s' has %d incoming sequence flows and is mapped to a gateway with id '%s' that has %d. The target gateway must have at least as many incoming sequence flows.", g.ID, len(g.in), t.ID, len(t.in))
		case by[t] != nil:
			return p.refuse("joining gateways with ids '%s' and '%s' are mapped to the same gateway with id '%s'.", by[t].ID, g.ID, t.ID)
		}
		by[t] = g
		there := make([]int, len(t.in))
		for i, count := range tokens {
			if count == 0 {
				continue
			}
			f := p.flows[g.in[i]]
			if f == nil {
				return p.refuse("no mapping instruction defined for sequence flow with id '%s', which is taken and waits at joining gateway with id '%s'.", g.in[i].ID, g.ID)
			}
			if f.to != t {
				return p.refuse("sequence flow with id '%s' leads to joining gateway with id '%s' and is mapped to sequence flow with id '%s', which does not lead to '%s'.", g.in[i].ID, g.ID, f.ID, t.ID)
			}
			there[f.index] += count
		}
		if moved.joins == nil {
			moved.joins = map[*Node][]int{}
		}
		moved.joins[t] = there
	}
	p.joins = append(p.joins, moved)
	return nil
}

func waits(tokens []int) bool {
	for _, t := range tokens {
		if t > 0 {
			return true
		}
	}
	return false
}

// begin is where an instance that has not begun yet, because of an incident, will begin.
func (p *migration) begin(s *Node) *Node {
	if to := p.to[s]; to != nil {
		return to
	}
	if s.Kind == bpmn.KindStartEvent && s.event == "" && s.Parent.Parent == nil {
		return p.target.root.start
	}
	return nil
}

// starts moves what e, or its instance, is still to begin with.
func (p *migration) starts(e *Element) {
	e.espStart = p.to[e.espStart]
	for i, s := range e.startNodes {
		e.startNodes[i] = p.to[s]
	}
	if e.Parent != nil {
		return
	}
	if p.inst.start != nil {
		p.inst.start = p.begin(p.inst.start)
	}
	for i, s := range p.inst.starts {
		p.inst.starts[i] = p.begin(s)
	}
}

// prepare decides for each catch event of e: mapped ones stay open, the others
// are closed, and those of the target that nothing is mapped to are opened.
func (p *migration) prepare(e *Element) error {
	n := p.to[e.Node]
	o := movedSubs{el: e, kept: map[*Subscription]*Node{}}
	closing := map[string]*Subscription{}
	for _, s := range e.subs {
		switch t := p.to[s.node]; {
		case s.closed:
		case t != nil:
			o.kept[s] = t
		case s.node.event == bpmn.EventMessage:
			closing[s.name] = s
		}
	}
	if e.State == Active {
		for _, t := range opens(e, n) {
			if p.taken[t] != nil || t == n || (e.interrupted && t.attached == nil) {
				continue
			}
			s, err := p.c.prepare(e, t)
			switch {
			case err != nil:
				return p.refuse("the catch event with id '%s' of element with id '%s' cannot be subscribed to: %s", t.ID, n.ID, err.Error())
			case s == nil:
				continue
			case t.event == bpmn.EventMessage && closing[s.name] != nil:
				return p.refuse("active element with id '%s' attempts to subscribe to a message it is already subscribed to with name '%s'. Migrating active elements that subscribe to a message they are already subscribed to is not possible yet. Please provide a mapping instruction to message catch event with id '%s' to migrate the respective message subscription.", e.Node.ID, s.name, t.ID)
			}
			o.fresh = append(o.fresh, s)
		}
	}
	p.opens = append(p.opens, o)
	return nil
}

// compensations moves what was recorded: a handler goes on when its boundary event
// is mapped, and is dropped otherwise, like every other catch event.
func (p *migration) compensations(list []*compensation) []*compensation {
	var out []*compensation
	for _, comp := range list {
		inside := p.compensations(comp.inside)
		to, muted := p.to[comp.node], true
		if comp.node.handler != nil && !comp.muted {
			for from, t := range p.to {
				if from.attached == comp.node && from.event == bpmn.EventCompensation {
					to, muted = t.attached, false
				}
			}
		}
		if muted && len(inside) == 0 {
			continue
		}
		if to == nil {
			to = inside[0].node.Parent
		}
		out = append(out, &compensation{node: to, muted: muted, inside: inside})
	}
	return out
}
