package core

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Restore builds the core that [Core.Snapshot] was taken from. Errors name
// what in the snapshot cannot be understood.
func Restore(snapshot []byte) (*Core, error) {
	var s savedCore
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	c := NewSeeded(s.Now.time(), 0, [32]byte{})
	c.started, c.lastKey = s.Started.time(), s.LastKey
	if err := c.random.UnmarshalBinary(s.Random); err != nil {
		return nil, fmt.Errorf("read the random numbers: %w", err)
	}
	if s.LastVersion != nil {
		c.lastVersion = s.LastVersion
	}
	r := &restorer{c: c}
	for _, step := range []func(*savedCore){r.processes, r.instances, r.elements, r.jobs, r.incidents, r.variables, r.tasks, r.messages, r.subscriptions, r.history} {
		if step(&s); len(r.errs) > 0 {
			return nil, errors.Join(r.errs...)
		}
	}
	c.seq = s.Seq
	return c, nil
}

type restorer struct {
	c    *Core
	errs []error
}

func (r *restorer) fail(format string, args ...any) {
	if len(r.errs) < 10 {
		r.errs = append(r.errs, fmt.Errorf("state: "+format, args...))
	}
}

func (r *restorer) node(p *Process, id string) *Node {
	if id == "" {
		return nil
	}
	n := p.nodes[id]
	if n == nil {
		r.fail("process %d has no element %q", p.Key, id)
		return p.root
	}
	return n
}

func (r *restorer) element(key int64) *Element {
	e := r.c.elements[key]
	if e == nil {
		r.fail("element instance %d does not exist", key)
		return &Element{}
	}
	return e
}

func (r *restorer) timer(t *savedTimer, fire func()) *timer {
	if t == nil {
		return nil
	}
	x := &timer{due: t.Due.time(), seq: t.Seq, fire: fire}
	heap.Push(&r.c.timers, x)
	return x
}

func (r *restorer) processes(s *savedCore) {
	for _, x := range s.Processes {
		procs, errs := compileResource(Resource{Name: x.Resource, Content: x.XML}, false)
		var p *Process
		for _, candidate := range procs {
			if candidate.ID == x.ID {
				p = candidate
			}
		}
		if p == nil {
			r.fail("process %q version %d does not compile any more: %w", x.ID, x.Version, errors.Join(errs...))
			return
		}
		p.Key, p.Deployment, p.Version, p.At, p.Deleted = x.Key, x.Deployment, x.Version, x.At.time(), x.Deleted
		r.c.byKey[p.Key] = p
		r.c.procOrder = append(r.c.procOrder, p)
		if !p.Deleted {
			r.c.processes[p.ID] = append(r.c.processes[p.ID], p)
		}
	}
}

func (r *restorer) instances(s *savedCore) {
	for _, x := range s.Instances {
		p := r.c.byKey[x.Process]
		if p == nil {
			r.fail("process instance %d: process %d does not exist", x.Key, x.Process)
			return
		}
		i := &Instance{Key: x.Key, Process: p, Depth: x.Depth, lock: x.Lock, corrKey: x.CorrKey, start: r.node(p, x.Start), startDoc: x.StartDoc, tags: x.Tags, stopAfter: x.StopAfter}
		for _, id := range x.Starts {
			i.starts = append(i.starts, r.node(p, id))
		}
		r.c.instances[i.Key] = i
		r.c.instOrder.add(i)
		if i.lock != "" {
			r.c.locks[i.lock] = i
		}
	}
}

