package core

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// The saved* types are a whole [Core] as plain data. References are keys;
// nodes are element ids of the owner's process version, which is compiled again from its XML.
// [Capture] writes the long lists apart, piece by piece; [Restore] reads them here.
type savedCore struct {
	Now         stamp            `json:"now"`
	Started     stamp            `json:"started"`
	LastKey     int64            `json:"lastKey"`
	Seq         int64            `json:"seq"`
	Random      []byte           `json:"random"`
	LastVersion map[string]int32 `json:"lastVersion"`
	Processes   []savedProcess   `json:"processes"`
	Instances   []savedInstance  `json:"instances,omitempty"`
	Elements    []savedElement   `json:"elements,omitempty"`
	Jobs        []savedJob       `json:"jobs,omitempty"`
	Incidents   []savedIncident  `json:"incidents,omitempty"`
	Variables   []savedVariable  `json:"variables,omitempty"`
	Tasks       []savedTask      `json:"tasks,omitempty"`
	Messages    []savedMessage   `json:"messages"`
	Starts      []savedSub       `json:"starts"` // open start event subscriptions, by process id in the order of their keys
	History     *savedHistory    `json:"history"`
}

type savedHistory struct {
	Limit int
	Age   time.Duration
	Ended []int64     // keys of process instances
	Timer *savedTimer `json:",omitempty"`
}

type savedTimer struct {
	Due stamp `json:"due"`
	Seq int64 `json:"seq"`
}

type savedProcess struct {
	Key, Deployment int64
	ID, Resource    string
	Version         int32
	XML             []byte
	At              stamp
	Deleted         bool `json:",omitempty"`
}

type savedInstance struct {
	Key, Process int64
	Caller       int64    `json:",omitempty"`
	Depth        int      `json:",omitempty"`
	Lock         string   `json:",omitempty"`
	CorrKey      string   `json:",omitempty"`
	Start        string   `json:",omitempty"`
	StartDoc     Doc      `json:",omitempty"`
	Starts       []string `json:",omitempty"`
	StopAfter    []string `json:",omitempty"`
	Tags         []string `json:",omitempty"`
}

type savedElement struct {
	Key, Instance int64
	Process       int64 `json:",omitempty"` // of the node, when it is not the instance's: ended before a migration
	Node          string
	Parent        int64 `json:",omitempty"`
	State         State
	Start, End    stamp
	Body, Inner   bool             `json:",omitempty"`
	Doc           Doc              `json:",omitempty"`
	Waiting       int              `json:",omitempty"`
	Joins         map[string][]int `json:",omitempty"`
	Interrupted   bool             `json:",omitempty"`
	Comps         []savedComp      `json:",omitempty"`
	Loop          *savedLoop       `json:",omitempty"`
	LoopIndex     int              `json:",omitempty"`
	Subs          []savedSub       `json:",omitempty"`
	Triggered     bool             `json:",omitempty"`
	EspStart      string           `json:",omitempty"`
	StartNodes    []string         `json:",omitempty"`
	Given         map[string]Doc   `json:",omitempty"`
	Throw         int64            `json:",omitempty"`
	Pending       int              `json:",omitempty"`
	Chosen        []int            `json:",omitempty"` // places among the node's outgoing flows
	LocalDoc      bool             `json:",omitempty"`
}

type savedComp struct {
	Node   string
	Inside []savedComp `json:",omitempty"`
}

type savedLoop struct {
	Total, Created, Completed, Terminated int
	Output                                []json.RawMessage `json:",omitempty"`
}

type savedSub struct {
	Key, Process  int64
	Node          string
	Name, CorrKey string      `json:",omitempty"`
	Timer         *savedTimer `json:",omitempty"`
	Due           stamp       `json:",omitzero"`
	Zone          string      `json:",omitempty"`
	ZoneOffset    int         `json:",omitempty"`
	Repeats       int         `json:",omitempty"`
	Months, Days  int         `json:",omitempty"`
	Every         int64       `json:",omitempty"`
	Cron          *savedCron  `json:",omitempty"`
}

