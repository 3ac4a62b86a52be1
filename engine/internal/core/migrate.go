package core

import (
	"slices"

	"github.com/vitrip/journeyman/bpmn"
)

// Migration moves a running instance to another version or process definition.
type Migration struct {
	Instance int64
	Target   int64            // key of the process definition to go on with
	Elements []ElementMapping // one for each element id that is active, or whose subscription or token goes on
}

// ElementMapping says where an active element, a catch event, a joining gateway
// with waiting tokens or a sequence flow that such a token came along goes on.
type ElementMapping struct{ Source, Target string }

// Migrate moves a running instance; nothing changes when anything is refused.
// Active elements keep their keys, jobs, incidents and variables; called
// instances are not touched.
func (c *Core) Migrate(m Migration) error {
	c.record(Record{Op: opMigrate, Move: &m})
	const intent = "MIGRATE"
	inst := c.instances[m.Instance]
	if inst == nil || inst.Root.ended() {
		return reject(intent, NotFound, "Expected to migrate process instance but no process instance found with key '%d'", m.Instance)
	}
	target := c.byKey[m.Target]
	if target == nil || target.Deleted {
		return reject(intent, NotFound, "Expected to migrate process instance to process definition but no process definition found with key '%d'", m.Target)
	}
	p := &migration{c: c, inst: inst, target: target, to: map[*Node]*Node{inst.Process.root: target.root}, flows: map[*Flow]*Flow{}, taken: map[*Node]*Node{}}
	if err := p.read(m.Elements); err != nil {
		return err
	}
	for _, e := range append([]*Element{inst.Root}, inst.elements...) {
		if e.ended() {
			continue
		}
		if err := p.check(e); err != nil {
			return err
		}
		p.move = append(p.move, e)
	}
	for _, e := range p.move { // evaluate first: a failure changes nothing
		if err := p.prepare(e); err != nil {
			return err
		}
	}
	p.run()
	return nil
}

// migration is one call of Migrate, checked step by step and then run.
type migration struct {
	c      *Core
	inst   *Instance
	target *Process
	to     map[*Node]*Node // of the source, mapped
	flows  map[*Flow]*Flow // of the source, mapped
	taken  map[*Node]*Node // catch events of the target that are mapped, by whom
	move   []*Element
	joins  []movedJoins
	opens  []movedSubs
}

// refuse is a refusal because of the state of the instance.
func (p *migration) refuse(format string, args ...any) error {
	return reject("MIGRATE", InvalidState, "Expected to migrate process instance '%d' but "+format, append([]any{p.inst.Key}, args...)...)
}

func (p *Process) flow(id string) *Flow {
	for _, n := range p.nodes {
		for _, f := range n.out {
			if f.ID == id {
				return f
			}
		}
	}
	return nil
}

// read resolves the mapping instructions.
func (p *migration) read(mapping []ElementMapping) error {
	const intent = "MIGRATE"
	seen := map[string]bool{}
	for _, m := range mapping {
		if seen[m.Source] {
			return reject(intent, InvalidArgument, "Expected to migrate process instance '%d' but the mapping instructions contain duplicate source element ids '[%s]'.", p.inst.Key, m.Source)
		}
		seen[m.Source] = true
		from, flow := p.inst.Process.nodes[m.Source], p.inst.Process.flow(m.Source)
		if from == nil && flow == nil {
			return reject(intent, InvalidArgument, "Expected to migrate process instance '%d' but mapping instructions contain a non-existing source element id '%s'. Elements provided in mapping instructions must exist in the source process definition.", p.inst.Key, m.Source)
		}
		to, toFlow := p.target.nodes[m.Target], p.target.flow(m.Target)
		if (from != nil && to == nil) || (flow != nil && toFlow == nil) {
			return reject(intent, InvalidArgument, "Expected to migrate process instance '%d' but mapping instructions contain a non-existing target element id '%s'. Elements provided in mapping instructions must exist in the target process definition.", p.inst.Key, m.Target)
		}
		if flow != nil {
			p.flows[flow] = toFlow
			continue
		}
		p.to[from] = to
	}
	for _, m := range mapping { // in the order given: the first that is wrong is told of
		if from := p.inst.Process.nodes[m.Source]; from != nil && from.catches() {
			if err := p.catchEvent(from, p.to[from]); err != nil {
				return err
			}
		}
	}
	return nil
}

// catches reports whether n is an event or a task that waits for one.
func (n *Node) catches() bool { return n.isCatch || n.attached != nil }

