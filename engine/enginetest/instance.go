package enginetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func isGone(err error) bool { return strings.Contains(err.Error(), ": 404 ") }

// Instance is one process instance. What it wants and does not find ends the test.
type Instance struct {
	env *Env
	key key
}

// Key is the process instance key.
func (p *Instance) Key() int64 { return int64(p.key) }

// ElementInstance is one run of an element.
type ElementInstance struct {
	ElementID string `json:"elementId"`
	Type      string `json:"type"`
	State     string `json:"state"` // ACTIVE, COMPLETED or TERMINATED
	Incident  bool   `json:"hasIncident"`

	Key key    `json:"elementInstanceKey"`
	End string `json:"endDate"`
}

// Elements lists every element instance, in the order in which they were entered.
func (p *Instance) Elements() []ElementInstance {
	p.env.t.Helper()
	all := search[ElementInstance](p.env, "/element-instances/search", map[string]any{"processInstanceKey": p.key})
	slices.SortStableFunc(all, func(a, b ElementInstance) int { return int(a.Key - b.Key) })
	return all
}

func (p *Instance) in(state string) []string {
	var out []string
	for _, e := range p.Elements() {
		if e.State == state {
			out = append(out, e.ElementID)
		}
	}
	return out
}

// State is ACTIVE, COMPLETED or TERMINATED.
func (p *Instance) State() string {
	p.env.t.Helper()
	var out instanceItem
	p.env.must("GET", "/process-instances/"+itoa(int64(p.key)), nil, &out)
	return out.State
}

func (p *Instance) wantState(want string) *Instance {
	p.env.t.Helper()
	p.env.hold(func() string {
		if got := p.State(); got != want {
			return fmt.Sprintf("process instance is %s, want %s; %s", got, want, p.where())
		}
		return ""
	})
	return p
}

// where tells what the instance waits for.
func (p *Instance) where() string {
	s := fmt.Sprintf("active: %v", p.in("ACTIVE"))
	for _, i := range p.Incidents() {
		s += fmt.Sprintf("; incident at %s: %s: %s", i.ElementID, i.Type, i.Message)
	}
	var missing []string
	for _, j := range search[struct{ Type string }](p.env, "/jobs/search", map[string]any{"processInstanceKey": p.key, "state": "CREATED"}) {
		if p.env.mocks[j.Type] == nil && p.env.rest == nil && !slices.Contains(missing, j.Type) {
			missing = append(missing, j.Type)
		}
	}
	if len(missing) > 0 {
		s += fmt.Sprintf("; nobody serves %v: use Mock", missing)
	}
	return s
}

// WantCompleted wants the instance to have completed.
func (p *Instance) WantCompleted() *Instance { p.env.t.Helper(); return p.wantState("COMPLETED") }

// WantTerminated wants the instance to have been cancelled.
func (p *Instance) WantTerminated() *Instance { p.env.t.Helper(); return p.wantState("TERMINATED") }

// WantActive wants the instance to be active, in all these elements at least.
func (p *Instance) WantActive(elements ...string) *Instance {
	p.env.t.Helper()
	p.env.known(elements...)
	p.wantState("ACTIVE")
	p.env.hold(func() string {
		active := p.in("ACTIVE")
		for _, id := range elements {
			if !slices.Contains(active, id) {
				return fmt.Sprintf("element %q is not active; %s", id, p.where())
			}
		}
		return ""
	})
	return p
}

// Path lists the elements that completed, in the order in which they were entered; one that ran twice stands there twice.
func (p *Instance) Path() []string { p.env.t.Helper(); return p.in("COMPLETED") }

// WantPath wants these elements to have completed, entered in this order; others may stand between them.
func (p *Instance) WantPath(elements ...string) *Instance {
	p.env.t.Helper()
	p.env.known(elements...)
	p.env.hold(func() string { return inOrder("path", elements, p.Path()) })
	return p
}

