package core

import "time"

// State is the life-cycle state of an element instance.
type State int

// Element instance states.
const (
	Activating State = iota
	Active
	Completing
	Completed
	Terminated
)

// Element is one element instance: the process instance itself, a
// subprocess, a task, an event, a gateway or a multi-instance body.
type Element struct {
	Key    int64
	Node   *Node
	Inst   *Instance
	Parent *Element // flow scope; nil for the process instance itself
	State  State
	Start  time.Time
	End    time.Time
	Body   bool // multi-instance body
	Inner  bool // iteration of a multi-instance body

	vars map[string]*Variable
	doc  Doc // variables that arrived with a job completion or an event

	// Children, in creation order, as a linked list.
	first, last, prev, next *Element
	children                int

	// Scope state.
	waiting     int             // flows taken that wait at a join
	joins       map[*Node][]int // per join: tokens per incoming flow
	interrupted bool            // an interrupting event subprocess took over
	comps       []*compensation // completed activities that can be compensated
	loop        *loopState      // multi-instance body
	loopIndex   int             // 1-based loopCounter of an iteration
	subs        []*Subscription // open catch events
	job         *Job            // current job
	task        *UserTask       // native user task
	child       *Instance       // called process instance
	incident    *Incident       // active incident of a step of this element
	incidents   int             // active incidents here, inside and in called instances
	triggered   bool            // an event instance whose event already happened
	espStart    *Node           // event subprocess: its triggered start event
	startNodes  []*Node         // subprocess: elements to start at instead of its start event
	given       map[string]Doc  // variables for what startNodes enter
	throw       *Element        // compensation handler: the throw event that waits
	pending     int             // compensation throw: handlers still running
	chosen      []*Flow         // gateway: flows decided by activation
	localDoc    bool            // doc stays local (error boundary)
}

// Instance is one process instance.
type Instance struct {
	Key     int64
	Process *Process
	Root    *Element
	Caller  *Element // call activity that started it; nil for a root instance
	Depth   int      // call depth, 0 for a root instance

	elements  []*Element
	jobs      []*Job
	incs      []*Incident
	vars      []*Variable
	lock      string // message start lock held, empty when none
	corrKey   string
	tasks     []*UserTask
	start     *Node    // the start event to begin with; nil once the instance has begun
	startDoc  Doc      // variables of a message, timer or signal start
	starts    []*Node  // start instructions
	stopAfter []string // runtime instructions: ends the instance when an element of these ends
	forgotten bool     // left the history
	stopping  bool     // one of them has ended: the instance ends in a step of its own
	tags      []string
}

func (e *Element) ended() bool { return e.State >= Completed }

// Ended reports whether the element instance has completed or was terminated.
func (e *Element) Ended() bool { return e.ended() }

func (c *Core) newElement(n *Node, parent *Element) *Element {
	e := &Element{Key: c.key(), Node: n, Parent: parent, Start: c.now}
	if parent != nil {
		e.Inst = parent.Inst
		e.prev = parent.last
		if parent.last != nil {
			parent.last.next = e
		} else {
			parent.first = e
		}
		parent.last = e
		parent.children++
	}
	c.elements[e.Key] = e
	c.elemOrder.add(e)
	if e.Inst != nil {
		e.Inst.elements = append(e.Inst.elements, e)
	}
	return e
}

// enter creates an instance of n in scope and queues its activation.
func (c *Core) enter(n *Node, scope *Element) *Element {
	e := c.newElement(n, scope)
	e.Body = n.loop != nil
	c.push(opActivate, e)
	return e
}

// finish ends e and takes it out of its scope; flows and scope completion are the caller's.
func (c *Core) finish(e *Element, s State) {
	e.State, e.End = s, c.now
	c.stopWhenAsked(e)
	if p := e.Parent; p != nil {
		if e.prev != nil {
			e.prev.next = e.next
		} else {
			p.first = e.next
		}
		if e.next != nil {
			e.next.prev = e.prev
		} else {
			p.last = e.prev
		}
		e.prev, e.next = nil, nil
		p.children--
	}
	e.joins, e.comps, e.loop, e.doc, e.subs, e.chosen = nil, nil, nil, nil, nil, nil
}

// terminate ends e and everything inside it, jobs, subscriptions and incidents included.
func (c *Core) terminate(e *Element) {
	if e.ended() {
		return
	}
	for e.first != nil {
		c.terminate(e.first)
	}
	if e.child != nil {
		c.terminate(e.child.Root)
	}
	if e.job != nil {
		c.cancelJob(e.job)
	}
	if e.task != nil && e.task.State == TaskCreated {
		e.task.State, e.task.Completed = TaskCanceled, c.now
	}
	c.unsubscribe(e)
	if e.incident != nil {
		c.closeIncident(e.incident)
	}
	c.finish(e, Terminated)
	if e.Parent == nil {
		c.instanceEnded(e.Inst)
	}
}
