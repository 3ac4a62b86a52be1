package enginetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/vitrip/journeyman/bpmn"
)

// Coverage says which elements of which models ran, over one test or many.
// Make one for a package, give it to each Env with [Env.Collect], and write it
// from TestMain. Elements are flow nodes: events, tasks, gateways, subprocesses.
// The zero value is empty. Safe for concurrent use.
type Coverage struct {
	mu     sync.Mutex
	models map[string]*covered // by file name
}

type covered struct {
	text     []byte
	defs     *bpmn.Definitions
	elements []*bpmn.Element
	runs     map[string]*runs
}

type runs struct{ completed, terminated, active, incidents int }

// ModelCoverage is the coverage of one file, as JSON has it.
type ModelCoverage struct {
	File     string            `json:"file"`
	Elements int               `json:"elements"`
	Covered  int               `json:"covered"` // completed at least once
	Percent  float64           `json:"percent"` // 100 for a model without elements
	Missing  []string          `json:"missing"` // ids that never completed, in document order
	Runs     []ElementCoverage `json:"runs"`    // in document order
}

// ElementCoverage counts the runs of one element.
type ElementCoverage struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Completed  int    `json:"completed"`
	Terminated int    `json:"terminated"`
	Incidents  int    `json:"incidents"`
}

// Collect adds what this test runs to c when the test ends.
func (e *Env) Collect(c *Coverage) { e.coverage = append(e.coverage, c) }

// Coverage is what ran so far in this test.
func (e *Env) Coverage() *Coverage {
	e.t.Helper()
	c := &Coverage{models: map[string]*covered{}}
	byProcess := map[string]*covered{}
	for _, m := range e.models {
		cv := &covered{text: m.text, defs: m.defs, elements: elements(m.defs), runs: map[string]*runs{}}
		c.models[m.name] = cv
		for _, p := range m.defs.Processes {
			byProcess[p.ID] = cv
		}
	}
	for _, el := range search[struct {
		ElementInstance
		Process string `json:"processDefinitionId"`
	}](e, "/element-instances/search", map[string]any{}) {
		cv := byProcess[el.Process]
		if cv == nil {
			continue
		}
		r := cv.of(el.ElementID)
		switch el.State {
		case "COMPLETED":
			r.completed++
		case "TERMINATED":
			r.terminated++
		default:
			r.active++
		}
	}
	for _, i := range search[struct {
		ElementID string `json:"elementId"`
		Process   string `json:"processDefinitionId"`
	}](e, "/incidents/search", map[string]any{}) {
		if cv := byProcess[i.Process]; cv != nil {
			cv.of(i.ElementID).incidents++
		}
	}
	return c
}

func (c *covered) of(id string) *runs {
	if c.runs[id] == nil {
		c.runs[id] = &runs{}
	}
	return c.runs[id]
}

// Add adds the runs of other. A model whose text changed under its name begins anew.
func (c *Coverage) Add(other *Coverage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.models == nil {
		c.models = map[string]*covered{}
	}
	for name, o := range other.models {
		mine := c.models[name]
		if mine == nil || !bytes.Equal(mine.text, o.text) {
			mine = &covered{text: o.text, defs: o.defs, elements: o.elements, runs: map[string]*runs{}}
			c.models[name] = mine
		}
		for id, r := range o.runs {
			m := mine.of(id)
			m.completed += r.completed
			m.terminated += r.terminated
			m.active += r.active
			m.incidents += r.incidents
		}
	}
}

// Models gives the figures, in order of file names.
func (c *Coverage) Models() []ModelCoverage {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []ModelCoverage
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		cv := c.models[name]
		m := ModelCoverage{File: name, Elements: len(cv.elements), Missing: []string{}, Runs: []ElementCoverage{}, Percent: 100}
		for _, e := range cv.elements {
			r := cv.of(e.ID)
			m.Runs = append(m.Runs, ElementCoverage{ID: e.ID, Type: string(e.Kind), Completed: r.completed, Terminated: r.terminated, Incidents: r.incidents})
			if cv.ran(e) {
				m.Covered++
			} else {
				m.Missing = append(m.Missing, e.ID)
			}
		}
		if m.Elements > 0 {
			m.Percent = float64(m.Covered*1000/m.Elements) / 10
		}
		out = append(out, m)
	}
	return out
}

// ran says whether an element did its work. The engine has no run of its own for a compensation boundary event: it counts
// when the handler it leads to ran.
func (c *covered) ran(e *bpmn.Element) bool {
	if c.of(e.ID).completed > 0 {
		return true
	}
	if e.Kind == bpmn.KindBoundaryEvent && e.Event != nil && e.Event.Kind == bpmn.EventCompensation && e.AttachedTo != nil {
		h := e.AttachedTo.CompensationHandler
		return h != nil && c.of(h.ID).completed > 0
	}
	return false
}

// Text writes one line per model and one per element that never completed.
func (c *Coverage) Text(w io.Writer) error {
	var b strings.Builder
	for _, m := range c.Models() {
		fmt.Fprintf(&b, "%-30s %3d of %3d elements, %5.1f %%\n", m.File, m.Covered, m.Elements, m.Percent)
		for _, id := range m.Missing {
			fmt.Fprintf(&b, "\tnever completed: %s\n", id)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON writes {"models": […]} with what [Coverage.Models] gives.
func (c *Coverage) JSON(w io.Writer) error {
	models := c.Models()
	if models == nil {
		models = []ModelCoverage{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"models": models})
}

// SVG draws a model with its elements painted: completed, compensated (a
// completed compensation handler), incident (and never completed), terminated
// (and never completed), active. An element that was never entered is left blank.
func (c *Coverage) SVG(w io.Writer, file string) error {
	c.mu.Lock()
	cv := c.models[file]
	if cv == nil {
		c.mu.Unlock()
		return fmt.Errorf("coverage has no model %q", file)
	}
	state := map[string]bpmn.State{}
	for _, e := range cv.elements {
		r := cv.of(e.ID)
		switch {
		case cv.ran(e) && e.ForCompensation:
			state[e.ID] = bpmn.StateCompensated
		case cv.ran(e):
			state[e.ID] = bpmn.StateCompleted
		case r.incidents > 0:
			state[e.ID] = bpmn.StateIncident
		case r.terminated > 0:
			state[e.ID] = bpmn.StateTerminated
		case r.active > 0:
			state[e.ID] = bpmn.StateActive
		}
	}
	c.mu.Unlock()
	return bpmn.Draw(w, cv.defs, bpmn.DrawOptions{Title: "Coverage of " + file, State: state})
}

// Write writes coverage.txt, coverage.json and one SVG per model into a folder, which it makes.
func (c *Coverage) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a report
		return err
	}
	write := func(name string, fill func(io.Writer) error) error {
		var b bytes.Buffer
		if err := fill(&b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644) //nolint:gosec // a report
	}
	errs := []error{write("coverage.txt", c.Text), write("coverage.json", c.JSON)}
	for _, m := range c.Models() {
		errs = append(errs, write(strings.TrimSuffix(m.File, ".bpmn")+".svg", func(w io.Writer) error { return c.SVG(w, m.File) }))
	}
	return errors.Join(errs...)
}