func inOrder(what string, want, got []string) string {
	rest := got
	for _, id := range want {
		i := slices.Index(rest, id)
		if i < 0 {
			return fmt.Sprintf("%s: %q is not there, or not in order; want %v, got %v", what, id, want, got)
		}
		rest = rest[i+1:]
	}
	return ""
}

// WantNotReached wants none of these elements to have been entered.
func (p *Instance) WantNotReached(elements ...string) *Instance {
	p.env.t.Helper()
	p.env.known(elements...)
	p.env.Settle()
	for _, e := range p.Elements() {
		if slices.Contains(elements, e.ElementID) {
			p.env.t.Fatalf("enginetest: element %q was entered (%s), want it not to be", e.ElementID, e.State)
		}
	}
	return p
}

// WantElement wants n runs of an element in a state: ACTIVE, COMPLETED or TERMINATED.
func (p *Instance) WantElement(element, state string, n int) *Instance {
	p.env.t.Helper()
	p.env.known(element)
	p.env.hold(func() string {
		count := 0
		for _, e := range p.Elements() {
			if e.ElementID == element && e.State == state {
				count++
			}
		}
		if count != n {
			return fmt.Sprintf("element %q has %d runs that are %s, want %d; %s", element, count, state, n, p.where())
		}
		return ""
	})
	return p
}

// Compensated lists the compensation handlers that completed, in the order in which they were started. For a handler that is a
// subprocess these are the tasks in it.
func (p *Instance) Compensated() []string {
	p.env.t.Helper()
	var out []string
	for _, id := range p.Path() {
		if e := p.env.element(id); e != nil && e.Undoes() && e.Scope == nil && (e.ForCompensation || e.Task != nil) {
			out = append(out, id)
		}
	}
	return out
}

// WantCompensated wants exactly these compensation handlers to have run, in this order; none when there are none.
func (p *Instance) WantCompensated(handlers ...string) *Instance {
	p.env.t.Helper()
	p.env.known(handlers...)
	p.env.hold(func() string {
		if got := p.Compensated(); !slices.Equal(got, handlers) {
			return fmt.Sprintf("compensation handlers %v, want %v; %s", got, handlers, p.where())
		}
		return ""
	})
	return p
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Scope key    `json:"scopeKey"`
}

// Variables are those of the process instance itself, as JSON.
func (p *Instance) Variables() map[string]json.RawMessage {
	p.env.t.Helper()
	return p.scope(p.key)
}

func (p *Instance) scope(k key) map[string]json.RawMessage {
	p.env.t.Helper()
	out := map[string]json.RawMessage{}
	for _, v := range search[variable](p.env, "/variables/search?truncateValues=false", map[string]any{"processInstanceKey": p.key, "scopeKey": k}) {
		out[v.Name] = json.RawMessage(v.Value)
	}
	return out
}

// WantVariable wants a variable of the process instance to equal a value, compared as JSON.
func (p *Instance) WantVariable(name string, want any) *Instance {
	p.env.t.Helper()
	doc, err := json.Marshal(want)
	if err != nil {
		p.env.t.Fatalf("enginetest: wanted value of %s: %v", name, err)
	}
	p.env.hold(func() string { return differs(p.Variables(), name, doc) })
	return p
}

func differs(vars map[string]json.RawMessage, name string, want json.RawMessage) string {
	got, ok := vars[name]
	if !ok {
		return fmt.Sprintf("variable %s does not exist, want %s", name, want)
	}
	if !sameJSON(got, want) {
		return fmt.Sprintf("variable %s is %s, want %s", name, got, want)
	}
	return ""
}

// sameJSON compares two documents by value; numbers by their value, not their spelling.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// SetVariables sets variables of the process instance.
func (p *Instance) SetVariables(vars any) {
	p.env.t.Helper()
	p.env.must("PUT", "/element-instances/"+itoa(int64(p.key))+"/variables", map[string]any{"variables": p.env.object(vars)}, nil)
	p.env.Settle()
}

