package rest

import (
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
	of         *core.Instance // only for filters, under the engine's lock
}

func viewInstance(i *core.Instance) instanceItem {
	p := i.Process
	v := instanceItem{
		ProcessInstanceKey: key(i.Key), ProcessDefinitionID: p.ID, ProcessDefinitionName: p.DisplayName(), ProcessDefinitionVersion: p.Version,
		ProcessDefinitionVersionTag: textPtr(p.Tag), ProcessDefinitionKey: key(p.Key), StartDate: core.Date(i.Root.Start), State: state(i.Root), HasIncident: i.HasIncident(),
		TenantID: DefaultTenant, Tags: list(i.Tags()), start: i.Root.Start, end: i.Root.End, of: i,
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
		"processDefinitionVersionTag": {kindString, func(i instanceItem) any { return textOf(i.ProcessDefinitionVersionTag) }},
		"processDefinitionKey":        {kindKey, func(i instanceItem) any { return int64(i.ProcessDefinitionKey) }},
		"parentProcessInstanceKey":    {kindKey, func(i instanceItem) any { return keyOf(i.ParentProcessInstanceKey) }},
		"parentElementInstanceKey":    {kindKey, func(i instanceItem) any { return keyOf(i.ParentElementInstanceKey) }},
		"startDate":                   {kindDate, func(i instanceItem) any { return i.start }},
		"endDate":                     {kindDate, func(i instanceItem) any { return i.end }},
		"state":                       {kindString, func(i instanceItem) any { return i.State }},
		"hasIncident":                 {kindBool, func(i instanceItem) any { return i.HasIncident }},
		"tenantId":                    {kindString, func(i instanceItem) any { return i.TenantID }},
	},
	or:    true,
	extra: instanceExtras,
}

func (s *server) searchInstances(r *http.Request) (any, error) {
	var q query
	if err := read(r, &q, true); err != nil {
		return nil, err
	}
	p, err := instanceSearch.plan(q)
	if err != nil {
		return nil, err
	}
	g := gather[instanceItem]{plan: p}
	s.broker.View(func(c *core.Core) {
		if one := c.Instance(p.instance); p.instance != 0 {
			if one != nil {
				g.add(viewInstance(one))
			}
			return
		}
		for i := range c.Instances() {
			g.add(viewInstance(i))
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
			v := viewInstance(i)
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
