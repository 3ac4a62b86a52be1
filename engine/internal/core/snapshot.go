package core

import (
	"encoding/json"
	"maps"
	"slices"
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
	Muted  bool        `json:",omitempty"`
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

func saveComps(list []*compensation) []savedComp {
	var out []savedComp
	for _, c := range list {
		out = append(out, savedComp{c.node.ID, c.muted, saveComps(c.inside)})
	}
	return out
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

func saveTask(t *UserTask) savedTask {
	return savedTask{Key: t.Key, Element: t.El.Key, State: t.State, Assignee: t.Assignee, Due: t.Due, FollowUp: t.FollowUp, Groups: t.Groups, Users: t.Users,
		Priority: t.Priority, Created: stampOf(t.Created), Completed: stampOf(t.Completed)}
}

func saveMessage(m *Message) savedMessage {
	return savedMessage{Key: m.Key, Name: m.Name, CorrKey: m.CorrKey, ID: m.ID, Vars: m.Vars, Deadline: stampOf(m.Deadline),
		Taken: slices.Sorted(maps.Keys(m.taken)), Timer: *saveTimer(m.timer)}
}