func (r *restorer) elements(s *savedCore) {
	c := r.c
	for _, x := range s.Elements {
		i := c.instances[x.Instance]
		if i == nil {
			r.fail("element instance %d: process instance %d does not exist", x.Key, x.Instance)
			return
		}
		p := i.Process
		e := &Element{Key: x.Key, Inst: i, Node: r.elementNode(p, x), State: x.State, Start: x.Start.time(), End: x.End.time(), Body: x.Body, Inner: x.Inner,
			doc: x.Doc, waiting: x.Waiting, interrupted: x.Interrupted, loopIndex: x.LoopIndex, triggered: x.Triggered, given: x.Given, pending: x.Pending, localDoc: x.LocalDoc}
		c.elements[e.Key] = e
		c.elemOrder.add(e)
		if x.Parent == 0 {
			i.Root = e
			if !e.ended() {
				p.running++
			}
		} else {
			e.Parent = r.element(x.Parent)
			i.elements = append(i.elements, e)
		}
		if e.ended() {
			continue
		}
		if parent := e.Parent; parent != nil {
			e.prev = parent.last
			if parent.last != nil {
				parent.last.next = e
			} else {
				parent.first = e
			}
			parent.last = e
			parent.children++
		}
		e.espStart, e.comps = r.node(p, x.EspStart), r.comps(p, x.Comps)
		for _, id := range x.StartNodes {
			e.startNodes = append(e.startNodes, r.node(p, id))
		}
		for id, tokens := range x.Joins {
			if e.joins == nil {
				e.joins = map[*Node][]int{}
			}
			e.joins[r.node(p, id)] = tokens
		}
		if l := x.Loop; l != nil {
			e.loop = &loopState{l.Total, l.Created, l.Completed, l.Terminated, l.Output}
		}
		for _, n := range x.Chosen {
			if n < 0 || n >= len(e.Node.out) {
				r.fail("element instance %d: flow %d does not exist", e.Key, n)
				return
			}
			e.chosen = append(e.chosen, e.Node.out[n])
		}
	}
	r.links(s)
}

// elementNode finds the node of an element instance; an ended one may name an
// element that only the process version before a migration had.
func (r *restorer) elementNode(p *Process, x savedElement) *Node {
	if x.Process != 0 && x.Process != p.Key {
		if p = r.c.byKey[x.Process]; p == nil {
			r.fail("element instance %d: process %d does not exist", x.Key, x.Process)
			return &Node{}
		}
	}
	return r.node(p, x.Node)
}

// links ties what refers to element instances that come later.
func (r *restorer) links(s *savedCore) {
	for _, x := range s.Elements {
		if x.Throw != 0 {
			r.c.elements[x.Key].throw = r.element(x.Throw)
		}
	}
	for _, x := range s.Instances {
		i := r.c.instances[x.Key]
		if i.Root == nil {
			r.fail("process instance %d has no element instance", x.Key)
			return
		}
		if x.Caller == 0 {
			continue
		}
		i.Caller = r.element(x.Caller)
		if !i.Root.ended() {
			i.Caller.child = i
		}
	}
}

func (r *restorer) comps(p *Process, list []savedComp) []*compensation {
	var out []*compensation
	for _, x := range list {
		out = append(out, &compensation{r.node(p, x.Node), x.Muted, r.comps(p, x.Inside)})
	}
	return out
}

func (r *restorer) jobs(s *savedCore) {
	for _, x := range s.Jobs {
		e := r.element(x.Element)
		j := &Job{Key: x.Key, Type: x.Type, El: e, State: x.State, Retries: x.Retries, Headers: x.Headers, Deadline: x.Deadline.time(), Worker: x.Worker,
			Error: x.Error, ErrorCode: x.ErrorCode, End: x.End.time(), Recorded: x.Recorded, index: -1}
		r.c.jobs[j.Key] = j
		r.c.jobOrder.add(j)
		if e.Inst != nil {
			e.Inst.jobs = append(e.Inst.jobs, j)
		}
		if j.State < JobCompleted {
			e.job = j
		}
		switch j.State {
		case JobActivatable:
			r.c.enqueue(j)
		case JobActivated:
			j.timer = r.timer(x.Timer, r.c.timedOut(j))
		default:
			j.timer = r.timer(x.Timer, r.c.backoffOver(j))
		}
	}
}

func (r *restorer) incidents(s *savedCore) {
	for _, x := range s.Incidents {
		e := r.element(x.Element)
		i := &Incident{Key: x.Key, El: e, Type: x.Type, Message: x.Message, Created: x.Created.time(), Active: x.Active, op: x.Op}
		if x.Job != 0 {
			if i.Job = r.c.jobs[x.Job]; i.Job == nil {
				r.fail("incident %d: job %d does not exist", x.Key, x.Job)
				return
			}
		}
		r.c.incidents[i.Key] = i
		r.c.incOrder.add(i)
		if e.Inst == nil {
			return
		}
		e.Inst.incs = append(e.Inst.incs, i)
		if !i.Active {
			continue
		}
		e.count(1)
		if i.Job != nil {
			i.Job.incident = i
		} else {
			e.incident = i
		}
	}
}

