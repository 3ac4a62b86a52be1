package rest

import (
	"net/http"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

type userTaskItem struct {
	UserTaskKey              key               `json:"userTaskKey"`
	Name                     string            `json:"name"`
	State                    string            `json:"state"`
	Assignee                 *string           `json:"assignee,omitempty"`
	ElementID                string            `json:"elementId"`
	ElementInstanceKey       key               `json:"elementInstanceKey"`
	CandidateGroups          []string          `json:"candidateGroups"`
	CandidateUsers           []string          `json:"candidateUsers"`
	ProcessDefinitionID      string            `json:"processDefinitionId"`
	ProcessDefinitionKey     key               `json:"processDefinitionKey"`
	ProcessDefinitionVersion int32             `json:"processDefinitionVersion"`
	ProcessName              string            `json:"processName"`
	ProcessInstanceKey       key               `json:"processInstanceKey"`
	CreationDate             string            `json:"creationDate"`
	CompletionDate           *string           `json:"completionDate,omitempty"`
	DueDate                  *string           `json:"dueDate,omitempty"`
	FollowUpDate             *string           `json:"followUpDate,omitempty"`
	Priority                 int32             `json:"priority"`
	CustomHeaders            map[string]string `json:"customHeaders"`
	TenantID                 string            `json:"tenantId"`

	created, completed time.Time
}

func viewUserTask(t *core.UserTask) userTaskItem {
	e, p := t.El, t.El.Inst.Process
	v := userTaskItem{
		UserTaskKey: key(t.Key), Name: e.Node.Name, State: string(t.State), Assignee: textPtr(t.Assignee), ElementID: e.Node.ID,
		ElementInstanceKey: key(e.Key), CandidateGroups: list(t.Groups), CandidateUsers: list(t.Users), ProcessDefinitionID: p.ID,
		ProcessDefinitionKey: key(p.Key), ProcessDefinitionVersion: p.Version, ProcessName: p.DisplayName(), ProcessInstanceKey: key(e.Inst.Key),
		CreationDate: core.Date(t.Created), CompletionDate: date(t.Completed), DueDate: textPtr(t.Due), FollowUpDate: textPtr(t.FollowUp),
		Priority: t.Priority, CustomHeaders: e.Node.Headers(), TenantID: DefaultTenant, created: t.Created, completed: t.Completed,
	}
	if v.Name == "" {
		v.Name = e.Node.ID
	}
	return v
}

// dateOf reads a date that a model or a client has given; zero when it is none.
func dateOf(s *string) time.Time {
	if s == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, *s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func textPtr(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

var userTaskSearch = searchable[userTaskItem]{
	key: func(t userTaskItem) int64 { return int64(t.UserTaskKey) },
	fields: map[string]field[userTaskItem]{
		"userTaskKey":          {kindKey, func(t userTaskItem) any { return int64(t.UserTaskKey) }},
		"name":                 {kindString, func(t userTaskItem) any { return t.Name }},
		"state":                {kindString, func(t userTaskItem) any { return t.State }},
		"assignee":             {kindString, func(t userTaskItem) any { return textOf(t.Assignee) }},
		"elementId":            {kindString, func(t userTaskItem) any { return t.ElementID }},
		"elementInstanceKey":   {kindKey, func(t userTaskItem) any { return int64(t.ElementInstanceKey) }},
		"processDefinitionId":  {kindString, func(t userTaskItem) any { return t.ProcessDefinitionID }},
		"processDefinitionKey": {kindKey, func(t userTaskItem) any { return int64(t.ProcessDefinitionKey) }},
		"processInstanceKey":   {kindKey, func(t userTaskItem) any { return int64(t.ProcessInstanceKey) }},
		"creationDate":         {kindDate, func(t userTaskItem) any { return t.created }},
		"completionDate":       {kindDate, func(t userTaskItem) any { return t.completed }},
		"dueDate":              {kindDate, func(t userTaskItem) any { return dateOf(t.DueDate) }},
		"followUpDate":         {kindDate, func(t userTaskItem) any { return dateOf(t.FollowUpDate) }},
		"candidateGroup":       {kindString, func(t userTaskItem) any { return t.CandidateGroups }},
		"candidateUser":        {kindString, func(t userTaskItem) any { return t.CandidateUsers }},
		"priority":             {kindInt, func(t userTaskItem) any { return int64(t.Priority) }},
		"tenantId":             {kindString, func(t userTaskItem) any { return t.TenantID }},
	},
}

func (s *server) searchUserTasks(r *http.Request) (any, error) {
	var q query
	if err := read(r, &q, true); err != nil {
		return nil, err
	}
	ofInstance, err := variableFilter(q.Filter, "processInstanceVariables")
	if err != nil {
		return nil, err
	}
	local, err := variableFilter(q.Filter, "localVariables")
	if err != nil {
		return nil, err
	}
	tagged, err := tagFilter(q.Filter)
	if err != nil {
		return nil, err
	}
	p, err := userTaskSearch.plan(q)
	if err != nil {
		return nil, err
	}
	g := gather[userTaskItem]{plan: p}
	s.broker.View(func(c *core.Core) {
		for t := range c.UserTasks() {
			if ofInstance(t.El.Inst.Root) && local(t.El) && (tagged == nil || tagged(t.El.Inst)) {
				g.add(viewUserTask(t))
			}
		}
	})
	return g.answer()
}

func (s *server) getUserTask(r *http.Request) (any, error) {
	k, err := pathKey(r, "userTaskKey")
	if err != nil {
		return nil, err
	}
	var out *userTaskItem
	s.broker.View(func(c *core.Core) {
		if t := c.UserTask(k); t != nil {
			v := viewUserTask(t)
			out = &v
		}
	})
	if out == nil {
		return nil, missing("User Task", k)
	}
	return out, nil
}

func (s *server) completeUserTask(r *http.Request) (any, error) {
	k, err := pathKey(r, "userTaskKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		Variables vars   `json:"variables"`
		Action    string `json:"action"`
	}
	if err := read(r, &in, true); err != nil {
		return nil, err
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.CompleteUserTask(k, in.Variables.doc) })
}

func (s *server) assignUserTask(r *http.Request) (any, error) {
	k, err := pathKey(r, "userTaskKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		Assignee      string `json:"assignee"`
		AllowOverride *bool  `json:"allowOverride"`
		Action        string `json:"action"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if in.Assignee == "" {
		return nil, problemf(http.StatusBadRequest, "No assignee provided.")
	}
	override := in.AllowOverride == nil || *in.AllowOverride
	return nil, s.broker.Do(func(c *core.Core) error { return c.AssignUserTask(k, in.Assignee, override) })
}

func (s *server) unassignUserTask(r *http.Request) (any, error) {
	k, err := pathKey(r, "userTaskKey")
	if err != nil {
		return nil, err
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.AssignUserTask(k, "", true) })
}
