package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/engine/enginetest"
)

func errand() enginetest.Model { return enginetest.File("testdata/errand.bpmn") }

// scenarios are the models of testdata, with what is the same in all of their cases.
func scenarios(c *enginetest.Coverage) enginetest.Scenarios {
	return enginetest.Scenarios{
		Models:   []enginetest.Model{enginetest.FS(models.FS(), models.TourBooking), errand()},
		Coverage: c,
		Prepare: func(e *enginetest.Env) {
			for _, segment := range []string{"flight", "hotel", "transfer"} {
				e.Mock(segment + ".reserve").Returns(map[string]any{"reservationId": "R-" + segment})
				e.Mock(segment + ".cancel")
			}
			e.Mock(models.JobBookingConfirm).Returns(map[string]any{"sagaDecision": "completed"})
			e.Mock(models.JobSagaGiveUp).WithFunc(func(j enginetest.Job) enginetest.Answer {
				return enginetest.Complete(map[string]any{"sagaDecision": j.Headers["reason"], "gaveUp": true})
			})
			e.Mock(models.JobSagaUndoRest).Returns(map[string]any{"undoOpen": 0})
			for _, jobType := range []string{models.JobSagaBegin, models.JobSagaClose, models.JobPaymentCapture} {
				e.Mock(jobType)
			}
		},
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenarios(&coverage).RunFiles(t, "testdata/*.json")
}

func TestParseScenarios_refusals(t *testing.T) {
	t.Parallel()
	const p = `"processInstanceSelector": {"processDefinitionId": "p"}`
	tests := map[string]struct{ instruction, want string }{
		"unknown type":        {`{"type": "ASSERT_DECISION"}`, `type is "ASSERT_DECISION": want one of ASSERT_COMPENSATION, `},
		"no type":             {`{"duration": "PT1M"}`, `type is missing: want one of`},
		"no instruction":      {`7`, ` is 7: want an instruction, {"type": …}`},
		"unknown field":       {`{"type": "INCREASE_TIME", "duration": "PT1M", "unit": "s"}`, `unit is "s": want no such field; there are duration`},
		"bad duration":        {`{"type": "INCREASE_TIME", "duration": "30 minutes"}`, `duration is "30 minutes": want an ISO 8601 duration`},
		"no duration":         {`{"type": "INCREASE_TIME"}`, `duration is missing: want a text in quotes`},
		"no time":             {`{"type": "INCREASE_TIME", "duration": "PT0S"}`, "more than no time"},
		"bad instant":         {`{"type": "SET_TIME", "time": "noon"}`, `time is "noon": want an instant such as`},
		"bad state":           {`{"type": "ASSERT_PROCESS_INSTANCE", ` + p + `, "state": "DONE"}`, `state is "DONE": want one of IS_ACTIVE`},
		"no state":            {`{"type": "ASSERT_ELEMENT_INSTANCE", ` + p + `, "elementSelector": {"elementId": "x"}}`, `state is missing: want one of IS_ACTIVE`},
		"nothing asserted":    {`{"type": "ASSERT_PROCESS_INSTANCE", ` + p + `}`, "want at least one of state, hasActiveIncidents"},
		"empty selector":      {`{"type": "COMPLETE_JOB", "jobSelector": {}}`, "jobSelector is {}: want at least one of jobType, elementId, processDefinitionId"},
		"empty element":       {`{"type": "ASSERT_ELEMENT_INSTANCES", ` + p + `, "elementSelectors": [{"elementId": "a"}, {}], "state": "IS_ACTIVE"}`, "elementSelectors[1] is {}: want at least one of elementId, elementName"},
		"no elements":         {`{"type": "ASSERT_ELEMENT_INSTANCES", ` + p + `, "elementSelectors": [], "state": "IS_ACTIVE"}`, "elementSelectors is []: want at least 1 entries"},
		"no process":          {`{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {}}`, "processDefinitionSelector.processDefinitionId is missing: want a text in quotes"},
		"process is a number": {`{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {"processDefinitionId": 7}}`, "processDefinitionId is 7: want a text in quotes"},
		"bad expression":      {`{"type": "ASSERT_VARIABLE", ` + p + `, "variableName": "x", "satisfiesExpression": "x >"}`, `satisfiesExpression is "x >": want a FEEL expression`},
		"judge":               {`{"type": "ASSERT_VARIABLE", ` + p + `, "variableName": "x", "satisfiesExpression": "x", "satisfiesJudge": {}}`, "satisfiesJudge is {}: want no such field"},
		"termination":         {`{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {"processDefinitionId": "p"}, "runtimeInstructions": []}`, "runtimeInstructions"},
		"amount":              {`{"type": "ASSERT_ELEMENT_INSTANCE", ` + p + `, "elementSelector": {"elementId": "x"}, "state": "IS_ACTIVE", "amount": 0}`, "amount is 0: want a whole number of at least 1"},
		"half an amount":      {`{"type": "ASSERT_ELEMENT_INSTANCE", ` + p + `, "elementSelector": {"elementId": "x"}, "state": "IS_ACTIVE", "amount": 1.5}`, "amount is 1.5: want a whole number"},
		"incidents":           {`{"type": "ASSERT_PROCESS_INSTANCE", ` + p + `, "hasActiveIncidents": "no"}`, `hasActiveIncidents is "no": want true or false`},
		"variables no object": {`{"type": "BROADCAST_SIGNAL", "signalName": "x", "variables": 7}`, "variables is 7: want an object"},
		"null":                {`{"type": "BROADCAST_SIGNAL", "signalName": null}`, "signalName is null: want a text in quotes"},
		"twice":               {`{"type": "BROADCAST_SIGNAL", "signalName": "x", "signalName": "y"}`, "signalName is there twice: want it once"},
	}
	for name, tt := range tests {
		_, err := enginetest.ParseScenarios([]byte("{\"testCases\": [{\"name\": \"n\", \"instructions\": [\n" + tt.instruction + "\n]}]}"))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "2: testCases[0].instructions[0]") {
			t.Errorf("%s: got %v, want line 2, testCases[0].instructions[0] and %q", name, err, tt.want)
		}
		if m := enginetest.Mistakes(err); len(m) != 1 {
			t.Errorf("%s: %d mistakes in %v, want 1", name, len(m), err)
		}
	}
	for text, want := range map[string]string{
		`[]`: "1: scenario file is []: want an object", `{"testCases": []}`: "testCases is []: want at least 1", `{"cases": []}`: "cases is []: want no such field",
		`{"testCases": [{"instructions": []}]}`: "testCases[0].name is missing", `{"testCases": []} x`: "scenario file is longer than its JSON value",
		"{\n\"testCases\": [\n,]}": "3: scenario file is no JSON", "": "is no JSON",
		`{"testCases": [{"name": "a", "instructions": []}, {"name": "a", "instructions": []}]}`: `testCases[1].name is "a": want a name that no other test case has`,
	} {
		if _, err := enginetest.ParseScenarios([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestReadScenarios(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.json")
	if err := os.WriteFile(path, []byte("{\"testCases\": [{\"name\": \"n\",\n\"instructions\": [{\"type\": \"SET_TIME\"}, {\"type\": \"X\"}]}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := enginetest.ReadScenarios(path)
	if found := enginetest.Mistakes(err); len(found) != 2 || found[0].File != path || found[0].Line != 2 || found[0].Path != "testCases[0].instructions[0].time" || !strings.HasPrefix(err.Error(), path+":2: testCases[0]") {
		t.Errorf("got %v", err)
	}
	if _, err := enginetest.ReadScenarios(path + ".none"); !errors.Is(err, fs.ErrNotExist) || enginetest.Mistakes(err) != nil {
		t.Errorf("got %v, want that there is no such file", err)
	}
}

// Play runs without a test: the error says line and instruction, and the engine is closed whatever happens.
func TestScenarios_play(t *testing.T) {
	t.Parallel()
	f, err := enginetest.ParseScenarios([]byte(`{"testCases": [{"name": "n", "instructions": [
		{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {"processDefinitionId": "errand"}, "variables": {"owner": "ada"}},
		{"type": "ASSERT_PROCESS_INSTANCE", "processInstanceSelector": {"processDefinitionId": "errand"}, "state": "IS_ACTIVE"},
		{"type": "ASSERT_ELEMENT_INSTANCE", "processInstanceSelector": {"processDefinitionId": "errand"}, "elementSelector": {"elementId": "buy"}, "state": "IS_COMPLETED"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var c enginetest.Coverage
	s := enginetest.Scenarios{Models: []enginetest.Model{errand()}, Coverage: &c}
	err = s.Play(t.Context(), f.TestCases[0])
	if err == nil || !strings.HasPrefix(err.Error(), "line 4, instruction 3, ASSERT_ELEMENT_INSTANCE: element buy: 0 runs IS_COMPLETED, want 1") {
		t.Errorf("got %v", err)
	}
	if m := c.Models(); len(m) != 1 || m[0].Covered == 0 {
		t.Errorf("coverage of a case that failed: %+v", m)
	}
	f.TestCases[0].Instructions = f.TestCases[0].Instructions[:2]
	if err := s.Play(t.Context(), f.TestCases[0]); err == nil || !strings.Contains(err.Error(), "was not read by ParseScenarios") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Play(ctx, enginetest.Scenario{Name: "empty"}); err != nil {
		t.Errorf("a case with no instructions: %v", err)
	}
}

// spyTB keeps what a helper fails with and still cleans up with the test.
type spyTB struct {
	testing.TB
	said string
}

func (s *spyTB) Helper() {}

func (s *spyTB) Fatalf(format string, args ...any) {
	s.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fails runs f with a spy and gives what it failed with, "" when it did not.
func fails(t *testing.T, f func(t testing.TB)) string {
	t.Helper()
	spy := &spyTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(spy)
	}()
	<-done
	return spy.said
}

// Assertions of a scenario that do not hold fail the test, with the instruction and what is there instead.
func TestScenarios_fail(t *testing.T) {
	t.Parallel()
	const head = `{"testCases": [{"name": "n", "instructions": [{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {"processDefinitionId": "errand"}, "variables": {"owner": "ada"}},`
	process := `"processInstanceSelector": {"processDefinitionId": "errand"}`
	tests := map[string]string{
		`{"type": "ASSERT_PROCESS_INSTANCE", ` + process + `, "state": "IS_COMPLETED"}`:                                                                               "process instance IS_ACTIVE, want IS_COMPLETED; active: [buy]; nobody serves [shop.buy]",
		`{"type": "ASSERT_PROCESS_INSTANCE", ` + process + `, "hasActiveIncidents": true}`:                                                                            "active incidents: want true",
		`{"type": "ASSERT_PROCESS_INSTANCE", "processInstanceSelector": {"processDefinitionId": "nothing"}, "state": "IS_ACTIVE"}`:                                    `process "nothing" has no instance`,
		`{"type": "ASSERT_ELEMENT_INSTANCE", ` + process + `, "elementSelector": {"elementId": "buy"}, "state": "IS_ACTIVE", "amount": 2}`:                            "1 runs IS_ACTIVE, want 2",
		`{"type": "ASSERT_ELEMENT_INSTANCE", ` + process + `, "elementSelector": {"elementId": "bye"}, "state": "IS_ACTIVE"}`:                                         `no model has an element with elementId "bye"`,
		`{"type": "ASSERT_ELEMENT_INSTANCES", ` + process + `, "elementSelectors": [{"elementName": "Buy"}], "state": "IS_NOT_ACTIVE"}`:                               "element buy is ACTIVE",
		`{"type": "ASSERT_ELEMENT_INSTANCES", ` + process + `, "elementSelectors": [{"elementId": "buy"}, {"elementId": "start"}], "state": "IS_COMPLETED_IN_ORDER"}`: "element buy did not complete, or not in order; completed: [start]",
		`{"type": "ASSERT_ELEMENT_INSTANCES", ` + process + `, "elementSelectors": [{"elementId": "home"}], "state": "IS_ACTIVE_EXACTLY"}`:                            "element buy is active too",
		`{"type": "ASSERT_VARIABLES", ` + process + `, "variableNames": ["what"], "variables": {"owner": "bob"}}`:                                                     `variable owner is "ada", want "bob"`,
		`{"type": "ASSERT_VARIABLE", ` + process + `, "variableName": "owner", "satisfiesExpression": "owner = \"bob\""}`:                                             `is false for owner = "ada"`,
		`{"type": "ASSERT_USER_TASK", "userTaskSelector": {"elementId": "buy"}}`:                                                                                      "no user task",
		`{"type": "ASSERT_COMPENSATION", ` + process + `, "elementSelectors": [{"elementId": "tell"}]}`:                                                               "compensation handlers [], want [tell]",
		`{"type": "COMPLETE_JOB", "jobSelector": {"jobType": "guest.tell"}}`:                                                                                          "no open job",
		`{"type": "COMPLETE_USER_TASK", "userTaskSelector": {"taskName": "Buy"}}`:                                                                                     "no open user task",
		`{"type": "RESOLVE_INCIDENT", "incidentSelector": {"elementId": "buy"}}`:                                                                                      "no open incident",
		`{"type": "CORRELATE_MESSAGE", "name": "errand.home", "correlationKey": "ada"}`:                                                                               "none was found",
		`{"type": "MOCK_JOB_WORKER_COMPLETE_JOB", "jobType": "shop.by"}`:                                                                                              `no model has the job type "shop.by"; they have [guest.tell shop.buy]`,
		`{"type": "MOCK_JOB_WORKER_COMPLETE_JOB", "jobType": "shop.buy", "useExampleData": true}`:                                                                     `element "buy" has no example data`,
	}
	for instruction, want := range tests {
		f, err := enginetest.ParseScenarios([]byte(head + instruction + `]}]}`))
		if err != nil {
			t.Errorf("%s: %v", instruction, err)
			continue
		}
		said := fails(t, func(t testing.TB) { enginetest.Scenarios{Models: []enginetest.Model{errand()}}.Run(t, f.TestCases[0]) })
		if !strings.Contains(said, want) || !strings.HasPrefix(said, "instruction 2, ") {
			t.Errorf("%s\nsaid %q\nwant instruction 2 and %q", instruction, said, want)
		}
	}
}

func FuzzParseScenarios(f *testing.F) {
	f.Add([]byte(`{"testCases": [{"name": "n", "instructions": [{"type": "ASSERT_VARIABLE", "processInstanceSelector": {"processDefinitionId": "p"}, "variableName": "x", "satisfiesExpression": "x > 1"}]}]}`))
	f.Add([]byte(`{"testCases": [{"name": "n", "instructions": [{"type": "INCREASE_TIME", "duration": "P1Y"}, null, 7]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := enginetest.ParseScenarios(text); err == nil && len(s.TestCases) == 0 {
			t.Error("no test case and no error")
		}
	})
}
