package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

type instanceItem struct {
	ProcessInstanceKey          key      `json:"processInstanceKey"`
	ProcessDefinitionID         string   `json:"processDefinitionId"`
	ProcessDefinitionName       string   `json:"processDefinitionName"`
	ProcessDefinitionVersion    int32    `json:"processDefinitionVersion"`
	ProcessDefinitionVersionTag *string  `json:"processDefinitionVersionTag,omitempty"`
	ProcessDefinitionKey        key      `json:"processDefinitionKey"`
	StartDate                   string   `json:"startDate"`
	EndDate                     *string  `json:"endDate,omitempty"`
	State                       string   `json:"state"`
	HasIncident                 bool     `json:"hasIncident"`
	ParentProcessInstanceKey    *key     `json:"parentProcessInstanceKey,omitempty"`
	ParentElementInstanceKey    *key     `json:"parentElementInstanceKey,omitempty"`
	TenantID                    string   `json:"tenantId"`
	Tags                        []string `json:"tags"`

	start, end time.Time
}

func viewInstance(c *core.Core, i *core.Instance) instanceItem {
	p := i.Process
	v := instanceItem{
		ProcessInstanceKey: key(i.Key), ProcessDefinitionID: p.ID, ProcessDefinitionName: p.DisplayName(), ProcessDefinitionVersion: p.Version,
		ProcessDefinitionKey: key(p.Key), StartDate: core.Date(i.Root.Start), State: state(i.Root), HasIncident: c.HasIncident(i),
		TenantID: DefaultTenant, Tags: []string{}, start: i.Root.Start, end: i.Root.End,
	}
	v.EndDate = date(i.Root.End)
	if i.Caller != nil {
		pk, ek := key(i.Caller.Inst.Key), key(i.Caller.Key)
		v.ParentProcessInstanceKey, v.ParentElementInstanceKey = &pk, &ek
	}
	return v
}

func date(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := core.Date(t)
	return &s
}

func state(e *core.Element) string {
	switch e.State {
	case core.Completed:
		return "COMPLETED"
	case core.Terminated:
		return "TERMINATED"
	}
	return "ACTIVE"
}

func keyOf(k *key) any {
	if k == nil {
		return nil
	}
	return int64(*k)
}

var instanceSearch = searchable[instanceItem]{
	key: func(i instanceItem) int64 { return int64(i.ProcessInstanceKey) },
	fields: map[string]field[instanceItem]{
		"processInstanceKey":          {kindKey, func(i instanceItem) any { return int64(i.ProcessInstanceKey) }},
		"processDefinitionId":         {kindString, func(i instanceItem) any { return i.ProcessDefinitionID }},
		"processDefinitionName":       {kindString, func(i instanceItem) any { return i.ProcessDefinitionName }},
		"processDefinitionVersion":    {kindInt, func(i instanceItem) any { return int64(i.ProcessDefinitionVersion) }},
		"processDefinitionVersionTag": {kindString, func(instanceItem) any { return nil }},
		"processDefinitionKey":        {kindKey, func(i instanceItem) any { return int64(i.ProcessDefinitionKey) }},
		"parentProcessInstanceKey":    {kindKey, func(i instanceItem) any { return keyOf(i.ParentProcessInstanceKey) }},
		"parentElementInstanceKey":    {kindKey, func(i instanceItem) any { return keyOf(i.ParentElementInstanceKey) }},
		"startDate":                   {kindDate, func(i instanceItem) any { return i.start }},
		"endDate":                     {kindDate, func(i instanceItem) any { return i.end }},
		"state":                       {kindString, func(i instanceItem) any { return i.State }},
		"hasIncident":                 {kindBool, func(i instanceItem) any { return i.HasIncident }},
		"tenantId":                    {kindString, func(i instanceItem) any { return i.TenantID }},
	},
	or: true,
}

func (s *server) searchInstances(r *http.Request) (any, error) {
	var q query
	if err := read(r, &q, true); err != nil {
		return nil, err
	}
	byVariable, err := variableFilter(q.Filter, "variables")
	if err != nil {
		return nil, err
	}
	if err := emptyFilter(q.Filter, "tags"); err != nil {
		return nil, err
	}
	p, err := instanceSearch.plan(q)
	if err != nil {
		return nil, err
	}
	g := gather[instanceItem]{plan: p}
	s.broker.View(func(c *core.Core) {
		if one := c.Instance(p.instance); p.instance != 0 {
			if one != nil && byVariable(one.Root) {
				g.add(viewInstance(c, one))
			}
			return
		}
		for i := range c.Instances() {
			if byVariable(i.Root) {
				g.add(viewInstance(c, i))
			}
		}
	})
	return g.answer()
}

