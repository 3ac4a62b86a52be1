package rest

import (
	"net/http"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

type incidentItem struct {
	IncidentKey          key    `json:"incidentKey"`
	ProcessDefinitionID  string `json:"processDefinitionId"`
	ProcessDefinitionKey key    `json:"processDefinitionKey"`
	ProcessInstanceKey   key    `json:"processInstanceKey"`
	ElementID            string `json:"elementId"`
	ElementInstanceKey   key    `json:"elementInstanceKey"`
	JobKey               *key   `json:"jobKey,omitempty"`
	ErrorType            string `json:"errorType"`
	ErrorMessage         string `json:"errorMessage"`
	CreationTime         string `json:"creationTime"`
	State                string `json:"state"`
	TenantID             string `json:"tenantId"`

	created time.Time
}

func viewIncident(i *core.Incident) incidentItem {
	p := i.El.Inst.Process
	v := incidentItem{
		IncidentKey: key(i.Key), ProcessDefinitionID: p.ID, ProcessDefinitionKey: key(p.Key), ProcessInstanceKey: key(i.El.Inst.Key),
		ElementID: i.El.Node.ID, ElementInstanceKey: key(i.El.Key), ErrorType: string(i.Type), ErrorMessage: i.Message,
		CreationTime: core.Date(i.Created), State: "RESOLVED", TenantID: DefaultTenant, created: i.Created,
	}
	if i.Active {
		v.State = "ACTIVE"
	}
	if i.Job != nil {
		k := key(i.Job.Key)
		v.JobKey = &k
	}
	return v
}

var incidentSearch = searchable[incidentItem]{
	key: func(i incidentItem) int64 { return int64(i.IncidentKey) },
	fields: map[string]field[incidentItem]{
		"incidentKey":          {kindKey, func(i incidentItem) any { return int64(i.IncidentKey) }},
		"processDefinitionId":  {kindString, func(i incidentItem) any { return i.ProcessDefinitionID }},
		"processDefinitionKey": {kindKey, func(i incidentItem) any { return int64(i.ProcessDefinitionKey) }},
		"processInstanceKey":   {kindKey, func(i incidentItem) any { return int64(i.ProcessInstanceKey) }},
		"elementId":            {kindString, func(i incidentItem) any { return i.ElementID }},
		"elementInstanceKey":   {kindKey, func(i incidentItem) any { return int64(i.ElementInstanceKey) }},
		"jobKey":               {kindKey, func(i incidentItem) any { return keyOf(i.JobKey) }},
		"errorType":            {kindString, func(i incidentItem) any { return i.ErrorType }},
		"errorMessage":         {kindString, func(i incidentItem) any { return i.ErrorMessage }},
		"creationTime":         {kindDate, func(i incidentItem) any { return i.created }},
		"state":                {kindString, func(i incidentItem) any { return i.State }},
		"tenantId":             {kindString, func(i incidentItem) any { return i.TenantID }},
	},
	plain: map[string]bool{
		"incidentKey": true, "processDefinitionId": true, "processDefinitionKey": true, "processInstanceKey": true, "elementId": true,
		"elementInstanceKey": true, "jobKey": true, "errorType": true, "errorMessage": true, "tenantId": true,
	},
}

func (s *server) incidents(p *plan[incidentItem], of int64) (any, error) {
	g := gather[incidentItem]{plan: p}
	s.broker.View(func(c *core.Core) {
		for i := range c.Incidents(of) {
			g.add(viewIncident(i))
		}
	})
	return g.answer()
}

func (s *server) searchIncidents(r *http.Request) (any, error) {
	p, err := incidentSearch.prepare(r)
	if err != nil {
		return nil, err
	}
	return s.incidents(p, p.instance)
}

func (s *server) searchInstanceIncidents(r *http.Request) (any, error) {
	k, err := pathKey(r, "processInstanceKey")
	if err != nil {
		return nil, err
	}
	p, err := incidentSearch.prepare(r)
	if err != nil {
		return nil, err
	}
	known := false
	s.broker.View(func(c *core.Core) { known = c.Instance(k) != nil })
	if !known {
		return nil, missing("Process Instance", k)
	}
	return s.incidents(p, k)
}

func (s *server) getIncident(r *http.Request) (any, error) {
	k, err := pathKey(r, "incidentKey")
	if err != nil {
		return nil, err
	}
	var out *incidentItem
	s.broker.View(func(c *core.Core) {
		if i := c.Incident(k); i != nil {
			v := viewIncident(i)
			out = &v
		}
	})
	if out == nil {
		return nil, missing("Incident", k)
	}
	return out, nil
}

func (s *server) resolveIncident(r *http.Request) (any, error) {
	k, err := pathKey(r, "incidentKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		OperationReference number `json:"operationReference"`
	}
	if err := read(r, &in, true); err != nil {
		return nil, err
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.ResolveIncident(k) })
}