// Cancel cancels the instance from outside.
func (p *Instance) Cancel() {
	p.env.t.Helper()
	p.env.must("POST", "/process-instances/"+itoa(int64(p.key))+"/cancellation", map[string]any{}, nil)
	p.env.Settle()
}

// IncidentInfo is an open incident.
type IncidentInfo struct {
	ElementID string `json:"elementId"`
	Type      string `json:"errorType"` // for example JOB_NO_RETRIES, UNHANDLED_ERROR_EVENT
	Message   string `json:"errorMessage"`

	Key key `json:"incidentKey"`
	Job key `json:"jobKey"`
}

// Incidents lists the open incidents, oldest first.
func (p *Instance) Incidents() []IncidentInfo {
	p.env.t.Helper()
	return search[IncidentInfo](p.env, "/incidents/search", map[string]any{"processInstanceKey": p.key, "state": "ACTIVE"})
}

// WantNoIncidents wants no incident to be open.
func (p *Instance) WantNoIncidents() *Instance {
	p.env.t.Helper()
	p.env.hold(func() string {
		if len(p.Incidents()) > 0 {
			return "open incidents; " + p.where()
		}
		return ""
	})
	return p
}

// WantIncident wants an open incident at an element whose type or message contains text.
func (p *Instance) WantIncident(element, text string) *Instance {
	p.env.t.Helper()
	p.env.known(element)
	p.env.hold(func() string {
		for _, i := range p.Incidents() {
			if i.ElementID == element && strings.Contains(i.Type+": "+i.Message, text) {
				return ""
			}
		}
		return fmt.Sprintf("no incident at %q with %q; %s", element, text, p.where())
	})
	return p
}

// ResolveIncidents gives the jobs of all open incidents retries and resolves them.
func (p *Instance) ResolveIncidents(retries int32) {
	p.env.t.Helper()
	for _, i := range p.Incidents() {
		if i.Job != 0 {
			p.env.must("PATCH", "/jobs/"+itoa(int64(i.Job)), map[string]any{"changeset": map[string]any{"retries": retries}}, nil)
		}
		p.env.must("POST", "/incidents/"+itoa(int64(i.Key))+"/resolution", map[string]any{}, nil)
	}
	p.env.Settle()
}

type userTask struct {
	Key       key    `json:"userTaskKey"`
	ElementID string `json:"elementId"`
	Name      string `json:"name"`
	State     string `json:"state"`
	Assignee  string `json:"assignee"`
	Process   string `json:"processDefinitionId"`
	Priority  int32  `json:"priority"`

	Groups []string `json:"candidateGroups"`
}

// CompleteUserTask completes the open user task of an element. None ends the test.
func (p *Instance) CompleteUserTask(element string, vars any) {
	p.env.t.Helper()
	p.env.known(element)
	p.env.Settle()
	tasks := search[userTask](p.env, "/user-tasks/search", map[string]any{"processInstanceKey": p.key, "elementId": element, "state": "CREATED"})
	if len(tasks) == 0 {
		p.env.t.Fatalf("enginetest: no open user task %q; %s", element, p.where())
	}
	p.env.must("POST", "/user-tasks/"+itoa(int64(tasks[0].Key))+"/completion", map[string]any{"variables": p.env.object(vars)}, nil)
	p.env.Settle()
}

// elements lists all flow nodes of the executable processes, in document order.
func elements(defs *bpmn.Definitions) []*bpmn.Element {
	var out []*bpmn.Element
	var walk func(s *bpmn.Scope)
	walk = func(s *bpmn.Scope) {
		for _, e := range s.Elements {
			out = append(out, e)
			if e.Scope != nil {
				walk(e.Scope)
			}
		}
	}
	for _, p := range defs.Processes {
		if p.Executable {
			walk(&p.Scope)
		}
	}
	return out
}
