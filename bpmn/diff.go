package bpmn

import (
	"fmt"
	"slices"
	"sort"
)

// Change is one difference between two versions of a model.
type Change struct {
	Kind      ChangeKind
	ProcessID string
	ElementID string // empty for a process
	Before    string // empty when added
	After     string // empty when removed
	// Breaks says that running instances of the old version may suffer: workers
	// and operators still meet what was removed or renamed (spec B5, W16).
	Breaks bool
}

// ChangeKind names what changed.
type ChangeKind string

// The kinds of changes.
const (
	ProcessAdded   ChangeKind = "process added"
	ProcessRemoved ChangeKind = "process removed"
	ElementAdded   ChangeKind = "element added"
	ElementRemoved ChangeKind = "element removed"
	KindChanged    ChangeKind = "element kind changed"
	JobTypeChanged ChangeKind = "job type changed"
	EventChanged   ChangeKind = "event changed"
	RetriesChanged ChangeKind = "retries changed"
	MappingChanged ChangeKind = "mapping changed"
	FlowChanged    ChangeKind = "flow changed"
)

// String renders one line for people.
func (c Change) String() string {
	at := c.ProcessID
	if c.ElementID != "" {
		at += "/" + c.ElementID
	}
	switch {
	case c.Before != "" && c.After != "":
		return fmt.Sprintf("%s: %s: %s -> %s", at, c.Kind, c.Before, c.After)
	case c.Before != "" || c.After != "":
		return fmt.Sprintf("%s: %s: %s", at, c.Kind, c.Before+c.After)
	}
	return fmt.Sprintf("%s: %s", at, c.Kind)
}

// Diff compares two versions of a model by what they mean: ids, kinds, job
// types, events, mappings and flows. Layout, prefixes, names and documentation
// do not count. The result is sorted by process and element, and empty when
// there is no difference.
func Diff(before, after *Definitions) []Change {
	var out []Change
	olds, news := byID(before), byID(after)
	for id, p := range olds {
		q, ok := news[id]
		if !ok {
			out = append(out, Change{Kind: ProcessRemoved, ProcessID: id, Breaks: true})
			continue
		}
		out = append(out, diffProcess(id, p, q)...)
	}
	for id := range news {
		if olds[id] == nil {
			out = append(out, Change{Kind: ProcessAdded, ProcessID: id})
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.ProcessID != b.ProcessID {
			return a.ProcessID < b.ProcessID
		}
		if a.ElementID != b.ElementID {
			return a.ElementID < b.ElementID
		}
		return a.Kind < b.Kind
	})
	return out
}

func byID(d *Definitions) map[string]*Process {
	out := map[string]*Process{}
	for _, p := range d.Processes {
		out[p.ID] = p
	}
	return out
}

func collect(s *Scope, elements map[string]*Element, flows map[string]string) {
	for _, e := range s.Elements {
		elements[e.ID] = e
		if e.Scope != nil {
			collect(e.Scope, elements, flows)
		}
	}
	for _, f := range s.Flows {
		flows[f.ID] = f.Source.ID + " > " + f.Target.ID
		if f.Condition != "" {
			flows[f.ID] += " if " + f.Condition
		}
		if f.Source.Default == f {
			flows[f.ID] += " (default)"
		}
	}
}

func diffProcess(id string, p, q *Process) []Change {
	var out []Change
	olds, news := map[string]*Element{}, map[string]*Element{}
	oldFlows, newFlows := map[string]string{}, map[string]string{}
	collect(&p.Scope, olds, oldFlows)
	collect(&q.Scope, news, newFlows)
	for eid, a := range olds {
		b := news[eid]
		if b == nil {
			out = append(out, Change{Kind: ElementRemoved, ProcessID: id, ElementID: eid, Before: string(a.Kind), Breaks: true})
			continue
		}
		add := func(kind ChangeKind, before, after string, breaks bool) {
			if before != after {
				out = append(out, Change{Kind: kind, ProcessID: id, ElementID: eid, Before: before, After: after, Breaks: breaks})
			}
		}
		add(KindChanged, string(a.Kind), string(b.Kind), true)
		add(JobTypeChanged, jobType(a), jobType(b), true)
		add(EventChanged, eventText(a), eventText(b), true)
		add(RetriesChanged, retriesText(a), retriesText(b), false)
		if !slices.Equal(a.Inputs, b.Inputs) || !slices.Equal(a.Outputs, b.Outputs) {
			add(MappingChanged, fmt.Sprint(a.Inputs, a.Outputs), fmt.Sprint(b.Inputs, b.Outputs), false)
		}
	}
	for eid, b := range news {
		if olds[eid] == nil {
			out = append(out, Change{Kind: ElementAdded, ProcessID: id, ElementID: eid, After: string(b.Kind)})
		}
	}
	for fid, a := range oldFlows {
		if b := newFlows[fid]; a != b {
			out = append(out, Change{Kind: FlowChanged, ProcessID: id, ElementID: fid, Before: a, After: b})
		}
	}
	for fid, b := range newFlows {
		if _, ok := oldFlows[fid]; !ok {
			out = append(out, Change{Kind: FlowChanged, ProcessID: id, ElementID: fid, After: b})
		}
	}
	return out
}

func jobType(e *Element) string {
	if e.Task == nil {
		return ""
	}
	return e.Task.Type
}

func retriesText(e *Element) string {
	if e.Task == nil {
		return ""
	}
	return e.Task.Retries
}

// eventText says what an event waits for or throws.
func eventText(e *Element) string {
	d := e.Event
	if d == nil {
		return ""
	}
	text := string(d.Kind)
	switch {
	case d.Message != nil:
		text += " " + d.Message.Name + " " + d.Message.CorrelationKey
	case d.Error != nil:
		text += " " + d.Error.Code
	case d.Signal != nil:
		text += " " + d.Signal.Name
	case d.Escalation != nil:
		text += " " + d.Escalation.Code
	case d.Timer != nil:
		text += " " + d.Timer.Date + d.Timer.Duration + d.Timer.Cycle
	case d.Kind == EventCompensation && d.ActivityRef != "":
		text += " of " + d.ActivityRef
	}
	if !e.Interrupting {
		text += " (non-interrupting)"
	}
	return text
}
