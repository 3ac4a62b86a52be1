package rest

import (
	"context"
	"encoding/json"
	"net/http"
)

// Filter is the filter of a search: plain equality by field name, or an operator object such as {"$in": […]}. Keys as [Key].
type Filter map[string]any

// Sort orders a search. Desc = descending.
type Sort struct {
	Field string
	Desc  bool
}

// Query is one page of a search. Limit 0 = 100. After is the EndCursor of the page before.
type Query struct {
	Filter Filter
	Sort   []Sort
	Limit  int
	After  string
}

// Page is one page of results.
type Page[T any] struct {
	Items []T
	Total int64  // capped by the server
	After string // cursor for the next page, "" at the end
}

func search[T any](ctx context.Context, c *Client, path string, q Query) (Page[T], error) {
	type order struct {
		Field string `json:"field"`
		Order string `json:"order"`
	}
	body := map[string]any{}
	if len(q.Filter) > 0 {
		body["filter"] = q.Filter
	}
	if len(q.Sort) > 0 {
		var s []order
		for _, o := range q.Sort {
			dir := "ASC"
			if o.Desc {
				dir = "DESC"
			}
			s = append(s, order{o.Field, dir})
		}
		body["sort"] = s
	}
	page := map[string]any{"limit": 100}
	if q.Limit > 0 {
		page["limit"] = q.Limit
	}
	if q.After != "" {
		page["after"] = q.After
	}
	body["page"] = page
	var out struct {
		Items []T
		Page  struct {
			TotalItems int64
			EndCursor  string
		}
	}
	if err := c.do(ctx, http.MethodPost, path, body, &out); err != nil {
		return Page[T]{}, err
	}
	p := Page[T]{Items: out.Items, Total: out.Page.TotalItems}
	if limit, _ := page["limit"].(int); len(out.Items) >= limit {
		p.After = out.Page.EndCursor
	}
	return p, nil
}

// ElementInstance is one run of an element. State is ACTIVE, COMPLETED or TERMINATED.
type ElementInstance struct {
	ElementInstanceKey   Key    `json:"elementInstanceKey"`
	ProcessInstanceKey   Key    `json:"processInstanceKey"`
	ProcessDefinitionKey Key    `json:"processDefinitionKey"`
	ProcessDefinitionID  string `json:"processDefinitionId"`
	ElementID            string `json:"elementId"`
	ElementName          string `json:"elementName"`
	Type                 string `json:"type"`
	State                string `json:"state"`
	StartDate            string `json:"startDate"`
	EndDate              string `json:"endDate"`
	HasIncident          bool   `json:"hasIncident"`
	IncidentKey          Key    `json:"incidentKey"`
}

// ElementInstance gives one element instance. See [IsNotFound].
func (c *Client) ElementInstance(ctx context.Context, key int64) (ElementInstance, error) {
	var e ElementInstance
	err := c.do(ctx, http.MethodGet, keyPath("/element-instances/%s", key), nil, &e)
	return e, err
}

// SearchElementInstances searches element instances.
func (c *Client) SearchElementInstances(ctx context.Context, q Query) (Page[ElementInstance], error) {
	return search[ElementInstance](ctx, c, "/element-instances/search", q)
}

// ProcessInstance is a process instance. State is ACTIVE, COMPLETED or TERMINATED.
type ProcessInstance struct {
	ProcessInstanceKey       Key    `json:"processInstanceKey"`
	ProcessDefinitionID      string `json:"processDefinitionId"`
	ProcessDefinitionName    string `json:"processDefinitionName"`
	ProcessDefinitionVersion int32  `json:"processDefinitionVersion"`
	ProcessDefinitionKey     Key    `json:"processDefinitionKey"`
	StartDate                string `json:"startDate"`
	EndDate                  string `json:"endDate"`
	State                    string `json:"state"`
	HasIncident              bool   `json:"hasIncident"`
	ParentProcessInstanceKey Key    `json:"parentProcessInstanceKey"`
}

// ProcessInstance gives one process instance.
func (c *Client) ProcessInstance(ctx context.Context, key int64) (ProcessInstance, error) {
	var p ProcessInstance
	err := c.do(ctx, http.MethodGet, keyPath("/process-instances/%s", key), nil, &p)
	return p, err
}

// SearchProcessInstances searches process instances.
func (c *Client) SearchProcessInstances(ctx context.Context, q Query) (Page[ProcessInstance], error) {
	return search[ProcessInstance](ctx, c, "/process-instances/search", q)
}

// Incident is an incident. State is ACTIVE, MIGRATED, RESOLVED or PENDING.
type Incident struct {
	IncidentKey          Key    `json:"incidentKey"`
	ProcessDefinitionID  string `json:"processDefinitionId"`
	ProcessDefinitionKey Key    `json:"processDefinitionKey"`
	ProcessInstanceKey   Key    `json:"processInstanceKey"`
	ElementID            string `json:"elementId"`
	ElementInstanceKey   Key    `json:"elementInstanceKey"`
	JobKey               Key    `json:"jobKey"`
	ErrorType            string `json:"errorType"`
	ErrorMessage         string `json:"errorMessage"`
	CreationTime         string `json:"creationTime"`
	State                string `json:"state"`
}

// Incident gives one incident.
func (c *Client) Incident(ctx context.Context, key int64) (Incident, error) {
	var i Incident
	err := c.do(ctx, http.MethodGet, keyPath("/incidents/%s", key), nil, &i)
	return i, err
}

// SearchIncidents searches incidents. In 8.8 its filter takes plain equality only.
func (c *Client) SearchIncidents(ctx context.Context, q Query) (Page[Incident], error) {
	return search[Incident](ctx, c, "/incidents/search", q)
}

