package enginetest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/engine/enginetest"
)

func errand() enginetest.Model { return enginetest.File("testdata/errand.bpmn") }

func TestScenarios(t *testing.T) {
	t.Parallel()
	s := enginetest.Scenarios{
		Models:   []enginetest.Model{enginetest.FS(models.FS(), models.TourBooking), errand()},
		Coverage: &coverage,
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
	s.RunFiles(t, "testdata/*.json")
}

func TestParseScenarios_refusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ instruction, want string }{
		"unknown type":        {`{"type": "ASSERT_DECISION"}`, `type "ASSERT_DECISION": want one of`},
		"unknown field":       {`{"type": "INCREASE_TIME", "duration": "PT1M", "unit": "s"}`, "unit"},
		"bad duration":        {`{"type": "INCREASE_TIME", "duration": "30 minutes"}`, "want an ISO 8601 duration"},
		"no time":             {`{"type": "INCREASE_TIME", "duration": "PT0S"}`, "more than no time"},
		"bad instant":         {`{"type": "SET_TIME", "time": "noon"}`, "want an instant"},
		"bad state":           {`{"type": "ASSERT_PROCESS_INSTANCE", "processInstanceSelector": {"processDefinitionId": "p"}, "state": "DONE"}`, `state is "DONE": want one of IS_ACTIVE`},
		"nothing asserted":    {`{"type": "ASSERT_PROCESS_INSTANCE", "processInstanceSelector": {"processDefinitionId": "p"}}`, "says nothing"},
		"empty selector":      {`{"type": "COMPLETE_JOB", "jobSelector": {}}`, "a selector is empty"},
		"no process":          {`{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {}}`, "processDefinitionId is missing"},
		"bad expression":      {`{"type": "ASSERT_VARIABLE", "processInstanceSelector": {"processDefinitionId": "p"}, "variableName": "x", "satisfiesExpression": "x >"}`, "satisfiesExpression"},
		"judge":               {`{"type": "ASSERT_VARIABLE", "processInstanceSelector": {"processDefinitionId": "p"}, "variableName": "x", "satisfiesJudge": {}}`, "satisfiesJudge"},
		"termination":         {`{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {"processDefinitionId": "p"}, "runtimeInstructions": []}`, "runtimeInstructions"},
		"amount":              {`{"type": "ASSERT_ELEMENT_INSTANCE", "processInstanceSelector": {"processDefinitionId": "p"}, "elementSelector": {"elementId": "x"}, "state": "IS_ACTIVE", "amount": 0}`, "amount is 0"},
		"variables no object": {`{"type": "BROADCAST_SIGNAL", "signalName": "x", "variables": 7}`, "variables"},
	}
	for name, tt := range tests {
		_, err := enginetest.ParseScenarios([]byte(`{"testCases": [{"name": "n", "instructions": [` + tt.instruction + `]}]}`))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "instruction 1") {
			t.Errorf("%s: got %v, want instruction 1 and %q", name, err, tt.want)
		}
	}
	for text, want := range map[string]string{`[]`: "scenario file", `{"testCases": []}`: "empty", `{"cases": []}`: "cases", `{"testCases": [{"instructions": []}]}`: "name is missing", `{"testCases": []} x`: "scenario file"} {
		if _, err := enginetest.ParseScenarios([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
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
