package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Incident is one incident of the engine with what we know behind it. Its JSON field names are stable.
type Incident struct {
	Key                Key       `json:"key"`
	Cluster            string    `json:"cluster"`
	State              string    `json:"state"` // ACTIVE, PENDING, RESOLVED, MIGRATED
	ErrorType          string    `json:"error_type"`
	Reason             string    `json:"reason"` // the engine's error message
	CreatedAt          time.Time `json:"created_at"`
	ProcessID          string    `json:"process_id"`
	ProcessInstanceKey Key       `json:"process_instance_key"`
	ElementID          string    `json:"element_id"`
	ElementInstanceKey Key       `json:"element_instance_key"`
	JobKey             Key       `json:"job_key"` // "" = no job is behind it
	JobType            string    `json:"job_type"`

	OperationID string     `json:"operation_id"` // "" = the job failed before any operation was claimed
	Operation   *Operation `json:"operation"`
	SagaID      string     `json:"saga_id"`
	SagaType    string     `json:"saga_type"`
	SagaState   string     `json:"saga_state"`
	BusinessKey string     `json:"business_key"`

	VariableNames []string `json:"variable_names"` // that the element sees; never their values. Only [Desk.Incident] fills it
	Retry         *Retry   `json:"retry"`          // what a person has done about it; nil = nothing
	Problems      []string `json:"problems"`       // what could not be asked. Only [Desk.Incident] fills it
}

// Retry is a retry that somebody asked for.
type Retry struct {
	AuditSeq  int64     `json:"audit_seq"`
	Actor     string    `json:"actor"`
	At        time.Time `json:"at"`
	Command   string    `json:"command"` // pending, parked, or "delivered"
	LastError string    `json:"last_error"`
}

// Pending says that the engine has not been told yet.
func (r *Retry) Pending() bool { return r != nil && r.Command == "pending" }

// Signature groups incidents that look alike: same process, element, type of error and message, numbers aside.
func (i Incident) Signature() string {
	return strings.Join([]string{i.ProcessID, i.ElementID, i.ErrorType, normalise(i.Reason)}, " · ")
}

// normalise cuts a message to its first line and replaces what differs between twins: numbers and ids.
func normalise(message string) string {
	first, _, _ := strings.Cut(message, "\n")
	words := strings.Fields(first)
	for n, w := range words {
		if strings.ContainsAny(w, "0123456789") {
			words[n] = "#"
		}
	}
	return shorten(strings.Join(words, " "), 160)
}

// IncidentGroup is a set of incidents with one signature, newest first.
type IncidentGroup struct {
	ProcessID string     `json:"process_id"`
	ElementID string     `json:"element_id"`
	ErrorType string     `json:"error_type"`
	Reason    string     `json:"reason"` // of the newest
	FirstAt   time.Time  `json:"first_at"`
	LastAt    time.Time  `json:"last_at"`
	Incidents []Incident `json:"incidents"`
}

// GroupIncidents groups by [Incident.Signature], the largest group first.
func GroupIncidents(all []Incident) []IncidentGroup {
	var groups []IncidentGroup
	at := map[string]int{}
	for _, i := range all {
		n, ok := at[i.Signature()]
		if !ok {
			n = len(groups)
			at[i.Signature()] = n
			groups = append(groups, IncidentGroup{ProcessID: i.ProcessID, ElementID: i.ElementID, ErrorType: i.ErrorType, Reason: i.Reason, FirstAt: i.CreatedAt, LastAt: i.CreatedAt})
		}
		g := &groups[n]
		g.Incidents = append(g.Incidents, i)
		if i.CreatedAt.Before(g.FirstAt) {
			g.FirstAt = i.CreatedAt
		}
		if !i.CreatedAt.Before(g.LastAt) {
			g.LastAt, g.Reason = i.CreatedAt, i.Reason
		}
	}
	for _, g := range groups {
		slices.SortStableFunc(g.Incidents, func(a, b Incident) int { return b.CreatedAt.Compare(a.CreatedAt) })
	}
	slices.SortStableFunc(groups, func(a, b IncidentGroup) int {
		if c := len(b.Incidents) - len(a.Incidents); c != 0 {
			return c
		}
		return b.LastAt.Compare(a.LastAt)
	})
	return groups
}

// IncidentFilter chooses incidents; empty fields choose all active ones.
type IncidentFilter struct {
	ProcessID          string
	ProcessInstanceKey Key
	All                bool // resolved ones too
	Limit              int  // 1 to 1000; 0 = 200
}

// IncidentList is a page of incidents, newest first. Total counts all that match in the engine.
type IncidentList struct {
	Total     int        `json:"total"`
	Incidents []Incident `json:"incidents"`
}