type savedCron struct {
	Sec, Min, Hour, Dom, Month, Dow uint64
	AnyDom, AnyDow                  bool
}

type savedJob struct {
	Key, Element             int64
	Type                     string
	State                    JobState
	Retries                  int32
	Headers                  json.RawMessage `json:",omitempty"`
	Deadline                 stamp
	Worker, Error, ErrorCode string `json:",omitempty"`
	End                      stamp
	Recorded                 string
	Timer                    *savedTimer `json:",omitempty"`
}

type savedIncident struct {
	Key, Element int64
	Job          int64 `json:",omitempty"`
	Type         ErrorType
	Message      string
	Created      stamp
	Active       bool
	Op           op
}

type savedVariable struct {
	Key, Scope int64
	Name       string
	Value      json.RawMessage
}

type savedTask struct {
	Key, Element            int64
	State                   TaskState
	Assignee, Due, FollowUp string   `json:",omitempty"`
	Groups, Users           []string `json:",omitempty"`
	Priority                int32
	Created, Completed      stamp
}

type savedMessage struct {
	Key               int64
	Name, CorrKey, ID string
	Vars              Doc `json:",omitempty"`
	Deadline          stamp
	Taken             []string `json:",omitempty"`
	Timer             savedTimer
}

func saveTimer(t *timer) *savedTimer {
	if t == nil || t.index < 0 {
		return nil
	}
	return &savedTimer{stampOf(t.due), t.seq}
}

func saveProcess(p *Process) savedProcess {
	return savedProcess{Key: p.Key, Deployment: p.Deployment, ID: p.ID, Resource: p.Resource, Version: p.Version, XML: p.XML, At: stampOf(p.At), Deleted: p.Deleted}
}

func saveInstance(i *Instance) savedInstance {
	s := savedInstance{Key: i.Key, Process: i.Process.Key, Depth: i.Depth, Lock: i.lock, CorrKey: i.corrKey, StartDoc: i.startDoc, Starts: ids(i.starts), Start: idOf(i.start), StopAfter: i.stopAfter, Tags: i.tags}
	if i.Caller != nil {
		s.Caller = i.Caller.Key
	}
	if i.Root.ended() {
		s.Start, s.StartDoc, s.Starts, s.StopAfter = "", nil, nil, nil
	}
	return s
}

func idOf(n *Node) string {
	if n == nil {
		return ""
	}
	return n.ID
}

func ids(nodes []*Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.ID)
	}
	return out
}

// heldElement is an element instance at the moment of a capture: what never
// changes is read from it later, what changes is copied.
type heldElement struct {
	el      *Element
	node    *Node
	process int64 // of the node, when it is not the instance's
	state   State
	end     time.Time
	more    *savedElement // what only elements that have not ended hold; nil when there is nothing of it
}

