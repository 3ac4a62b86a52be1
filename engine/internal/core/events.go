package core

import (
	"fmt"
	"slices"

	"github.com/vitrip/journeyman/bpmn"
)

// Subscription is one open catch event: a message, a timer or a signal that an
// element instance waits for, or a start event of a process.
type Subscription struct {
	Key  int64
	el   *Element // where it is open; nil for a process start event
	node *Node    // the event that happens

	name, corrKey string // message or signal
	timer         *timer
	fire          firing
	closed        bool
}

// subscribe evaluates and opens all catch events of e. Nothing is opened when one fails.
func (c *Core) subscribe(e *Element) error {
	all, err := c.prepareAll(e)
	if err != nil {
		return err
	}
	e.subs = append(e.subs, all...)
	for _, s := range all {
		c.open(s)
	}
	return nil
}

// prepareAll evaluates all catch events of e and opens none.
func (c *Core) prepareAll(e *Element) ([]*Subscription, error) {
	var all []*Subscription
	for _, n := range opens(e, e.Node) {
		s, err := c.prepare(e, n)
		if err != nil {
			return nil, err
		}
		if s != nil {
			all = append(all, s)
		}
	}
	return all, nil
}

// opens lists the catch events that are open while e is active at n.
func opens(e *Element, n *Node) []*Node {
	var all []*Node
	if !e.Inner {
		all = append(all, n.boundary...)
	}
	if e.Body {
		return all
	}
	for _, esp := range n.eventSubs {
		all = append(all, esp.starts...)
	}
	if n.Kind == bpmn.KindEventBasedGateway {
		for _, f := range n.out {
			all = append(all, f.to)
		}
	}
	if n.Kind == bpmn.KindCatchEvent || n.Kind == bpmn.KindReceiveTask {
		all = append(all, n)
	}
	return all
}

// prepare evaluates one catch event; nil for events that need no subscription (error, escalation, compensation).
func (c *Core) prepare(e *Element, node *Node) (*Subscription, error) {
	s := &Subscription{Key: c.key(), el: e, node: node}
	switch node.event {
	case bpmn.EventMessage:
		name, err := node.message.name.text(c, e.lookup)
		if err != nil {
			return nil, err
		}
		scope := e
		if node.attached != nil {
			scope = e.Parent
		}
		if node.message.key == nil {
			return nil, fmt.Errorf("message %q has no correlation key", name)
		}
		key, err := node.message.key.correlationKey(c, scope.lookup)
		if err != nil {
			return nil, err
		}
		s.name, s.corrKey = name, key
	case bpmn.EventTimer:
		f, err := c.evaluateTimer(node.timer, e)
		if err != nil {
			return nil, err
		}
		s.fire = f
	case bpmn.EventSignal:
		name, err := node.signal.text(c, e.lookup)
		if err != nil {
			return nil, err
		}
		s.name = name
	default:
		return nil, nil
	}
	return s, nil
}

// open makes a prepared subscription effective; a buffered message may trigger it at once.
func (c *Core) open(s *Subscription) {
	if s.closed {
		return // a buffered message has already ended the element
	}
	switch s.node.event {
	case bpmn.EventMessage:
		k := messageKey(s.name, s.corrKey)
		c.subs[k] = append(c.subs[k], s)
		c.correlateBuffered(s)
	case bpmn.EventTimer:
		c.arm(s)
	case bpmn.EventSignal:
		c.signals[s.name] = append(c.signals[s.name], s)
	}
}

// listen puts a restored subscription where its messages or signals look for it.
func (c *Core) listen(s *Subscription) {
	switch {
	case s.node.event == bpmn.EventSignal:
		c.signals[s.name] = append(c.signals[s.name], s)
	case s.node.event != bpmn.EventMessage:
	case s.el == nil:
		c.startSubs[s.name] = append(c.startSubs[s.name], s)
	default:
		k := messageKey(s.name, s.corrKey)
		c.subs[k] = append(c.subs[k], s)
	}
}

