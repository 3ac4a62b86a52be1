package rest

import (
	"net/http"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

type elementItem struct {
	ElementInstanceKey   key     `json:"elementInstanceKey"`
	ProcessInstanceKey   key     `json:"processInstanceKey"`
	ProcessDefinitionKey key     `json:"processDefinitionKey"`
	ProcessDefinitionID  string  `json:"processDefinitionId"`
	StartDate            string  `json:"startDate"`
	EndDate              *string `json:"endDate,omitempty"`
	ElementID            string  `json:"elementId"`
	ElementName          string  `json:"elementName"`
	Type                 string  `json:"type"`
	State                string  `json:"state"`
	HasIncident          bool    `json:"hasIncident"`
	IncidentKey          *key    `json:"incidentKey,omitempty"`
	TenantID             string  `json:"tenantId"`

	start, end time.Time
	scope      int64
}

func viewElement(e *core.Element) elementItem {
	p := e.Inst.Process
	v := elementItem{
		ElementInstanceKey: key(e.Key), ProcessInstanceKey: key(e.Inst.Key), ProcessDefinitionKey: key(p.Key), ProcessDefinitionID: p.ID,
		StartDate: core.Date(e.Start), EndDate: date(e.End), ElementID: e.Node.ID, ElementName: e.Node.Name, Type: e.ElementType(),
		State: state(e), TenantID: DefaultTenant, start: e.Start, end: e.End,
	}
	if v.ElementName == "" {
		v.ElementName = e.Node.ID
	}
	v.HasIncident = e.HasIncident()
	if inc := e.Incident(); inc != nil {
		k := key(inc.Key)
		v.IncidentKey = &k
	}
	if e.Parent != nil {
		v.scope = e.Parent.Key
	}
	return v
}

var elementSearch = searchable[elementItem]{
	key: func(e elementItem) int64 { return int64(e.ElementInstanceKey) },
	fields: map[string]field[elementItem]{
		"elementInstanceKey":      {kindKey, func(e elementItem) any { return int64(e.ElementInstanceKey) }},
		"processInstanceKey":      {kindKey, func(e elementItem) any { return int64(e.ProcessInstanceKey) }},
		"processDefinitionKey":    {kindKey, func(e elementItem) any { return int64(e.ProcessDefinitionKey) }},
		"processDefinitionId":     {kindString, func(e elementItem) any { return e.ProcessDefinitionID }},
		"elementId":               {kindString, func(e elementItem) any { return e.ElementID }},
		"elementName":             {kindString, func(e elementItem) any { return e.ElementName }},
		"type":                    {kindString, func(e elementItem) any { return e.Type }},
		"state":                   {kindString, func(e elementItem) any { return e.State }},
		"hasIncident":             {kindBool, func(e elementItem) any { return e.HasIncident }},
		"incidentKey":             {kindKey, func(e elementItem) any { return keyOf(e.IncidentKey) }},
		"startDate":               {kindDate, func(e elementItem) any { return e.start }},
		"endDate":                 {kindDate, func(e elementItem) any { return e.end }},
		"elementInstanceScopeKey": {kindKey, func(e elementItem) any { return e.scope }},
		"tenantId":                {kindString, func(e elementItem) any { return e.TenantID }},
	},
	plain: map[string]bool{
		"elementInstanceKey": true, "processInstanceKey": true, "processDefinitionKey": true, "processDefinitionId": true, "elementId": true,
		"elementName": true, "type": true, "incidentKey": true, "elementInstanceScopeKey": true, "tenantId": true,
	},
}

func (s *server) searchElements(r *http.Request) (any, error) {
	p, err := elementSearch.prepare(r)
	if err != nil {
		return nil, err
	}
	g := gather[elementItem]{plan: p}
	s.broker.View(func(c *core.Core) {
		for e := range c.Elements(p.instance) {
			g.add(viewElement(e))
		}
	})
	return g.answer()
}

func (s *server) getElement(r *http.Request) (any, error) {
	k, err := pathKey(r, "elementInstanceKey")
	if err != nil {
		return nil, err
	}
	var out *elementItem
	s.broker.View(func(c *core.Core) {
		if e := c.Element(k); e != nil && e.Parent != nil {
			v := viewElement(e)
			out = &v
		}
	})
	if out == nil {
		return nil, missing("Element Instance", k)
	}
	return out, nil
}

func (s *server) setVariables(r *http.Request) (any, error) {
	k, err := pathKey(r, "elementInstanceKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		Variables          *vars  `json:"variables"`
		Local              bool   `json:"local"`
		OperationReference number `json:"operationReference"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if in.Variables == nil {
		return nil, problemf(http.StatusBadRequest, "No variables provided.")
	}
	return nil, s.broker.Do(func(c *core.Core) error {
		_, err := c.SetVariables(k, in.Variables.doc, in.Local)
		return err
	})
}
