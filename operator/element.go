package operator

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Element is one element instance of the engine's history.
type Element struct {
	Key         Key        `json:"key"`
	ElementID   string     `json:"element_id"`
	Type        string     `json:"type"`
	State       string     `json:"state"` // ACTIVE, COMPLETED, TERMINATED
	IncidentKey Key        `json:"incident_key"`
	StartedAt   time.Time  `json:"started_at"`
	EndedAt     *time.Time `json:"ended_at"`
}

// Paint is how an element of the model stands, for a drawing.
type Paint string

// The paints, from weakest to strongest: of several instances of one element the strongest shows.
const (
	Untouched   Paint = ""
	Completed   Paint = "completed"
	Terminated  Paint = "terminated"
	Compensated Paint = "compensated"
	Active      Paint = "active"
	Troubled    Paint = "incident"
)

func (p Paint) strength() int {
	return slices.Index([]Paint{Untouched, Completed, Terminated, Compensated, Active, Troubled}, p)
}

// Paints joins the engine's element states with the ledger: by element id, how it stands.
func (s Saga) Paints() map[string]Paint {
	out := map[string]Paint{}
	set := func(id string, p Paint) {
		if id != "" && p.strength() > out[id].strength() {
			out[id] = p
		}
	}
	for _, e := range s.Elements {
		switch {
		case e.IncidentKey != 0 && e.State == "ACTIVE":
			set(e.ElementID, Troubled)
		case e.State == "ACTIVE":
			set(e.ElementID, Active)
		case e.State == "TERMINATED":
			set(e.ElementID, Terminated)
		case e.State == "COMPLETED":
			set(e.ElementID, Completed)
		}
	}
	for _, step := range s.Steps {
		switch step.UndoState {
		case "done":
			set(step.ElementID, Compensated)
		case "stuck", "parked":
			set(step.ElementID, Troubled)
		default:
			if len(s.Elements) == 0 && step.Class == "SUCCESS" { // the engine says nothing: the ledger does
				set(step.ElementID, Completed)
			}
		}
	}
	return out
}

func elementMoments(e Element) []Moment {
	if skipped(e.Type) {
		return nil
	}
	if e.EndedAt != nil && e.EndedAt.Equal(e.StartedAt) && e.State == "COMPLETED" {
		return []Moment{{At: e.StartedAt, Source: "engine", What: "passed " + kind(e.Type), Step: e.ElementID}}
	}
	all := []Moment{{At: e.StartedAt, Source: "engine", What: "entered " + kind(e.Type), Step: e.ElementID}}
	if e.EndedAt != nil {
		m := Moment{At: *e.EndedAt, Source: "engine", What: strings.ToLower(e.State) + " " + kind(e.Type), Step: e.ElementID}
		if e.State == "TERMINATED" {
			m.Level = levelWarn
		}
		all = append(all, m)
	}
	if e.IncidentKey != 0 && e.State == "ACTIVE" {
		all[0].Level, all[0].Detail = levelBad, "incident "+e.IncidentKey.String()
	}
	return all
}

// skipped says which elements would only make a timeline long.
func skipped(typ string) bool {
	return strings.HasSuffix(typ, "GATEWAY") || typ == "SEQUENCE_FLOW" || typ == "PROCESS"
}

func kind(typ string) string { return strings.ToLower(strings.ReplaceAll(typ, "_", " ")) }

// elements reads the history of the saga's process instance, in order of start.
func (d *Desk) elements(ctx context.Context, s SagaRow) ([]Element, error) {
	switch {
	case s.ProcessInstanceKey == 0:
		return nil, nil // it has not begun
	case s.Cluster != d.cfg.Cluster:
		return nil, &FieldError{Field: "cluster", Value: s.Cluster, Want: d.cfg.Cluster + ", whose REST API is configured here"}
	}
	return d.searchElements(ctx, s.ProcessInstanceKey)
}
