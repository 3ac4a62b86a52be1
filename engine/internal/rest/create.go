package rest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// maxTags is how many tags an instance can have.
const maxTags = 10

// runtimeInstruction acts on an instance while it runs; there is one type.
type runtimeInstruction struct {
	Type           string `json:"type"`
	AfterElementID string `json:"afterElementId"`
}

// checkTags returns the tags without repetitions. A tag begins with a letter;
// letters, digits, underscore, minus, colon and dot follow, 100 characters at most.
func checkTags(tags []string) ([]string, error) {
	tagged := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_:.-]{0,99}$`)
	var out []string
	for _, t := range tags {
		if !tagged.MatchString(t) {
			return nil, problemf(http.StatusBadRequest, "The provided tag '%s' is not valid. A tag begins with a letter, goes on with letters, digits, '_', '-', ':' or '.', and has at most 100 characters.", shorten(t))
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	if len(out) > maxTags {
		return nil, problemf(http.StatusBadRequest, "The number of tags is '%d' but must be at most %d.", len(out), maxTags)
	}
	return out, nil
}

func shorten(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

func stopsAfter(all []runtimeInstruction) ([]string, error) {
	var out []string
	for _, i := range all {
		switch {
		case i.Type != "" && i.Type != "TERMINATE_PROCESS_INSTANCE":
			return nil, problemf(http.StatusBadRequest, "Unexpected value '%s' for enum field 'type'. Use any of the following values: [TERMINATE_PROCESS_INSTANCE]", shorten(i.Type))
		case i.AfterElementID == "":
			return nil, problemf(http.StatusBadRequest, "No afterElementId provided.")
		}
		out = append(out, i.AfterElementID)
	}
	return out, nil
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
		RuntimeInstructions []runtimeInstruction `json:"runtimeInstructions"`
		AwaitCompletion     bool                 `json:"awaitCompletion"`
		FetchVariables      []string             `json:"fetchVariables"`
		RequestTimeout      number               `json:"requestTimeout"`
		Tags                []string             `json:"tags"`
		OperationReference  number               `json:"operationReference"`
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
	}
	tags, err := checkTags(in.Tags)
	if err != nil {
		return nil, err
	}
	stops, err := stopsAfter(in.RuntimeInstructions)
	if err != nil {
		return nil, err
	}
	req := core.Creation{ProcessKey: int64(in.ProcessDefinitionKey), ProcessID: in.ProcessDefinitionID, Version: -1, Vars: in.Variables.doc, StopAfter: stops, Tags: tags}
	if in.ProcessDefinitionVersion != nil {
		req.Version = *in.ProcessDefinitionVersion
	}
	for _, i := range in.StartInstructions {
		req.Start = append(req.Start, i.ElementID)
	}
	inst, p, variables, err := s.start(r, req, in.AwaitCompletion, in.FetchVariables, in.RequestTimeout.milliseconds())
	if err != nil {
		return nil, err
	}
	return struct {
		ProcessDefinitionID      string          `json:"processDefinitionId"`
		ProcessDefinitionVersion int32           `json:"processDefinitionVersion"`
		ProcessDefinitionKey     key             `json:"processDefinitionKey"`
		ProcessInstanceKey       key             `json:"processInstanceKey"`
		TenantID                 string          `json:"tenantId"`
		Variables                json.RawMessage `json:"variables"`
		Tags                     []string        `json:"tags"`
	}{p.ID, p.Version, key(p.Key), key(inst.Key), DefaultTenant, json.RawMessage(variables), list(tags)}, nil
}

// start creates the instance and, if asked, waits for its result.
func (s *server) start(r *http.Request, req core.Creation, wait bool, fetch []string, d time.Duration) (*core.Instance, *core.Process, string, error) {
	if !wait {
		var (
			inst *core.Instance
			p    *core.Process // a migration may change it as soon as the lock is free
		)
		err := s.broker.Do(func(c *core.Core) (err error) {
			if inst, err = c.CreateInstance(req); err == nil {
				p = inst.Process
			}
			return err
		})
		return inst, p, "{}", err
	}
	inst, a, err := s.broker.CreateAndAwait(req, fetch)
	if err != nil {
		return nil, nil, "", err
	}
	defer s.broker.Forget(a)
	if d <= 0 {
		d = 10 * time.Second
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case v := <-a.Result():
		return inst, inst.Process, v, s.broker.Settled()
	case <-t.C:
		return nil, nil, "", problemf(http.StatusGatewayTimeout, "Expected to handle request, but the process instance '%d' did not complete within %s", inst.Key, d)
	case <-r.Context().Done():
		return nil, nil, "", r.Context().Err()
	case <-s.broker.Done():
		return nil, nil, "", problemf(http.StatusServiceUnavailable, "the engine is closing")
	}
}
