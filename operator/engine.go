package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// reader reads the Orchestration Cluster REST API, version 2 of 8.8: searches and gets, nothing that changes anything.
type reader struct {
	base   string // without trailing slash and without /v2
	client *http.Client
}

const (
	engineTimeout = 10 * time.Second
	maxAnswer     = 32 << 20 // bytes of one answer
	maxElements   = 5000     // element instances of one process instance that are shown
)

func newReader(base string, client *http.Client) (*reader, error) {
	if base == "" {
		return nil, nil //nolint:nilnil // no engine is configured
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("operator: REST is %q, want the base URL of the engine's REST API, for example http://127.0.0.1:8080", base)
	}
	if client == nil {
		client = &http.Client{Timeout: engineTimeout}
	}
	return &reader{base: strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v2"), client: client}, nil
}

// found is the answer to a search.
type found[T any] struct {
	Items []T `json:"items"`
	Page  struct {
		TotalItems int `json:"totalItems"`
	} `json:"page"`
}

type object = map[string]any

// search asks for at most limit items.
func search[T any](ctx context.Context, r *reader, what string, filter object, sort []object, limit int) (found[T], error) {
	var out found[T]
	if r == nil {
		return out, ErrNoEngine
	}
	body := object{"filter": filter, "page": object{"from": 0, "limit": limit}}
	if sort != nil {
		body["sort"] = sort
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return out, err
	}
	text, err := r.do(ctx, http.MethodPost, "/v2/"+what+"/search", raw)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("engine: search %s: %w", what, err)
	}
	return out, nil
}

// do makes one call. A 404 is [ErrNotFound]; any other status than 200 is an error with the engine's own words.
func (r *reader) do(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("engine: %s %s: %w", method, path, err)
	case res.StatusCode == http.StatusNotFound:
		return nil, ErrNotFound
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("engine: %s %s: status %d: %s", method, path, res.StatusCode, detail(text))
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("engine: %s %s: answer is larger than %d bytes", method, path, maxAnswer)
	}
	return text, nil
}

// detail gives a problem document's detail, else the text itself, shortened.
func detail(text []byte) string {
	var problem struct{ Detail string }
	if json.Unmarshal(text, &problem) == nil && problem.Detail != "" {
		return shorten(problem.Detail, 300)
	}
	return shorten(strings.ToValidUTF8(string(text), "\uFFFD"), 300)
}

// incidentItem is an incident as the API shows it.
type incidentItem struct {
	IncidentKey         Key       `json:"incidentKey"`
	ProcessDefinitionID string    `json:"processDefinitionId"`
	ProcessInstanceKey  Key       `json:"processInstanceKey"`
	ElementID           string    `json:"elementId"`
	ElementInstanceKey  Key       `json:"elementInstanceKey"`
	JobKey              Key       `json:"jobKey"`
	ErrorType           string    `json:"errorType"`
	ErrorMessage        string    `json:"errorMessage"`
	CreationTime        time.Time `json:"creationTime"`
	State               string    `json:"state"`
}

func (d *Desk) viewIncident(i incidentItem) Incident {
	return Incident{
		Key: i.IncidentKey, Cluster: d.cfg.Cluster, State: i.State, ErrorType: i.ErrorType, Reason: i.ErrorMessage, CreatedAt: i.CreationTime,
		ProcessID: i.ProcessDefinitionID, ProcessInstanceKey: i.ProcessInstanceKey, ElementID: i.ElementID, ElementInstanceKey: i.ElementInstanceKey, JobKey: i.JobKey,
	}
}

func (d *Desk) searchIncidents(ctx context.Context, f IncidentFilter) (IncidentList, error) {
	filter := object{}
	if !f.All {
		filter["state"] = "ACTIVE"
	}
	if f.ProcessID != "" {
		filter["processDefinitionId"] = f.ProcessID
	}
	if f.ProcessInstanceKey != 0 {
		filter["processInstanceKey"] = f.ProcessInstanceKey
	}
	got, err := search[incidentItem](ctx, d.engine, "incidents", filter, []object{{"field": "creationTime", "order": "DESC"}}, f.Limit)
	if err != nil {
		return IncidentList{}, err
	}
	list := IncidentList{Total: max(got.Page.TotalItems, len(got.Items)), Incidents: []Incident{}}
	for _, i := range got.Items {
		list.Incidents = append(list.Incidents, d.viewIncident(i))
	}
	return list, nil
}