func holdElement(e *Element) heldElement {
	h := heldElement{el: e, node: e.Node, state: e.State, end: e.End}
	if p := e.Node.Proc.Key; p != e.Inst.Process.Key {
		h.process = p
	}
	if e.ended() { // what is left there is never looked at again
		return h
	}
	plain := e.doc == nil && e.waiting == 0 && e.joins == nil && !e.interrupted && e.comps == nil && e.loop == nil && e.subs == nil && !e.triggered &&
		e.espStart == nil && e.startNodes == nil && e.given == nil && e.throw == nil && e.pending == 0 && e.chosen == nil && !e.localDoc
	if plain {
		return h
	}
	s := &savedElement{Doc: e.doc, Waiting: e.waiting, Interrupted: e.interrupted, Comps: saveComps(e.comps),
		Triggered: e.triggered, EspStart: idOf(e.espStart), StartNodes: ids(e.startNodes), Given: e.given, Pending: e.pending, LocalDoc: e.localDoc}
	for n, tokens := range e.joins {
		if s.Joins == nil {
			s.Joins = map[string][]int{}
		}
		s.Joins[n.ID] = slices.Clone(tokens)
	}
	if l := e.loop; l != nil {
		s.Loop = &savedLoop{l.total, l.created, l.completed, l.terminated, slices.Clone(l.output)}
	}
	for _, sub := range e.subs {
		if !sub.closed {
			s.Subs = append(s.Subs, saveSub(sub))
		}
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

// save reads nothing of the element that can change after the capture.
func (h heldElement) save() savedElement {
	var s savedElement
	if h.more != nil {
		s = *h.more
	}
	e := h.el
	s.Key, s.Instance, s.Process, s.Node, s.State = e.Key, e.Inst.Key, h.process, h.node.ID, h.state
	s.Start, s.End, s.Body, s.Inner = stampOf(e.Start), stampOf(h.end), e.Body, e.Inner
	if e.Parent != nil {
		s.Parent = e.Parent.Key
	}
	if h.state < Completed {
		s.LoopIndex = e.loopIndex
	}
	return s
}

func saveComps(list []*compensation) []savedComp {
	var out []savedComp
	for _, c := range list {
		out = append(out, savedComp{c.node.ID, saveComps(c.inside)})
	}
	return out
}

func saveSub(sub *Subscription) savedSub {
	f := sub.fire
	s := savedSub{Key: sub.Key, Process: sub.node.Proc.Key, Node: sub.node.ID, Name: sub.name, CorrKey: sub.corrKey, Timer: saveTimer(sub.timer),
		Repeats: f.repeats, Months: f.every.months, Days: f.every.days, Every: int64(f.every.d)}
	if !f.due.IsZero() {
		s.Due = stampOf(f.due)
		if zone, offset := f.due.Zone(); f.due.Location() != time.UTC {
			s.Zone, s.ZoneOffset = f.due.Location().String(), offset
			if strings.TrimSpace(s.Zone) == "" {
				s.Zone = "offset" + zone
			}
		}
	}
	if k := f.cron; k != nil {
		s.Cron = &savedCron{k.sec, k.min, k.hour, k.dom, k.month, k.dow, k.anyDom, k.anyDow}
	}
	return s
}

func saveJob(j *Job) savedJob {
	return savedJob{Key: j.Key, Element: j.El.Key, Type: j.Type, State: j.State, Retries: j.Retries, Headers: j.Headers, Deadline: stampOf(j.Deadline),
		Worker: j.Worker, Error: j.Error, ErrorCode: j.ErrorCode, End: stampOf(j.End), Recorded: j.Recorded, Timer: saveTimer(j.timer)}
}

func saveIncident(i *Incident) savedIncident {
	s := savedIncident{Key: i.Key, Element: i.El.Key, Type: i.Type, Message: i.Message, Created: stampOf(i.Created), Active: i.Active, Op: i.op}
	if i.Job != nil {
		s.Job = i.Job.Key
	}
	return s
}

func saveVariable(v *Variable) savedVariable {
	return savedVariable{v.Key, v.Scope.Key, v.Name, v.Value}
}

func saveTask(t *UserTask) savedTask {
	return savedTask{Key: t.Key, Element: t.El.Key, State: t.State, Assignee: t.Assignee, Due: t.Due, FollowUp: t.FollowUp, Groups: t.Groups, Users: t.Users,
		Priority: t.Priority, Created: stampOf(t.Created), Completed: stampOf(t.Completed)}
}

func saveMessage(m *Message) savedMessage {
	return savedMessage{Key: m.Key, Name: m.Name, CorrKey: m.CorrKey, ID: m.ID, Vars: m.Vars, Deadline: stampOf(m.Deadline),
		Taken: slices.Sorted(maps.Keys(m.taken)), Timer: *saveTimer(m.timer)}
}
