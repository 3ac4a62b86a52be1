package core

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// The held* types are records at the moment of a capture: what never changes
// is read from the record later, what changes is copied. They are many, so they are small.

type heldInstance struct {
	of      *Instance
	process int64
	lock    string
	begin   *savedInstance // what it is still to begin with; nil once it has begun
}

func holdInstance(i *Instance) heldInstance {
	h := heldInstance{of: i, process: i.Process.Key, lock: i.lock}
	if !i.Root.ended() && (i.start != nil || i.starts != nil || i.startDoc != nil) {
		h.begin = &savedInstance{Start: idOf(i.start), StartDoc: i.startDoc, Starts: ids(i.starts)}
	}
	return h
}

func (h heldInstance) save() savedInstance {
	var s savedInstance
	if h.begin != nil {
		s = *h.begin
	}
	i := h.of
	s.Key, s.Process, s.Depth, s.Lock, s.CorrKey, s.StopAfter, s.Tags = i.Key, h.process, i.Depth, h.lock, i.corrKey, i.stopAfter, i.tags
	if i.Caller != nil {
		s.Caller = i.Caller.Key
	}
	return s
}

type heldElement struct {
	of      *Element
	node    *Node
	process int64 // of the node, when it is not the instance's
	state   State
	end     time.Time
	subs    []heldSub
	more    *savedElement // what only few elements hold; nil when there is nothing of it
}

func holdElement(e *Element) heldElement {
	h := heldElement{of: e, node: e.Node, state: e.State, end: e.End}
	if p := e.Node.Proc.Key; p != e.Inst.Process.Key {
		h.process = p
	}
	if e.ended() { // what is left there is never looked at again
		return h
	}
	for _, sub := range e.subs {
		if !sub.closed {
			h.subs = append(h.subs, holdSub(sub))
		}
	}
	plain := e.doc == nil && e.waiting == 0 && e.joins == nil && !e.interrupted && e.comps == nil && e.loop == nil && !e.triggered &&
		e.espStart == nil && e.startNodes == nil && e.given == nil && e.throw == nil && e.pending == 0 && e.chosen == nil && !e.localDoc
	if plain {
		return h
	}
	s := &savedElement{
		Doc: e.doc, Waiting: e.waiting, Interrupted: e.interrupted, Comps: saveComps(e.comps),
		Triggered: e.triggered, EspStart: idOf(e.espStart), StartNodes: ids(e.startNodes), Given: e.given, Pending: e.pending, LocalDoc: e.localDoc,
	}
	for n, tokens := range e.joins {
		if s.Joins == nil {
			s.Joins = map[string][]int{}
		}
		s.Joins[n.ID] = slices.Clone(tokens)
	}
	if l := e.loop; l != nil {
		s.Loop = &savedLoop{l.total, l.created, l.completed, l.terminated, slices.Clone(l.output)}
	}
	if e.throw != nil {
		s.Throw = e.throw.Key
	}
	for _, f := range e.chosen {
		s.Chosen = append(s.Chosen, slices.Index(e.Node.out, f))
	}
	h.more = s
	return h
}

func (h heldElement) save() savedElement {
	var s savedElement
	if h.more != nil {
		s = *h.more
	}
	e := h.of
	s.Key, s.Instance, s.Process, s.Node, s.State = e.Key, e.Inst.Key, h.process, h.node.ID, h.state
	s.Start, s.End, s.Body, s.Inner = stampOf(e.Start), stampOf(h.end), e.Body, e.Inner
	if e.Parent != nil {
		s.Parent = e.Parent.Key
	}
	if h.state < Completed {
		s.LoopIndex = e.loopIndex
	}
	for _, sub := range h.subs {
		s.Subs = append(s.Subs, sub.save())
	}
	return s
}

type heldSub struct {
	of    *Subscription
	node  *Node
	fire  firing
	armed bool
	timer savedTimer
}

func holdSub(sub *Subscription) heldSub {
	h := heldSub{of: sub, node: sub.node, fire: sub.fire}
	if t := sub.timer; t != nil && t.index >= 0 {
		h.armed, h.timer = true, savedTimer{stampOf(t.due), t.seq}
	}
	return h
}

func (h heldSub) save() savedSub {
	f := h.fire
	s := savedSub{
		Key: h.of.Key, Process: h.node.Proc.Key, Node: h.node.ID, Name: h.of.name, CorrKey: h.of.corrKey,
		Repeats: f.repeats, Months: f.every.months, Days: f.every.days, Every: int64(f.every.d),
	}
	if h.armed {
		s.Timer = &h.timer
	}
	if !f.due.IsZero() {
		s.Due = stampOf(f.due)
		if zone, offset := f.due.Zone(); f.due.Location() != time.UTC {
			s.Zone, s.ZoneOffset = f.due.Location().String(), offset
			if strings.TrimSpace(s.Zone) == "" {
				s.Zone = "offset" + zone
			}
		}
	}
	if k := f.cron; k != nil { // never changes
		s.Cron = &savedCron{k.sec, k.min, k.hour, k.dom, k.month, k.dow, k.anyDom, k.anyDow}
	}
	return s
}

type heldVariable struct {
	of    *Variable
	value json.RawMessage
}

func holdVariable(v *Variable) heldVariable { return heldVariable{v, v.Value} }

func (h heldVariable) save() savedVariable {
	return savedVariable{h.of.Key, h.of.Scope.Key, h.of.Name, h.value}
}