// Incidents lists the engine's incidents, newest first, each with its operation and saga. [ErrNoEngine] without a REST API.
// What the engine tells is a moment old: its search is eventually consistent.
func (d *Desk) Incidents(ctx context.Context, f IncidentFilter) (IncidentList, error) {
	if f.Limit == 0 {
		f.Limit = 200
	}
	if f.Limit < 1 || f.Limit > 1000 {
		return IncidentList{}, &FieldError{Field: "limit", Value: fmt.Sprint(f.Limit), Want: "1 to 1000"}
	}
	list, err := d.searchIncidents(ctx, f)
	if err != nil {
		return IncidentList{}, fmt.Errorf("list incidents: %w", err)
	}
	if err := d.explain(ctx, list.Incidents); err != nil {
		return IncidentList{}, fmt.Errorf("list incidents: %w", err)
	}
	if err := d.jobTypes(ctx, list.Incidents); err != nil {
		return IncidentList{}, fmt.Errorf("list incidents: %w", err)
	}
	return list, nil
}

// Incident gives one incident with the names of the variables its element sees, [ErrNotFound] when there is none.
func (d *Desk) Incident(ctx context.Context, key Key) (Incident, error) {
	i, err := d.readIncident(ctx, key)
	if err != nil {
		return i, fmt.Errorf("incident %s: %w", key, err)
	}
	one := []Incident{i}
	if err := d.explain(ctx, one); err != nil {
		return i, fmt.Errorf("incident %s: %w", key, err)
	}
	if err := d.jobTypes(ctx, one); err != nil {
		one[0].Problems = append(one[0].Problems, "job: "+err.Error())
	}
	if one[0].VariableNames, err = d.variableNames(ctx, one[0]); err != nil {
		one[0].Problems = append(one[0].Problems, "variables: "+err.Error())
	}
	return one[0], nil
}

// explain adds what our tables know: operation, saga, retries.
func (d *Desk) explain(ctx context.Context, all []Incident) error {
	if len(all) == 0 {
		return nil
	}
	var n []int32
	var instances, elements, jobs, keys []int64
	for i, inc := range all {
		n = append(n, int32(i)) //nolint:gosec // at most the limit of a list
		instances, elements = append(instances, int64(inc.ProcessInstanceKey)), append(elements, int64(inc.ElementInstanceKey))
		jobs, keys = append(jobs, int64(inc.JobKey)), append(keys, int64(inc.Key))
	}
	rows, err := d.cfg.Pool.Query(ctx, d.sql.incidentContext, d.cfg.Cluster, n, instances, elements, jobs)
	if err != nil {
		return fmt.Errorf("operations behind incidents: %w", err)
	}
	var at int32
	var op, saga, typ, key, state string
	_, err = pgx.ForEachRow(rows, []any{&at, &op, &saga, &typ, &key, &state}, func() error {
		i := &all[at]
		i.OperationID, i.SagaID, i.SagaType, i.BusinessKey, i.SagaState = op, saga, typ, key, state
		return nil
	})
	if err != nil {
		return fmt.Errorf("operations behind incidents: %w", err)
	}
	if err := d.addOperations(ctx, all); err != nil {
		return err
	}
	return d.addRetries(ctx, all, keys)
}

func (d *Desk) addOperations(ctx context.Context, all []Incident) error {
	var ids []string
	for _, i := range all {
		ids = append(ids, i.OperationID)
	}
	ops, err := listOperations(ctx, d.cfg.Pool, d.sql.operationsByID, ids)
	if err != nil {
		return err
	}
	for n := range all {
		i := &all[n]
		if at := slices.IndexFunc(ops, func(o Operation) bool { return o.OperationID == i.OperationID }); at >= 0 {
			i.Operation, i.JobType = &ops[at], ops[at].JobType
			if i.BusinessKey == "" {
				i.BusinessKey = ops[at].BusinessKey
			}
		}
	}
	return nil
}

func (d *Desk) addRetries(ctx context.Context, all []Incident, keys []int64) error {
	rows, err := d.cfg.Pool.Query(ctx, d.sql.retries, d.cfg.Cluster, keys)
	if err != nil {
		return fmt.Errorf("retries of incidents: %w", err)
	}
	found := map[Key]*Retry{}
	var key Key
	var r Retry
	_, err = pgx.ForEachRow(rows, []any{&key, &r.AuditSeq, &r.Actor, &r.At, &r.Command, &r.LastError}, func() error {
		one := r
		one.Command = deliveredOr(one.Command)
		found[key] = &one
		return nil
	})
	if err != nil {
		return fmt.Errorf("retries of incidents: %w", err)
	}
	for n := range all {
		all[n].Retry = found[all[n].Key]
	}
	return nil
}

// deliveredOr names the state of a command: its row goes when the engine has acknowledged it.
func deliveredOr(state string) string {
	if state == "" {
		return "delivered"
	}
	return state
}
