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
	Schema    string     `json:"$schema,omitempty"`
	ProcessID string     `json:"processId,omitempty"` // Play's; not used
	TestCases []Scenario `json:"testCases"`
}

// Scenario is one test case.
type Scenario struct {
	Name         string            `json:"name"`
	Description  string            `json:"description,omitempty"`
	Instructions []json.RawMessage `json:"instructions"`
	Metadata     json.RawMessage   `json:"metadata,omitempty"` // Play's; not used

	steps []step
}

// step is one instruction with its place for messages.
type step struct {
	kind string
	run  func(e *Env) error
}

// ParseScenarios reads a file of test cases and checks every instruction. All
// mistakes are reported, with test case and instruction: an unknown type, an
// unknown or missing field, a bad duration, state or expression.
func ParseScenarios(text []byte) (*ScenarioFile, error) {
	var f ScenarioFile
	if err := strict(text, &f); err != nil {
		return nil, fmt.Errorf("scenario file: %w", err)
	}
	if len(f.TestCases) == 0 {
		return nil, errors.New("scenario file: testCases is empty")
	}
	var errs []error
	for i := range f.TestCases {
		c := &f.TestCases[i]
		if c.Name == "" {
			errs = append(errs, fmt.Errorf("test case %d: name is missing", i+1))
		}
		for n, doc := range c.Instructions {
			s, err := instruction(doc)
			if err != nil {
				errs = append(errs, fmt.Errorf("test case %d %q, instruction %d: %w", i+1, c.Name, n+1, err))
			}
			c.steps = append(c.steps, s)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &f, nil
}

// strict decodes one JSON value without unknown fields.
func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}

// instruction reads one instruction by its type.
func instruction(doc json.RawMessage) (step, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(doc, &head); err != nil {
		return step{}, err
	}
	read, ok := instructions()[head.Type]
	if !ok {
		return step{}, fmt.Errorf("type %q: want one of %s", head.Type, strings.Join(slices.Sorted(maps.Keys(instructions())), ", "))
	}
	run, err := read(doc)
	if err != nil {
		err = fmt.Errorf("%s: %w", head.Type, err)
	}
	return step{kind: head.Type, run: run}, err
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
	text, err := os.ReadFile(path) //nolint:gosec // the test names it
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseScenarios(text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
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
	e := Start(t, s.Models...)
	if s.Coverage != nil {
		e.Collect(s.Coverage)
	}
	if s.Prepare != nil {
		s.Prepare(e)
	}
	if len(c.steps) != len(c.Instructions) {
		t.Fatal("enginetest: the scenario was not read by ParseScenarios")
	}
	for i, step := range c.steps {
		e.t = &located{TB: t, at: fmt.Sprintf("instruction %d, %s", i+1, step.kind)}
		if err := step.run(e); err != nil {
			t.Fatalf("instruction %d, %s: %v", i+1, step.kind, err)
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
