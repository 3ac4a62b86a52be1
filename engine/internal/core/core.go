// Package core is the deterministic heart of the embedded engine: commands go
// in, state changes, and jobs, timers and results come out.
//
// A Core has no goroutine, reads no clock and takes no lock. The caller
// serialises all calls (package broker does) and moves the time with
// [Core.Advance]; the same commands at the same times give the same state,
// the same keys included.
//
// How a process moves: an element instance ([Element]) is created, then steps
// of a queue activate and complete it. A step that cannot be done raises an
// incident that remembers the step; resolving the incident queues it again.
//
//	create ─▶ activate ─▶ (wait: job, message, timer, children) ─▶ complete ─▶ flows ─▶ create next
//	              └── incident ──resolve──▶ activate again               └─ terminate from any state
package core

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// FirstKey is the key Zeebe's partition 1 starts from: partition id shifted by 51 bits.
const FirstKey int64 = 1 << 51

// Core is the state of one engine. Create it with [New]; not safe for concurrent use.
type Core struct {
	now     time.Time
	started time.Time
	lastKey int64

	processes   map[string][]*Process // by BPMN process id, ascending version
	lastVersion map[string]int32      // highest version ever, by BPMN process id
	byKey       map[int64]*Process
	procOrder   []*Process
	starts      map[string][]*Subscription // open start event subscriptions by process id
	instances   map[int64]*Instance
	instOrder   ordered[*Instance]
	elements    map[int64]*Element
	elemOrder   ordered[*Element]
	jobs        map[int64]*Job
	jobOrder    ordered[*Job]
	ready       map[string]*jobQueue // activatable jobs by type
	incidents   map[int64]*Incident
	incOrder    ordered[*Incident]
	variables   map[int64]*Variable
	varOrder    ordered[*Variable]
	userTasks   map[int64]*UserTask
	taskOrder   ordered[*UserTask]
	messages    map[string][]*Message      // buffered, by name and correlation key
	messageIDs  map[string]*Message        // by name, correlation key and message id
	subs        map[string][]*Subscription // open message subscriptions, by name and correlation key
	startSubs   map[string][]*Subscription // message start subscriptions by message name
	signals     map[string][]*Subscription // signal subscriptions by signal name
	locks       map[string]*Instance       // running instance per process id and correlation key
	byLockKey   map[string][]*Message      // buffered messages by correlation key, for start locks

	history history

	timers timerHeap
	seq    int64 // order of timers due at the same time

	queue []step
	head  int

	recorder func(Record)  // nil: nothing is recorded
	random   *rand.ChaCha8 // for uuid() and random number()

	fresh    []*Job      // became activatable since the last Take
	finished []*Instance // completed since the last Take
}

// New returns an empty core whose first key is FirstKey plus offset plus one.
// Random numbers in expressions follow from the offset too.
func New(now time.Time, offset int64) *Core {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(offset))
	return NewSeeded(now, offset, seed)
}

// NewSeeded is [New] with the seed of the random numbers in expressions.
func NewSeeded(now time.Time, offset int64, seed [32]byte) *Core {
	return &Core{
		now: now, started: now, random: rand.NewChaCha8(seed), lastKey: FirstKey + offset,
		processes: map[string][]*Process{}, lastVersion: map[string]int32{}, byKey: map[int64]*Process{}, starts: map[string][]*Subscription{},
		instances: map[int64]*Instance{}, elements: map[int64]*Element{}, jobs: map[int64]*Job{},
		ready: map[string]*jobQueue{}, incidents: map[int64]*Incident{}, variables: map[int64]*Variable{},
		userTasks: map[int64]*UserTask{}, messages: map[string][]*Message{}, messageIDs: map[string]*Message{},
		subs: map[string][]*Subscription{}, startSubs: map[string][]*Subscription{},
		signals: map[string][]*Subscription{}, locks: map[string]*Instance{}, byLockKey: map[string][]*Message{},
	}
}

// Now is the time of the last Advance.
func (c *Core) Now() time.Time { return c.now }

func (c *Core) key() int64 {
	c.lastKey++
	return c.lastKey
}

// op is what a queued step does to its element instance.
type op int

const (
	opActivate op = iota
	opComplete
)

type step struct {
	op op
	el *Element
	fn func() // set instead of el: something that must wait until the current step is done
}

// later runs fn as a step of its own.
func (c *Core) later(fn func()) { c.queue = append(c.queue, step{fn: fn}) }

func (c *Core) push(o op, el *Element) { c.queue = append(c.queue, step{op: o, el: el}) }

// compactAt is how many done steps may lie at the front of the queue.
const compactAt = 4096

// Run executes at most limit queued steps and reports whether the queue is empty.
// A model that loops for ever therefore cannot keep the engine's lock.
func (c *Core) Run(limit int) bool {
	if !c.Idle() {
		c.record(Record{Op: OpRun, N: int64(limit)})
	}
	for ; limit > 0 && c.head < len(c.queue); limit-- {
		s := c.queue[c.head]
		c.queue[c.head] = step{}
		c.head++
		switch {
		case c.head == len(c.queue):
			c.queue, c.head = c.queue[:0], 0
		case c.head >= compactAt: // a queue that never empties must not grow for ever
			c.queue, c.head = append(c.queue[:0], c.queue[c.head:]...), 0
		}
		switch {
		case s.fn != nil:
			s.fn()
		case s.el.ended():
		case s.op == opActivate:
			c.activate(s.el)
		default:
			c.complete(s.el)
		}
	}
	return c.head == len(c.queue)
}

// Idle reports whether no step waits.
func (c *Core) Idle() bool { return c.head == len(c.queue) }

// TakeFresh returns the jobs that became activatable since the last call, in
// order. Some may have changed state since.
func (c *Core) TakeFresh() []*Job {
	out := c.fresh
	c.fresh = nil
	return out
}

// TakeFinished returns the instances that completed since the last call.
func (c *Core) TakeFinished() []*Instance {
	out := c.finished
	c.finished = nil
	return out
}