func (d *Desk) readIncident(ctx context.Context, key Key) (Incident, error) {
	if d.engine == nil {
		return Incident{}, ErrNoEngine
	}
	text, err := d.engine.do(ctx, http.MethodGet, "/v2/incidents/"+key.String(), nil)
	if err != nil {
		return Incident{}, err
	}
	var i incidentItem
	if err := json.Unmarshal(text, &i); err != nil {
		return Incident{}, fmt.Errorf("engine: incident: %w", err)
	}
	return d.viewIncident(i), nil
}

// jobTypes asks the engine for the types of jobs that our operations did not tell.
func (d *Desk) jobTypes(ctx context.Context, all []Incident) error {
	var keys []Key
	for _, i := range all {
		if i.JobType == "" && i.JobKey != 0 {
			keys = append(keys, i.JobKey)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	got, err := search[struct {
		JobKey Key    `json:"jobKey"`
		Type   string `json:"type"`
	}](ctx, d.engine, "jobs", object{"jobKey": object{"$in": keys}}, nil, len(keys))
	if err != nil {
		return err
	}
	for n := range all {
		for _, job := range got.Items {
			if all[n].JobKey == job.JobKey {
				all[n].JobType = job.Type
			}
		}
	}
	return nil
}

// variableNames lists what the element and its process instance hold. Values are dropped as they arrive.
func (d *Desk) variableNames(ctx context.Context, i Incident) ([]string, error) {
	got, err := search[struct {
		Name string `json:"name"`
	}](ctx, d.engine, "variables", object{
		"processInstanceKey": i.ProcessInstanceKey, "scopeKey": object{"$in": []Key{i.ElementInstanceKey, i.ProcessInstanceKey}},
	}, nil, 1000)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range got.Items {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (d *Desk) searchElements(ctx context.Context, instance Key) ([]Element, error) {
	got, err := search[struct {
		ElementInstanceKey Key        `json:"elementInstanceKey"`
		ElementID          string     `json:"elementId"`
		Type               string     `json:"type"`
		State              string     `json:"state"`
		IncidentKey        Key        `json:"incidentKey"`
		StartDate          time.Time  `json:"startDate"`
		EndDate            *time.Time `json:"endDate"`
	}](ctx, d.engine, "element-instances", object{"processInstanceKey": instance}, []object{{"field": "startDate", "order": "ASC"}}, maxElements)
	if err != nil {
		return nil, err
	}
	var all []Element
	for _, e := range got.Items {
		all = append(all, Element{
			Key: e.ElementInstanceKey, ElementID: e.ElementID, Type: e.Type, State: e.State, IncidentKey: e.IncidentKey, StartedAt: e.StartDate, EndedAt: e.EndDate,
		})
	}
	if got.Page.TotalItems > len(got.Items) {
		return all, fmt.Errorf("%d of %d element instances are shown", len(got.Items), got.Page.TotalItems)
	}
	return all, nil
}

// ModelXML gives the model that the saga's process instance runs, as it was deployed.
func (d *Desk) ModelXML(ctx context.Context, s SagaRow) ([]byte, error) {
	switch {
	case d.engine == nil:
		return nil, fmt.Errorf("model: %w", ErrNoEngine)
	case s.ProcessInstanceKey == 0:
		return nil, fmt.Errorf("model of saga %s: it has not begun: %w", s.ID, ErrNotFound)
	case s.Cluster != d.cfg.Cluster:
		return nil, fmt.Errorf("model: %w", &FieldError{Field: "cluster", Value: s.Cluster, Want: d.cfg.Cluster + ", whose REST API is configured here"})
	}
	text, err := d.engine.do(ctx, http.MethodGet, "/v2/process-instances/"+s.ProcessInstanceKey.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("process instance %s: %w", s.ProcessInstanceKey, err)
	}
	var i struct {
		ProcessDefinitionKey Key `json:"processDefinitionKey"`
	}
	if err := json.Unmarshal(text, &i); err != nil {
		return nil, fmt.Errorf("process instance %s: %w", s.ProcessInstanceKey, err)
	}
	xml, err := d.engine.do(ctx, http.MethodGet, "/v2/process-definitions/"+i.ProcessDefinitionKey.String()+"/xml", nil)
	if err != nil {
		return nil, fmt.Errorf("model of process instance %s: %w", s.ProcessInstanceKey, err)
	}
	return xml, nil
}
