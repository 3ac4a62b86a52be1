package console

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"net/http"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/operator"
)

// diagram draws the model that the saga's process instance runs, as the engine has it, with the saga's state painted on it.
// Elements with an incident lead to its page.
func (c *console) diagram(r *http.Request, s operator.Saga, paints map[string]operator.Paint) (template.HTML, error) {
	if s.ProcessInstanceKey == 0 {
		return "", errors.New("the saga has not begun: no process instance runs it yet")
	}
	xml, err := c.cfg.Desk.ModelXML(r.Context(), s.SagaRow)
	if err != nil {
		return "", err
	}
	defs, err := bpmn.Parse(bytes.NewReader(xml))
	if err != nil {
		return "", fmt.Errorf("model of process instance %s: %w", s.ProcessInstanceKey, err)
	}
	opts := bpmn.DrawOptions{Title: "Process of " + s.BusinessKey, State: map[string]bpmn.State{}, NoStyle: true, Link: incidentLinks(s)}
	for id, p := range paints {
		if state := stateOf(p); state != "" {
			opts.State[id] = state
		}
	}
	var b bytes.Buffer
	if err := bpmn.Draw(&b, defs, opts); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // Draw escapes all text of the model
}

func incidentLinks(s operator.Saga) func(string) string {
	links := map[string]string{}
	for _, e := range s.Elements {
		if e.IncidentKey != 0 && e.State == "ACTIVE" {
			links[e.ElementID] = "/incidents/" + e.IncidentKey.String()
		}
	}
	return func(id string) string { return links[id] }
}

func stateOf(p operator.Paint) bpmn.State {
	switch p {
	case operator.Completed:
		return bpmn.StateCompleted
	case operator.Terminated:
		return bpmn.StateTerminated
	case operator.Compensated:
		return bpmn.StateCompensated
	case operator.Active:
		return bpmn.StateActive
	case operator.Troubled:
		return bpmn.StateIncident
	}
	return ""
}

// diagramKey explains the colours in words.
func diagramKey() []legend {
	return []legend{
		{"active", "under way"}, {"completed", "done"}, {"compensated", "undone"}, {"terminated", "ended early"}, {"incident", "waits for a person"},
	}
}