func (s *server) getInstance(r *http.Request) (any, error) {
	k, err := pathKey(r, "processInstanceKey")
	if err != nil {
		return nil, err
	}
	var out *instanceItem
	s.broker.View(func(c *core.Core) {
		if i := c.Instance(k); i != nil {
			v := viewInstance(c, i)
			out = &v
		}
	})
	if out == nil {
		return nil, missing("Process Instance", k)
	}
	return out, nil
}

func missing(what string, k int64) error {
	p := problemf(http.StatusNotFound, "%s with key '%d' not found", what, k)
	p.Title = "NOT_FOUND"
	return p
}

func (s *server) cancelInstance(r *http.Request) (any, error) {
	k, err := pathKey(r, "processInstanceKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		OperationReference number `json:"operationReference"`
	}
	if err := read(r, &in, true); err != nil {
		return nil, err
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.CancelInstance(k) })
}

func (s *server) createInstance(r *http.Request) (any, error) {
	var in struct {
		ProcessDefinitionID      string `json:"processDefinitionId"`
		ProcessDefinitionVersion *int32 `json:"processDefinitionVersion"`
		ProcessDefinitionKey     key    `json:"processDefinitionKey"`
		Variables                vars   `json:"variables"`
		TenantID                 string `json:"tenantId"`
		StartInstructions        []struct {
			ElementID string `json:"elementId"`
		} `json:"startInstructions"`
		RuntimeInstructions []json.RawMessage `json:"runtimeInstructions"`
		AwaitCompletion     bool              `json:"awaitCompletion"`
		FetchVariables      []string          `json:"fetchVariables"`
		RequestTimeout      number            `json:"requestTimeout"`
		Tags                []string          `json:"tags"`
		OperationReference  number            `json:"operationReference"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if err := tenant(in.TenantID); err != nil {
		return nil, err
	}
	switch {
	case in.ProcessDefinitionID == "" && in.ProcessDefinitionKey == 0:
		return nil, problemf(http.StatusBadRequest, "At least one of [processDefinitionId, processDefinitionKey] is required.")
	case in.ProcessDefinitionID != "" && in.ProcessDefinitionKey != 0:
		return nil, problemf(http.StatusBadRequest, "Only one of [processDefinitionId, processDefinitionKey] is allowed.")
	case len(in.RuntimeInstructions) > 0:
		return nil, problemf(http.StatusBadRequest, "runtimeInstructions are not supported by the embedded engine.")
	}
	req := core.Creation{ProcessKey: int64(in.ProcessDefinitionKey), ProcessID: in.ProcessDefinitionID, Version: -1, Vars: in.Variables.doc}
	if in.ProcessDefinitionVersion != nil {
		req.Version = *in.ProcessDefinitionVersion
	}
	for _, i := range in.StartInstructions {
		req.Start = append(req.Start, i.ElementID)
	}
	inst, variables, err := s.start(r, req, in.AwaitCompletion, in.FetchVariables, in.RequestTimeout.milliseconds())
	if err != nil {
		return nil, err
	}
	tags := in.Tags
	if tags == nil {
		tags = []string{}
	}
	p := inst.Process
	return struct {
		ProcessDefinitionID      string          `json:"processDefinitionId"`
		ProcessDefinitionVersion int32           `json:"processDefinitionVersion"`
		ProcessDefinitionKey     key             `json:"processDefinitionKey"`
		ProcessInstanceKey       key             `json:"processInstanceKey"`
		TenantID                 string          `json:"tenantId"`
		Variables                json.RawMessage `json:"variables"`
		Tags                     []string        `json:"tags"`
	}{p.ID, p.Version, key(p.Key), key(inst.Key), DefaultTenant, json.RawMessage(variables), tags}, nil
}

// start creates the instance and, if asked, waits for its result.
func (s *server) start(r *http.Request, req core.Creation, wait bool, fetch []string, d time.Duration) (*core.Instance, string, error) {
	if !wait {
		var inst *core.Instance
		err := s.broker.Do(func(c *core.Core) (err error) {
			inst, err = c.CreateInstance(req)
			return err
		})
		return inst, "{}", err
	}
	inst, a, err := s.broker.CreateAndAwait(req, fetch)
	if err != nil {
		return nil, "", err
	}
	defer s.broker.Forget(a)
	if d <= 0 {
		d = 10 * time.Second
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case v := <-a.Result():
		return inst, v, s.broker.Settled()
	case <-t.C:
		return nil, "", problemf(http.StatusGatewayTimeout, "Expected to handle request, but the process instance '%d' did not complete within %s", inst.Key, d)
	case <-r.Context().Done():
		return nil, "", r.Context().Err()
	case <-s.broker.Done():
		return nil, "", problemf(http.StatusServiceUnavailable, "the engine is closing")
	}
}
