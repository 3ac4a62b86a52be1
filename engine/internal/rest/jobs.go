package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

type activatedJob struct {
	Type                     string          `json:"type"`
	ProcessDefinitionID      string          `json:"processDefinitionId"`
	ProcessDefinitionVersion int32           `json:"processDefinitionVersion"`
	ElementID                string          `json:"elementId"`
	CustomHeaders            json.RawMessage `json:"customHeaders"`
	Worker                   string          `json:"worker"`
	Retries                  int32           `json:"retries"`
	Deadline                 int64           `json:"deadline"`
	Variables                json.RawMessage `json:"variables"`
	TenantID                 string          `json:"tenantId"`
	JobKey                   key             `json:"jobKey"`
	ProcessInstanceKey       key             `json:"processInstanceKey"`
	ProcessDefinitionKey     key             `json:"processDefinitionKey"`
	ElementInstanceKey       key             `json:"elementInstanceKey"`
	Kind                     string          `json:"kind"`
	ListenerEventType        string          `json:"listenerEventType"`
	Tags                     []string        `json:"tags"`
}

func (s *server) activate(r *http.Request) (any, error) {
	var in struct {
		Type              string   `json:"type"`
		Worker            string   `json:"worker"`
		Timeout           number   `json:"timeout"`
		MaxJobsToActivate int      `json:"maxJobsToActivate"`
		FetchVariable     []string `json:"fetchVariable"`
		RequestTimeout    number   `json:"requestTimeout"`
		TenantIDs         []string `json:"tenantIds"`
		TenantFilter      string   `json:"tenantFilter"` // clients of 8.9 send it; there is one tenant
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if f := in.TenantFilter; f != "" && f != "PROVIDED" && f != "ASSIGNED" {
		return nil, problemf(http.StatusBadRequest, "Unexpected value '%s' for enum field 'tenantFilter'. Use any of the following values: [PROVIDED, ASSIGNED]", f)
	}
	for _, id := range in.TenantIDs {
		if err := tenant(id); err != nil {
			return nil, err
		}
	}
	wait := in.RequestTimeout.milliseconds()
	if wait == 0 {
		wait = 10 * time.Second
	}
	jobs, err := s.broker.Activate(r.Context(), core.Activation{
		Type: in.Type, Worker: in.Worker, Timeout: in.Timeout.milliseconds(), Max: in.MaxJobsToActivate, Fetch: in.FetchVariable,
	}, wait)
	if err != nil {
		return nil, err
	}
	out := make([]activatedJob, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, activatedJob{
			j.Type, j.ProcessID, j.Version, j.ElementID, j.Headers, j.Worker, j.Retries, j.Deadline.UnixMilli(), json.RawMessage(j.Variables),
			DefaultTenant, key(j.Key), key(j.Instance), key(j.Process), key(j.Element), "BPMN_ELEMENT", "UNSPECIFIED", list(j.Tags),
		})
	}
	return map[string]any{"jobs": out}, nil
}

func (s *server) completeJob(r *http.Request) (any, error) {
	k, err := pathKey(r, "jobKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		Variables vars            `json:"variables"`
		Result    json.RawMessage `json:"result"`
	}
	if err := read(r, &in, true); err != nil {
		return nil, err
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.CompleteJob(k, in.Variables.doc) })
}

func (s *server) failJob(r *http.Request) (any, error) {
	k, err := pathKey(r, "jobKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		Retries      int32  `json:"retries"`
		ErrorMessage string `json:"errorMessage"`
		RetryBackOff number `json:"retryBackOff"`
		Variables    vars   `json:"variables"`
	}
	if err := read(r, &in, true); err != nil {
		return nil, err
	}
	return nil, s.broker.Do(func(c *core.Core) error {
		return c.FailJob(k, in.Retries, in.ErrorMessage, in.RetryBackOff.milliseconds(), in.Variables.doc)
	})
}

func (s *server) throwError(r *http.Request) (any, error) {
	k, err := pathKey(r, "jobKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		ErrorCode    string `json:"errorCode"`
		ErrorMessage string `json:"errorMessage"`
		Variables    vars   `json:"variables"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if in.ErrorCode == "" {
		return nil, problemf(http.StatusBadRequest, "No errorCode provided.")
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.ThrowError(k, in.ErrorCode, in.ErrorMessage, in.Variables.doc) })
}

func (s *server) updateJob(r *http.Request) (any, error) {
	k, err := pathKey(r, "jobKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		Changeset *struct {
			Retries *int32  `json:"retries"`
			Timeout *number `json:"timeout"`
		} `json:"changeset"`
		OperationReference number `json:"operationReference"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if in.Changeset == nil || (in.Changeset.Retries == nil && in.Changeset.Timeout == nil) {
		return nil, problemf(http.StatusBadRequest, "At least one of [retries, timeout] is required.")
	}
	return nil, s.broker.Do(func(c *core.Core) error {
		if t := in.Changeset.Timeout; t != nil {
			if err := c.UpdateTimeout(k, t.milliseconds()); err != nil {
				return err
			}
		}
		if n := in.Changeset.Retries; n != nil {
			return c.UpdateRetries(k, *n)
		}
		return nil
	})
}
