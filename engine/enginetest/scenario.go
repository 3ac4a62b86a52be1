package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ScenarioFile is a file of test cases that people write who do not program.
// Its fields are those of Camunda Process Test's JSON test cases (schema
// https://camunda.com/json-schema/cpt-test-cases/8.9/schema.json), so that a
// file runs in both where it uses only what both have:
//
//	{"testCases": [{"name": "sold out", "instructions": [
//		{"type": "MOCK_JOB_WORKER_THROW_BPMN_ERROR", "jobType": "hotel.reserve", "errorCode": "SOLD_OUT"},
//		{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {"processDefinitionId": "trip"}, "variables": {"guests": 2}},
//		{"type": "ASSERT_PROCESS_INSTANCE", "processInstanceSelector": {"processDefinitionId": "trip"}, "state": "IS_COMPLETED"}
//	]}]}
//
// Every field is in [ScenarioSchema], a JSON Schema for editors. `journeyman test FILE…` runs files without any Go.
//
// Every instruction runs to its end before the next: mocks have done all their
// work, and assertions do not wait. A selector by process means its newest
// instance.
//
// Ours, which Camunda has not: MOCK_JOB_WORKER_FAIL_JOB (jobType, times,
// errorMessage: then the answer that follows), ASSERT_COMPENSATION
// (processInstanceSelector, elementSelectors: exactly these handlers ran, in
// this order). Camunda's, which we have not and refuse by name: decisions, ad-hoc
// subprocesses, listeners, child process mocks, conditional behaviour, message
// subscriptions, semantic judges.
type ScenarioFile struct {
	Schema    string     `json:"$schema,omitempty" doc:"where the schema of the file is; editors read it"`
	ProcessID string     `json:"processId,omitempty" doc:"of Camunda's Play; not used"`
	TestCases []Scenario `json:"testCases" rule:"need min=1" doc:"each runs in an engine of its own"`
}

// Scenario is one test case.
type Scenario struct {
	Name         string            `json:"name" rule:"need" doc:"unique in the file"`
	Description  string            `json:"description,omitempty"`
	Instructions []json.RawMessage `json:"instructions" rule:"need" doc:"done one after the other"`
	Metadata     json.RawMessage   `json:"metadata,omitempty" doc:"of Camunda's Play; not used"`

	steps []step
}

// step is one instruction with its place for messages.
type step struct {
	kind string
	line int
	run  func(e *Env) error
}

// ReadScenarios reads and checks a file of test cases. The error of a bad file joins one [*ScenarioError] for each thing
// that is wrong, with file, line, path, value and what is wanted: an unknown instruction, an unknown or missing field, a
// field that stands twice, a bad duration, state or expression. Other errors are about reading.
func ReadScenarios(path string) (*ScenarioFile, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the caller names it
	if err != nil {
		return nil, err
	}
	f, err := ParseScenarios(text)
	for _, m := range Mistakes(err) {
		m.File = path
	}
	return f, err
}

// ParseScenarios is [ReadScenarios] for a text.
func ParseScenarios(text []byte) (*ScenarioFile, error) {
	at, bad := locate(text)
	if bad != nil {
		return nil, bad
	}
	mistakes := verify("", text, reflect.TypeFor[ScenarioFile](), nil)
	for _, path := range at.twice {
		mistakes = append(mistakes, &ScenarioError{Path: path, Value: "there twice", Want: "it once"})
	}
	var f ScenarioFile
	if len(mistakes) == 0 {
		if err := json.Unmarshal(text, &f); err != nil {
			return nil, &ScenarioError{Value: "not readable", Want: err.Error()} // verify knows better
		}
	}
	names := map[string]bool{}
	for i := range f.TestCases {
		c := &f.TestCases[i]
		path := fmt.Sprintf("testCases[%d]", i)
		if names[c.Name] {
			mistakes = append(mistakes, &ScenarioError{Path: path + ".name", Value: strconv.Quote(c.Name), Want: "a name that no other test case has"})
		}
		names[c.Name] = true
		for n, doc := range c.Instructions {
			place := fmt.Sprintf("%s.instructions[%d]", path, n)
			s, found := instruction(place, doc)
			s.line = at.near(place)
			mistakes = append(mistakes, found...)
			c.steps = append(c.steps, s)
		}
	}
	if len(mistakes) == 0 {
		return &f, nil
	}
	errs := make([]error, len(mistakes))
	for i, m := range mistakes {
		m.Line = at.near(m.Path)
		errs[i] = m
	}
	return nil, errors.Join(errs...)
}

