package operator

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/vitrip/journeyman/zeebe/rest"
)

const maxElements = 5000 // element instances of one process instance that are shown

// asked gives an error of the REST client the conditions of this package.
func asked(err error) error {
	var transport *url.Error
	switch {
	case err == nil:
		return nil
	case rest.IsNotFound(err):
		return ErrNotFound
	case errors.As(err, &transport):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	default:
		return fmt.Errorf("engine: %w", err)
	}
}

func (d *Desk) viewIncident(i rest.Incident) (Incident, error) {
	at, err := instant("creationTime", i.CreationTime)
	return Incident{
		Key: Key(i.IncidentKey), Cluster: d.cfg.Cluster, State: i.State, ErrorType: i.ErrorType, Reason: i.ErrorMessage, CreatedAt: at,
		ProcessID: i.ProcessDefinitionID, ProcessInstanceKey: Key(i.ProcessInstanceKey), ElementID: i.ElementID,
		ElementInstanceKey: Key(i.ElementInstanceKey), JobKey: Key(i.JobKey),
	}, err
}

// instant reads a time of the API; "" is the zero time.
func instant(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("engine: %s %q: want a time as RFC 3339 has it", field, text)
	}
	return t, nil
}

func (d *Desk) searchIncidents(ctx context.Context, f IncidentFilter) (IncidentList, error) {
	if d.cfg.Engine == nil {
		return IncidentList{}, ErrNoEngine
	}
	filter := rest.Filter{}
	if !f.All {
		filter["state"] = "ACTIVE"
	}
	if f.ProcessID != "" {
		filter["processDefinitionId"] = f.ProcessID
	}
	if f.ProcessInstanceKey != 0 {
		filter["processInstanceKey"] = rest.Key(f.ProcessInstanceKey)
	}
	got, err := d.cfg.Engine.SearchIncidents(ctx, rest.Query{Filter: filter, Sort: []rest.Sort{{Field: "creationTime", Desc: true}}, Limit: f.Limit})
	if err != nil {
		return IncidentList{}, asked(err)
	}
	list := IncidentList{Total: max(int(got.Total), len(got.Items)), Incidents: []Incident{}}
	for _, item := range got.Items {
		i, err := d.viewIncident(item)
		if err != nil {
			return IncidentList{}, err
		}
		list.Incidents = append(list.Incidents, i)
	}
	return list, nil
}

func (d *Desk) readIncident(ctx context.Context, key Key) (Incident, error) {
	if d.cfg.Engine == nil {
		return Incident{}, ErrNoEngine
	}
	i, err := d.cfg.Engine.Incident(ctx, int64(key))
	if err != nil {
		return Incident{}, asked(err)
	}
	return d.viewIncident(i)
}

// jobTypes asks the engine for the types of jobs that our operations did not tell.
func (d *Desk) jobTypes(ctx context.Context, all []Incident) error {
	var keys []rest.Key
	for _, i := range all {
		if i.JobType == "" && i.JobKey != 0 {
			keys = append(keys, rest.Key(i.JobKey))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	got, err := d.cfg.Engine.SearchJobs(ctx, rest.Query{Filter: rest.Filter{"jobKey": map[string]any{"$in": keys}}, Limit: len(keys)})
	if err != nil {
		return asked(err)
	}
	for n := range all {
		for _, job := range got.Items {
			if all[n].JobKey == Key(job.JobKey) {
				all[n].JobType = job.Type
			}
		}
	}
	return nil
}

// variableNames lists what the element and its process instance hold. Values are dropped as they arrive.
func (d *Desk) variableNames(ctx context.Context, i Incident) ([]string, error) {
	got, err := d.cfg.Engine.SearchVariables(ctx, rest.Query{Limit: 1000, Filter: rest.Filter{
		"processInstanceKey": rest.Key(i.ProcessInstanceKey),
		"scopeKey":           map[string]any{"$in": []rest.Key{rest.Key(i.ElementInstanceKey), rest.Key(i.ProcessInstanceKey)}},
	}})
	if err != nil {
		return nil, asked(err)
	}
	var names []string
	for _, v := range got.Items {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (d *Desk) searchElements(ctx context.Context, instance Key) ([]Element, error) {
	if d.cfg.Engine == nil {
		return nil, ErrNoEngine
	}
	q := rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(instance)}, Sort: []rest.Sort{{Field: "startDate"}}, Limit: 1000}
	var all []Element
	for {
		got, err := d.cfg.Engine.SearchElementInstances(ctx, q)
		if err != nil {
			return all, asked(err)
		}
		for _, item := range got.Items {
			e, err := viewElement(item)
			if err != nil {
				return all, err
			}
			all = append(all, e)
		}
		switch {
		case got.After == "" || len(got.Items) < q.Limit:
			return all, nil
		case len(all) >= maxElements:
			return all, fmt.Errorf("only the first %d element instances are shown", len(all))
		}
		q.After = got.After
	}
}

func viewElement(i rest.ElementInstance) (Element, error) {
	e := Element{Key: Key(i.ElementInstanceKey), ElementID: i.ElementID, Type: i.Type, State: i.State, IncidentKey: Key(i.IncidentKey)}
	var err, ended error
	e.StartedAt, err = instant("startDate", i.StartDate)
	if i.EndDate != "" {
		var at time.Time
		at, ended = instant("endDate", i.EndDate)
		e.EndedAt = &at
	}
	return e, errors.Join(err, ended)
}

// ModelXML gives the model that the saga's process instance runs, as it was deployed.
func (d *Desk) ModelXML(ctx context.Context, s SagaRow) ([]byte, error) {
	switch {
	case d.cfg.Engine == nil:
		return nil, fmt.Errorf("model: %w", ErrNoEngine)
	case s.ProcessInstanceKey == 0:
		return nil, fmt.Errorf("model of saga %s: it has not begun: %w", s.ID, ErrNotFound)
	case s.Cluster != d.cfg.Cluster:
		return nil, fmt.Errorf("model: %w", &FieldError{Field: "cluster", Value: s.Cluster, Want: d.cfg.Cluster + ", whose REST API is configured here"})
	}
	i, err := d.cfg.Engine.ProcessInstance(ctx, int64(s.ProcessInstanceKey))
	if err != nil {
		return nil, fmt.Errorf("process instance %s: %w", s.ProcessInstanceKey, asked(err))
	}
	xml, err := d.cfg.Engine.ProcessXML(ctx, int64(i.ProcessDefinitionKey))
	if err != nil {
		return nil, fmt.Errorf("model of process instance %s: %w", s.ProcessInstanceKey, asked(err))
	}
	if len(xml) == 0 {
		return nil, fmt.Errorf("model of process instance %s: %w", s.ProcessInstanceKey, ErrNotFound)
	}
	return xml, nil
}