func (r *restorer) variables(s *savedCore) {
	for _, x := range s.Variables {
		e := r.element(x.Scope)
		v := &Variable{Key: x.Key, Name: x.Name, Value: x.Value, Scope: e}
		if e.vars == nil {
			e.vars = map[string]*Variable{}
		}
		e.vars[v.Name] = v
		r.c.variables[v.Key] = v
		r.c.varOrder.add(v)
		if e.Inst != nil {
			e.Inst.vars = append(e.Inst.vars, v)
		}
	}
}

func (r *restorer) tasks(s *savedCore) {
	for _, x := range s.Tasks {
		t := &UserTask{Key: x.Key, El: r.element(x.Element), State: x.State, Assignee: x.Assignee, Due: x.Due, FollowUp: x.FollowUp, Groups: x.Groups, Users: x.Users,
			Priority: x.Priority, Created: x.Created.time(), Completed: x.Completed.time()}
		r.c.userTasks[t.Key] = t
		r.c.taskOrder.add(t)
		if t.El.Inst != nil {
			t.El.Inst.tasks = append(t.El.Inst.tasks, t)
		}
		if t.State == TaskCreated {
			t.El.task = t
		}
	}
}

func (r *restorer) messages(s *savedCore) {
	for _, x := range s.Messages {
		m := &Message{Key: x.Key, Name: x.Name, CorrKey: x.CorrKey, ID: x.ID, Vars: x.Vars, Deadline: x.Deadline.time(), taken: map[string]bool{}}
		for _, id := range x.Taken {
			m.taken[id] = true
		}
		r.c.index(m)
		m.timer = r.timer(&x.Timer, r.c.expired(m))
	}
}

// subscriptions opens them all in the order of their keys, which is the order they were opened in.
func (r *restorer) subscriptions(s *savedCore) {
	type open struct {
		savedSub
		el *Element
	}
	byKey := map[int64]open{}
	for _, x := range s.Elements {
		for _, sub := range x.Subs {
			byKey[sub.Key] = open{sub, r.c.elements[x.Key]}
		}
	}
	for _, sub := range s.Starts {
		byKey[sub.Key] = open{savedSub: sub}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		x := byKey[key]
		p := r.c.byKey[x.Process]
		if p == nil {
			r.fail("subscription %d: process %d does not exist", key, x.Process)
			return
		}
		sub := &Subscription{Key: key, el: x.el, node: r.node(p, x.Node), name: x.Name, corrKey: x.CorrKey}
		sub.fire = firing{due: zoned(x.Due, x.Zone, x.ZoneOffset), repeats: x.Repeats, every: interval{x.Months, x.Days, time.Duration(x.Every)}}
		if k := x.Cron; k != nil {
			sub.fire.cron = &cron{k.Sec, k.Min, k.Hour, k.Dom, k.Month, k.Dow, k.AnyDom, k.AnyDow}
		}
		sub.timer = r.timer(x.Timer, r.c.elapsed(sub))
		if sub.el == nil {
			r.c.starts[p.ID] = append(r.c.starts[p.ID], sub)
		} else {
			sub.el.subs = append(sub.el.subs, sub)
		}
		r.c.listen(sub)
	}
}

// zoned is a time in the zone it was given in: days and months are counted there.
func zoned(s stamp, zone string, offset int) time.Time {
	if s == (stamp{}) {
		return time.Time{}
	}
	if zone == "" {
		return s.time()
	}
	if loc, err := time.LoadLocation(zone); err == nil {
		return s.time().In(loc)
	}
	return s.time().In(time.FixedZone("", offset))
}

// history: a state that was written without one forgets nothing, until it is told to.
func (r *restorer) history(s *savedCore) {
	h := &r.c.history
	if s.History == nil {
		h.ended = slices.DeleteFunc(slices.Clone(r.c.instOrder.list), func(i *Instance) bool { return !i.Root.ended() })
		slices.SortStableFunc(h.ended, func(a, b *Instance) int { return a.Root.End.Compare(b.Root.End) })
		return
	}
	h.limit, h.age = s.History.Limit, s.History.Age
	for _, k := range s.History.Ended {
		i := r.c.instances[k]
		if i == nil {
			r.fail("history: process instance %d does not exist", k)
			return
		}
		h.ended = append(h.ended, i)
	}
	h.timer = r.timer(s.History.Timer, r.c.historyDue)
}