// instruction reads one instruction by its type.
func instruction(path string, doc json.RawMessage) (step, []*ScenarioError) {
	var parts map[string]json.RawMessage
	if json.Unmarshal(doc, &parts) != nil || parts == nil {
		return step{}, []*ScenarioError{{Path: path, Value: shown(doc), Want: `an instruction, {"type": …}`}}
	}
	var kind string
	_ = json.Unmarshal(parts["type"], &kind) // no text is no known type
	m, ok := instructions()[kind]
	if !ok {
		bad := &ScenarioError{Path: under(path, "type"), Want: "one of " + strings.Join(slices.Sorted(maps.Keys(instructions())), ", ")}
		if parts["type"] != nil {
			bad.Value = shown(parts["type"])
		}
		return step{}, []*ScenarioError{bad}
	}
	if found := verifyObject(path, doc, m.fields, "type"); len(found) > 0 {
		return step{}, found
	}
	run, err := m.read(doc)
	if err != nil {
		return step{}, []*ScenarioError{{Path: path, Value: shown(doc), Want: err.Error()}}
	}
	return step{kind: kind, run: run}, nil
}

// Scenarios runs files of test cases, each case in an engine of its own.
type Scenarios struct {
	Models   []Model
	Prepare  func(e *Env) // runs before each case, for example to mock what is the same in all; may be nil
	Coverage *Coverage    // collects what ran; may be nil
}

// RunFile runs every test case of a file as a subtest.
func RunFile(t *testing.T, path string, models ...Model) {
	t.Helper()
	Scenarios{Models: models}.RunFile(t, path)
}

// RunFile runs every test case of a file as a subtest.
func (s Scenarios) RunFile(t *testing.T, path string) {
	t.Helper()
	f, err := ReadScenarios(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.TestCases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			s.Run(t, c)
		})
	}
}

// RunFiles runs every file that matches a pattern of [filepath.Glob]. None ends the test.
func (s Scenarios) RunFiles(t *testing.T, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("scenario files %s: %d found, %v", pattern, len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) { s.RunFile(t, path) })
	}
}

// Run runs one test case, which [ParseScenarios] read.
func (s Scenarios) Run(t testing.TB, c Scenario) {
	t.Helper()
	s.run(t, c, func(i int, step step) string { return fmt.Sprintf("instruction %d, %s", i+1, step.kind) }, nil)
}

// run does the steps; at names one of them in messages, and stop may end the case between two.
func (s Scenarios) run(t testing.TB, c Scenario, at func(i int, step step) string, stop func() error) {
	t.Helper()
	e := Start(t, s.Models...)
	if s.Coverage != nil {
		e.Collect(s.Coverage)
	}
	if s.Prepare != nil {
		s.Prepare(e)
	}
	if len(c.steps) != len(c.Instructions) {
		t.Fatalf("enginetest: the scenario was not read by ParseScenarios")
	}
	for i, step := range c.steps {
		if stop != nil {
			if err := stop(); err != nil {
				t.Fatalf("%v", err)
			}
		}
		e.t = &located{TB: t, at: at(i, step)}
		if err := step.run(e); err != nil {
			t.Fatalf("%s: %v", at(i, step), err)
		}
	}
	e.t = t
}

// located puts the instruction before what a helper fails with.
type located struct {
	testing.TB
	at string
}

func (l *located) Fatalf(format string, args ...any) {
	l.Helper()
	l.TB.Fatalf("%s: %s", l.at, fmt.Sprintf(format, args...))
}
