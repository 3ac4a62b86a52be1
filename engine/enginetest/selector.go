package enginetest

import (
	"fmt"
	"slices"
	"strings"
)

// The selectors of Camunda Process Test.
type (
	processSelector struct {
		ID string `json:"processDefinitionId" rule:"need"`
	}
	elementSelector struct {
		_ struct{} `rule:"any=elementId|elementName"`

		ID   string `json:"elementId"`
		Name string `json:"elementName"`
	}
	jobSelector struct {
		_ struct{} `rule:"any=jobType|elementId|processDefinitionId"`

		JobType   string `json:"jobType"`
		ElementID string `json:"elementId"`
		Process   string `json:"processDefinitionId"`
	}
	userTaskSelector struct {
		_ struct{} `rule:"any=elementId|taskName|processDefinitionId"`

		ElementID string `json:"elementId"`
		Name      string `json:"taskName"`
		Process   string `json:"processDefinitionId"`
	}
	incidentSelector struct {
		_ struct{} `rule:"any=elementId|processDefinitionId"`

		ElementID string `json:"elementId"`
		Process   string `json:"processDefinitionId"`
	}
)

// instance is the newest instance of the process.
func (s processSelector) instance(e *Env) (*Instance, error) {
	e.Settle()
	all := e.instances(s.ID)
	if len(all) == 0 {
		return nil, fmt.Errorf("process %q has no instance", s.ID)
	}
	return &Instance{env: e, key: all[len(all)-1].Key}, nil
}

// ids are the elements of the models that the selector means.
func (s elementSelector) ids(e *Env) ([]string, error) {
	var ids []string
	for _, m := range e.models {
		for _, el := range elements(m.defs) {
			if (s.ID == "" || el.ID == s.ID) && (s.Name == "" || strings.Join(strings.Fields(el.Name), " ") == strings.Join(strings.Fields(s.Name), " ")) {
				ids = append(ids, el.ID)
			}
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("no model has an element with elementId %q and elementName %q", s.ID, s.Name)
	}
	return ids, nil
}

func (s elementSelector) String() string {
	if s.ID != "" {
		return s.ID
	}
	return s.Name
}

type openJob struct {
	Key       key    `json:"jobKey"`
	Type      string `json:"type"`
	ElementID string `json:"elementId"`
	Process   string `json:"processDefinitionId"`
}

// job is the oldest open job that the selector means.
func (s jobSelector) job(e *Env) (openJob, error) {
	e.Settle()
	all := search[openJob](e, "/jobs/search", map[string]any{"state": map[string]any{"$in": []string{"CREATED", "FAILED", "TIMED_OUT", "RETRIES_UPDATED"}}})
	i := slices.IndexFunc(all, func(j openJob) bool {
		return (s.JobType == "" || j.Type == s.JobType) && (s.ElementID == "" || j.ElementID == s.ElementID) && (s.Process == "" || j.Process == s.Process)
	})
	if i < 0 {
		return openJob{}, fmt.Errorf("no open job for %+v", s)
	}
	return all[i], nil
}

// tasks are all user tasks that the selector means, oldest first.
func (s userTaskSelector) tasks(e *Env) []userTask {
	e.Settle()
	all := search[userTask](e, "/user-tasks/search", map[string]any{})
	return slices.DeleteFunc(all, func(u userTask) bool {
		return s.ElementID != "" && u.ElementID != s.ElementID || s.Name != "" && u.Name != s.Name || s.Process != "" && u.Process != s.Process
	})
}
