package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

type jobItem struct {
	CustomHeaders            json.RawMessage `json:"customHeaders"`
	Deadline                 *string         `json:"deadline"`
	DeniedReason             *string         `json:"deniedReason"`
	ElementID                string          `json:"elementId"`
	ElementInstanceKey       key             `json:"elementInstanceKey"`
	EndTime                  *string         `json:"endTime,omitempty"`
	ErrorCode                *string         `json:"errorCode"`
	ErrorMessage             *string         `json:"errorMessage"`
	HasFailedWithRetriesLeft bool            `json:"hasFailedWithRetriesLeft"`
	IsDenied                 *bool           `json:"isDenied"`
	JobKey                   key             `json:"jobKey"`
	Kind                     string          `json:"kind"`
	ListenerEventType        string          `json:"listenerEventType"`
	ProcessDefinitionID      string          `json:"processDefinitionId"`
	ProcessDefinitionKey     key             `json:"processDefinitionKey"`
	ProcessInstanceKey       key             `json:"processInstanceKey"`
	Retries                  int32           `json:"retries"`
	State                    string          `json:"state"`
	TenantID                 string          `json:"tenantId"`
	Type                     string          `json:"type"`
	Worker                   string          `json:"worker"`

	deadline, end time.Time
}

func viewJob(j *core.Job) jobItem {
	p := j.El.Inst.Process
	v := jobItem{
		CustomHeaders: j.Headers, Deadline: date(j.Deadline), ElementID: j.El.Node.ID, ElementInstanceKey: key(j.El.Key), EndTime: date(j.End),
		HasFailedWithRetriesLeft: j.FailedWithRetriesLeft(), JobKey: key(j.Key), Kind: "BPMN_ELEMENT",
		ListenerEventType: "UNSPECIFIED", ProcessDefinitionID: p.ID, ProcessDefinitionKey: key(p.Key), ProcessInstanceKey: key(j.El.Inst.Key),
		Retries: j.Retries, State: j.Recorded, TenantID: DefaultTenant, Type: j.Type, Worker: j.Worker, deadline: j.Deadline, end: j.End,
	}
	if j.Error != "" {
		text := j.Error
		v.ErrorMessage = &text
	}
	if j.ErrorCode != "" {
		code := j.ErrorCode
		v.ErrorCode = &code
	}
	return v
}

func textOf(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

var jobSearch = searchable[jobItem]{
	key: func(j jobItem) int64 { return int64(j.JobKey) },
	fields: map[string]field[jobItem]{
		"deadline":                 {kindDate, func(j jobItem) any { return j.deadline }},
		"deniedReason":             {kindString, func(jobItem) any { return nil }},
		"elementId":                {kindString, func(j jobItem) any { return j.ElementID }},
		"elementInstanceKey":       {kindKey, func(j jobItem) any { return int64(j.ElementInstanceKey) }},
		"endTime":                  {kindDate, func(j jobItem) any { return j.end }},
		"errorCode":                {kindString, func(j jobItem) any { return textOf(j.ErrorCode) }},
		"errorMessage":             {kindString, func(j jobItem) any { return textOf(j.ErrorMessage) }},
		"hasFailedWithRetriesLeft": {kindBool, func(j jobItem) any { return j.HasFailedWithRetriesLeft }},
		"isDenied":                 {kindBool, func(jobItem) any { return nil }},
		"jobKey":                   {kindKey, func(j jobItem) any { return int64(j.JobKey) }},
		"kind":                     {kindString, func(j jobItem) any { return j.Kind }},
		"listenerEventType":        {kindString, func(j jobItem) any { return j.ListenerEventType }},
		"processDefinitionId":      {kindString, func(j jobItem) any { return j.ProcessDefinitionID }},
		"processDefinitionKey":     {kindKey, func(j jobItem) any { return int64(j.ProcessDefinitionKey) }},
		"processInstanceKey":       {kindKey, func(j jobItem) any { return int64(j.ProcessInstanceKey) }},
		"retries":                  {kindInt, func(j jobItem) any { return int64(j.Retries) }},
		"state":                    {kindString, func(j jobItem) any { return j.State }},
		"tenantId":                 {kindString, func(j jobItem) any { return j.TenantID }},
		"type":                     {kindString, func(j jobItem) any { return j.Type }},
		"worker":                   {kindString, func(j jobItem) any { return j.Worker }},
	},
}

func (s *server) searchJobs(r *http.Request) (any, error) {
	p, err := jobSearch.prepare(r)
	if err != nil {
		return nil, err
	}
	g := gather[jobItem]{plan: p}
	s.broker.View(func(c *core.Core) {
		for j := range c.Jobs(p.instance) {
			g.add(viewJob(j))
		}
	})
	return g.answer()
}