// catchEvent says why a catch event cannot go on as another one.
func (p *migration) catchEvent(from, to *Node) error {
	switch {
	case from.Type != to.Type || from.event != to.event:
		return p.refuse("catch event with id '%s' and type '%s' is mapped to an element with id '%s' and different type '%s'. Catch events must be mapped to catch events of the same type.", from.ID, from.eventType(), to.ID, to.eventType())
	case p.taken[to] != nil:
		return p.refuse("catch events with ids '%s' and '%s' are mapped to the same element with id '%s'. A catch event can only be the target of one mapping instruction.", p.taken[to].ID, from.ID, to.ID)
	case from.attached != nil && p.to[from.attached] != nil && p.to[from.attached] != to.attached,
		from.Kind == bpmn.KindStartEvent && p.to[from.Parent.Parent] != nil && p.to[from.Parent.Parent] != to.Parent.Parent:
		return p.refuse("catch event with id '%s' is mapped to element with id '%s', which is attached to another element. A mapping instruction cannot detach a catch event from its element.", from.ID, to.ID)
	}
	p.taken[to] = from
	return nil
}

// eventType is a node's type with its event, for messages.
func (n *Node) eventType() string {
	if n.event == "" {
		return n.Type
	}
	return n.Type + " (" + string(n.event) + ")"
}

// migratable reports whether active instances of n's element type can be migrated.
func migratable(n *Node) bool {
	switch n.Type {
	case "PROCESS", "SERVICE_TASK", "USER_TASK", "RECEIVE_TASK", "SEND_TASK", "BUSINESS_RULE_TASK", "SCRIPT_TASK", "SUB_PROCESS", "EVENT_SUB_PROCESS",
		"CALL_ACTIVITY", "EXCLUSIVE_GATEWAY", "EVENT_BASED_GATEWAY", "INTERMEDIATE_CATCH_EVENT":
		return true
	}
	return false
}

// check says why element instance e cannot go on as the mapping wants.
func (p *migration) check(e *Element) error {
	n := p.to[e.Node]
	switch {
	case !migratable(e.Node):
		return p.refuse("active element with id '%s' has an unsupported type. The migration of a %s is not supported.", e.Node.ID, e.Node.Type)
	case n == nil:
		return p.refuse("no mapping instruction defined for active element with id '%s'. Elements cannot be migrated without a mapping.", e.Node.ID)
	case (e.State == Activating || e.State == Completing) && e.Incident() == nil, e.chosen != nil:
		return p.refuse("active element with id '%s' is not in a wait state. An element that is being entered or left cannot be migrated.", e.Node.ID)
	case e.Parent == nil:
		return p.checkScope(e, n)
	case e.ElementType() != typeAs(e, n) || e.Node.Type != n.Type:
		return p.refuse("active element with id '%s' and type '%s' is mapped to an element with id '%s' and different type '%s'. Elements must be mapped to elements of the same type.", e.Node.ID, e.ElementType(), n.ID, typeAs(e, n))
	case e.Body && e.Node.loop.sequential != n.loop.sequential:
		return p.refuse("active element with id '%s' has a different loop characteristics than the target element with id '%s'. A parallel multi-instance body cannot become a sequential one, nor the other way round.", e.Node.ID, n.ID)
	case !e.Inner && p.to[e.Parent.Node] != n.Parent:
		return p.refuse("the flow scope of active element with id '%s' is changed. The flow scope of the active element is expected to be '%s' but was '%s'. The flow scope of an element cannot be changed during migration yet.", e.Node.ID, e.Parent.Node.ID, n.Parent.ID)
	case e.Node.native != n.native:
		return p.refuse("active user task with id '%s' and implementation changes. Elements must be mapped to elements of the same implementation.", e.Node.ID)
	}
	return p.checkScope(e, n)
}

// typeAs is the element type that e would have at n.
func typeAs(e *Element, n *Node) string {
	if n.loop != nil && !e.Inner {
		return "MULTI_INSTANCE_BODY"
	}
	return n.Type
}

// run moves everything; nothing can fail any more.
func (p *migration) run() {
	inst, c := p.inst, p.c
	inst.Process.running--
	p.target.running++
	for _, j := range p.joins {
		j.scope.joins = j.joins
	}
	for _, e := range p.move {
		e.comps = p.compensations(e.comps)
		p.starts(e)
	}
	inst.Process = p.target
	for _, e := range p.move {
		e.Node = p.to[e.Node]
	}
	for _, o := range p.opens {
		var subs []*Subscription
		for _, s := range o.el.subs {
			if n := o.kept[s]; n != nil {
				s.node = n
				subs = append(subs, s)
				continue
			}
			c.close(s)
		}
		o.el.subs = append(subs, o.fresh...)
	}
	for _, o := range p.opens { // a buffered message may trigger at once
		for _, s := range o.fresh {
			if slices.Contains(o.el.subs, s) {
				c.open(s)
			}
		}
	}
}