// ResolveIncident resolves an incident; its job must have retries.
func (c *Client) ResolveIncident(ctx context.Context, key int64) error {
	return c.do(ctx, http.MethodPost, keyPath("/incidents/%s/resolution", key), map[string]any{}, nil)
}

// Job is a job. State is CREATED, COMPLETED, FAILED, RETRIES_UPDATED, TIMED_OUT, CANCELED, ERROR_THROWN or MIGRATED; an
// activated job shows the state it had before.
type Job struct {
	JobKey               Key               `json:"jobKey"`
	Type                 string            `json:"type"`
	Worker               string            `json:"worker"`
	State                string            `json:"state"`
	Kind                 string            `json:"kind"`
	Retries              int32             `json:"retries"`
	ErrorCode            string            `json:"errorCode"`
	ErrorMessage         string            `json:"errorMessage"`
	Deadline             string            `json:"deadline"`
	EndTime              string            `json:"endTime"`
	CustomHeaders        map[string]string `json:"customHeaders"`
	ProcessDefinitionID  string            `json:"processDefinitionId"`
	ProcessDefinitionKey Key               `json:"processDefinitionKey"`
	ProcessInstanceKey   Key               `json:"processInstanceKey"`
	ElementID            string            `json:"elementId"`
	ElementInstanceKey   Key               `json:"elementInstanceKey"`
}

// SearchJobs searches jobs.
func (c *Client) SearchJobs(ctx context.Context, q Query) (Page[Job], error) {
	return search[Job](ctx, c, "/jobs/search", q)
}

// Variable is a variable; Value is JSON text.
type Variable struct {
	VariableKey        Key    `json:"variableKey"`
	Name               string `json:"name"`
	Value              string `json:"value"`
	ScopeKey           Key    `json:"scopeKey"`
	ProcessInstanceKey Key    `json:"processInstanceKey"`
	IsTruncated        bool   `json:"isTruncated"`
}

// SearchVariables searches variables; values may be cut by the server.
func (c *Client) SearchVariables(ctx context.Context, q Query) (Page[Variable], error) {
	return search[Variable](ctx, c, "/variables/search", q)
}

// UserTask is a native user task. State is CREATED, COMPLETED, CANCELED and others.
type UserTask struct {
	UserTaskKey         Key    `json:"userTaskKey"`
	State               string `json:"state"`
	Name                string `json:"name"`
	Assignee            string `json:"assignee"`
	ElementID           string `json:"elementId"`
	ElementInstanceKey  Key    `json:"elementInstanceKey"`
	ProcessDefinitionID string `json:"processDefinitionId"`
	ProcessInstanceKey  Key    `json:"processInstanceKey"`
	CreationDate        string `json:"creationDate"`
	CompletionDate      string `json:"completionDate"`
}

// SearchUserTasks searches user tasks.
func (c *Client) SearchUserTasks(ctx context.Context, q Query) (Page[UserTask], error) {
	return search[UserTask](ctx, c, "/user-tasks/search", q)
}

// CompleteUserTask completes a user task with variables, nil = none.
func (c *Client) CompleteUserTask(ctx context.Context, key int64, variables map[string]any) error {
	body := map[string]any{}
	if variables != nil {
		body["variables"] = variables
	}
	return c.do(ctx, http.MethodPost, keyPath("/user-tasks/%s/completion", key), body, nil)
}

// ProcessDefinition is a deployed process.
type ProcessDefinition struct {
	ProcessDefinitionKey Key    `json:"processDefinitionKey"`
	ProcessDefinitionID  string `json:"processDefinitionId"`
	Name                 string `json:"name"`
	ResourceName         string `json:"resourceName"`
	Version              int32  `json:"version"`
}

// SearchProcessDefinitions searches deployed processes.
func (c *Client) SearchProcessDefinitions(ctx context.Context, q Query) (Page[ProcessDefinition], error) {
	return search[ProcessDefinition](ctx, c, "/process-definitions/search", q)
}

// ProcessXML gives the BPMN file of a process definition; nil when there is none.
func (c *Client) ProcessXML(ctx context.Context, key int64) ([]byte, error) {
	return c.raw(ctx, http.MethodGet, keyPath("/process-definitions/%s/xml", key), nil)
}

// CancelProcessInstance cancels a process instance.
func (c *Client) CancelProcessInstance(ctx context.Context, key int64) error {
	return c.do(ctx, http.MethodPost, keyPath("/process-instances/%s/cancellation", key), map[string]any{}, nil)
}

// Topology gives the cluster's topology as the API says it.
func (c *Client) Topology(ctx context.Context) (json.RawMessage, error) {
	return c.raw(ctx, http.MethodGet, "/topology", nil)
}

// ElementState gives the state of an element instance, "" when it is not found (yet). It makes the client a worker.Elements.
func (c *Client) ElementState(ctx context.Context, key int64) (string, error) {
	e, err := c.ElementInstance(ctx, key)
	if IsNotFound(err) {
		return "", nil
	}
	return e.State, err
}

// JobState gives the state of a job as the engine's history has it (CREATED, COMPLETED, FAILED, CANCELED, ERROR_THROWN, ...), "" when it
// is not found (yet). It makes the client a worker.JobStates.
func (c *Client) JobState(ctx context.Context, key int64) (string, error) {
	p, err := c.SearchJobs(ctx, Query{Filter: Filter{"jobKey": Key(key)}, Limit: 1})
	if err != nil || len(p.Items) == 0 {
		return "", err
	}
	return p.Items[0].State, nil
}