// arm sets the timer for the next firing; an exhausted cycle stays silent.
func (c *Core) arm(s *Subscription) {
	if s.fire.repeats == 0 {
		return
	}
	s.timer = c.at(s.fire.due, c.elapsed(s))
}

func (c *Core) elapsed(s *Subscription) func() {
	return func() {
		s.timer = nil
		if s.fire.repeats > 0 {
			s.fire.repeats--
		}
		c.trigger(s, nil)
		if !s.closed && s.fire.next() {
			c.arm(s)
		}
	}
}

func (c *Core) close(s *Subscription) {
	if s.closed {
		return
	}
	s.closed = true
	switch s.node.event {
	case bpmn.EventMessage:
		drop(c.subs, messageKey(s.name, s.corrKey), s)
	case bpmn.EventTimer:
		c.stop(s.timer)
		s.timer = nil
	case bpmn.EventSignal:
		drop(c.signals, s.name, s)
	}
}

func (c *Core) unsubscribe(e *Element) {
	for _, s := range e.subs {
		c.close(s)
	}
	e.subs = nil
}

// drop removes v from the list at key, and the key when the list is empty.
func drop[T comparable](m map[string][]T, key string, v T) {
	i := slices.Index(m[key], v)
	if i < 0 {
		return
	}
	if l := slices.Delete(m[key], i, i+1); len(l) > 0 {
		m[key] = l
	} else {
		delete(m, key)
	}
}

// trigger makes the event of s happen with the given variables. It reports
// whether something happened: an element that is already completing lets its
// inner event subprocesses go.
func (c *Core) trigger(s *Subscription, vars Doc) bool {
	if s.closed {
		return false
	}
	if s.el == nil {
		c.startInstance(s.node.Proc, s.node, vars)
		return true
	}
	e, n := s.el, s.node
	switch {
	case n == e.Node:
		c.unsubscribeEvents(e, n)
		e.doc = vars
		if e.State < Completing {
			e.State = Completing
			c.push(opComplete, e)
		}
	case e.Node.Kind == bpmn.KindEventBasedGateway && n.attached == nil:
		c.unsubscribe(e)
		scope := e.Parent
		c.finish(e, Completed)
		ev := c.newElement(n, scope)
		ev.doc, ev.triggered = vars, true
		c.push(opActivate, ev)
	case n.attached != nil:
		c.fireBoundary(e, n, vars)
	default:
		if e.State != Active {
			return false
		}
		c.fireEventSubprocess(e, n, vars)
	}
	return true
}

// unsubscribeEvents closes e's own event, so that a boundary event stays open until e completes.
func (c *Core) unsubscribeEvents(e *Element, n *Node) {
	for _, s := range e.subs {
		if s.node == n {
			c.close(s)
		}
	}
}

// fireBoundary activates boundary event n of the activity e, ending e when it interrupts.
func (c *Core) fireBoundary(e *Element, n *Node, vars Doc) {
	scope := e.Parent
	if n.interrupting || n.event == bpmn.EventError {
		c.terminate(e)
	}
	ev := c.newElement(n, scope)
	ev.doc, ev.triggered, ev.localDoc = vars, true, n.event == bpmn.EventError
	c.push(opActivate, ev)
}

// fireEventSubprocess starts the event subprocess whose start event is n in scope e.
func (c *Core) fireEventSubprocess(e *Element, n *Node, vars Doc) {
	if n.interrupting {
		c.interrupt(e)
	}
	esp := c.newElement(n.Parent, e)
	esp.espStart, esp.doc = n, vars
	c.push(opActivate, esp)
}

// interrupt clears scope e for an interrupting event subprocess: children end,
// the scope's other event subprocesses are closed. Boundary events of e stay.
func (c *Core) interrupt(e *Element) {
	e.interrupted = true
	keep := e.subs[:0]
	for _, s := range e.subs {
		if s.node.attached == nil {
			c.close(s)
		} else {
			keep = append(keep, s)
		}
	}
	e.subs = keep
	c.clearScope(e)
}
