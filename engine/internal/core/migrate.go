package core

import "slices"

// Migration moves a running instance to another version or process definition.
type Migration struct {
	Instance int64
	Target   int64            // key of the process definition to go on with
	Elements []ElementMapping // one for each element id that is active
}

// ElementMapping says where an active element goes on.
type ElementMapping struct{ Source, Target string }

// Migrate moves a running instance; nothing changes when anything is refused.
// Active elements keep their keys, jobs, incidents and variables.
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
	to := map[string]*Node{}
	for _, e := range m.Elements {
		if to[e.Source] != nil {
			return reject(intent, InvalidArgument, "Expected to migrate process instance '%d' but the mapping instructions contain duplicate source element ids '[%s]'.", m.Instance, e.Source)
		}
		if inst.Process.nodes[e.Source] == nil {
			return reject(intent, InvalidArgument, "Expected to migrate process instance '%d' but mapping instructions contain a non-existing source element id '%s'. Elements provided in mapping instructions must exist in the source process definition.", m.Instance, e.Source)
		}
		n := target.nodes[e.Target]
		if n == nil {
			return reject(intent, InvalidArgument, "Expected to migrate process instance '%d' but mapping instructions contain a non-existing target element id '%s'. Elements provided in mapping instructions must exist in the target process definition.", m.Instance, e.Target)
		}
		to[e.Source] = n
	}
	to[inst.Process.ID] = target.root
	var move []*Element
	for _, e := range append([]*Element{inst.Root}, inst.elements...) {
		if e.ended() {
			continue
		}
		if err := migratable(m.Instance, e, to); err != nil {
			return err
		}
		move = append(move, e)
	}
	return c.moveTo(inst, target, move, to)
}

// migratable says why element instance e cannot go on as the mapping wants.
func migratable(key int64, e *Element, to map[string]*Node) error {
	const intent = "MIGRATE"
	n := to[e.Node.ID]
	switch {
	case n == nil:
		return reject(intent, InvalidState, "Expected to migrate process instance '%d' but no mapping instruction defined for active element with id '%s'. Elements cannot be migrated without a mapping.", key, e.Node.ID)
	case e.Parent == nil:
	case n.Type != e.Node.Type:
		return reject(intent, InvalidState, "Expected to migrate process instance '%d' but active element with id '%s' and type '%s' is mapped to an element with id '%s' and different type '%s'. Elements must be mapped to elements of the same type.", key, e.Node.ID, e.Node.Type, n.ID, n.Type)
	case !e.Inner && to[e.Parent.Node.ID] != n.Parent && !(e.Parent.Body && to[e.Parent.Node.ID].Parent == n.Parent):
		return reject(intent, InvalidState, "Expected to migrate process instance '%d' but the flow scope of active element with id '%s' is changed. The flow scope of the active element is expected to be '%s' but was '%s'. The flow scope of an element cannot be changed during migration yet.", key, e.Node.ID, e.Parent.Node.ID, n.Parent.ID)
	case e.Node.native != n.native:
		return reject(intent, InvalidState, "Expected to migrate process instance '%d' but active user task with id '%s' and implementation changes. Elements must be mapped to elements of the same implementation.", key, e.Node.ID)
	}
	plain := len(e.joins) == 0 && len(e.comps) == 0 && e.loop == nil && e.throw == nil && e.pending == 0 && e.child == nil && e.chosen == nil && e.espStart == nil && !e.Inner
	if !plain || e.waiting > 0 || (e.State != Active && e.State != Activating) {
		return reject(intent, InvalidState, "Expected to migrate process instance '%d' but active element with id '%s' is in a state the embedded engine does not migrate (waiting tokens, multi-instance, called instance, recorded compensation).", key, e.Node.ID)
	}
	return nil
}

// moveTo re-binds the elements; subscriptions whose event is mapped stay open
// as they are, others are closed and those of the target opened.
func (c *Core) moveTo(inst *Instance, target *Process, move []*Element, to map[string]*Node) error {
	type open struct {
		e    *Element
		subs []*Subscription
	}
	var opened []open
	for _, e := range move { // evaluate first: a failure changes nothing
		n, old := to[e.Node.ID], e.Node
		if e.State != Active {
			continue
		}
		e.Node = n
		fresh, err := c.prepareAll(e)
		e.Node = old
		if err != nil {
			return reject("MIGRATE", InvalidState, "Expected to migrate process instance '%d' but the events of element '%s' cannot be subscribed to: %s", inst.Key, n.ID, err.Error())
		}
		opened = append(opened, open{e, fresh})
	}
	inst.Process.running--
	target.running++
	kept := map[*Subscription]*Node{}
	for _, o := range opened {
		for _, s := range o.e.subs {
			n := to[s.node.ID]
			if n == nil {
				n = target.nodes[s.node.ID]
			}
			if n != nil && !s.closed && n.event == s.node.event && slices.ContainsFunc(o.subs, func(f *Subscription) bool { return f.node == n }) {
				kept[s] = n
			}
		}
	}
	inst.Process = target
	for _, e := range move {
		e.Node = to[e.Node.ID]
	}
	for _, o := range opened {
		var subs []*Subscription
		for _, s := range o.e.subs {
			if n := kept[s]; n != nil {
				s.node = n
				subs = append(subs, s)
				continue
			}
			c.close(s)
		}
		o.e.subs = subs
		for _, s := range o.subs {
			if slices.ContainsFunc(subs, func(k *Subscription) bool { return k.node == s.node }) {
				continue
			}
			o.e.subs = append(o.e.subs, s)
			c.open(s)
		}
	}
	return nil
}
