package enginetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The names of Camunda Process Test's JSON test cases, schema https://camunda.com/json-schema/cpt-test-cases/8.9/schema.json.
// They are written down by hand, apart from the code, so that a name of ours that Camunda has not is seen.
var (
	// cptFile and cptCase are the fields of a file and of a test case; processId and metadata are of the Modeler's test mode.
	cptFile = strings.Fields("$schema processId testCases")
	cptCase = strings.Fields("name description instructions metadata")

	// cptInstructions are the fields of each instruction beside its type.
	cptInstructions = map[string]string{
		"ASSERT_DECISION":                              "decisionSelector output matchedRules notMatchedRules noMatchedRules",
		"ASSERT_ELEMENT_INSTANCE":                      "processInstanceSelector elementSelector state amount",
		"ASSERT_ELEMENT_INSTANCES":                     "processInstanceSelector elementSelectors state",
		"ASSERT_PROCESS_INSTANCE":                      "processInstanceSelector state hasActiveIncidents",
		"ASSERT_PROCESS_INSTANCE_MESSAGE_SUBSCRIPTION": "processInstanceSelector messageSelector state",
		"ASSERT_USER_TASK":                             "userTaskSelector state assignee candidateGroups priority elementId name dueDate followUpDate",
		"ASSERT_VARIABLE":                              "processInstanceSelector elementSelector variableName satisfiesExpression satisfiesJudge similarTo",
		"ASSERT_VARIABLES":                             "processInstanceSelector elementSelector variableNames variables",
		"BROADCAST_SIGNAL":                             "signalName variables",
		"COMPLETE_JOB":                                 "jobSelector variables useExampleData",
		"COMPLETE_JOB_AD_HOC_SUB_PROCESS":              "jobSelector variables activateElements cancelRemainingInstances completionConditionFulfilled",
		"COMPLETE_JOB_USER_TASK_LISTENER":              "jobSelector denied deniedReason corrections",
		"COMPLETE_USER_TASK":                           "userTaskSelector variables useExampleData",
		"CONDITIONAL_BEHAVIOR":                         "name conditions actions",
		"CORRELATE_MESSAGE":                            "name correlationKey variables",
		"CREATE_PROCESS_INSTANCE":                      "processDefinitionSelector variables startInstructions runtimeInstructions",
		"EVALUATE_CONDITIONAL_START_EVENT":             "variables",
		"EVALUATE_DECISION":                            "decisionDefinitionSelector variables",
		"INCREASE_TIME":                                "duration",
		"MOCK_CHILD_PROCESS":                           "processDefinitionId variables",
		"MOCK_DMN_DECISION":                            "decisionDefinitionId variables",
		"MOCK_JOB_WORKER_COMPLETE_JOB":                 "jobType variables useExampleData",
		"MOCK_JOB_WORKER_THROW_BPMN_ERROR":             "jobType errorCode errorMessage variables",
		"PUBLISH_MESSAGE":                              "name correlationKey variables timeToLive messageId",
		"RESOLVE_INCIDENT":                             "incidentSelector",
		"SET_TIME":                                     "time",
		"THROW_BPMN_ERROR_FROM_JOB":                    "jobSelector errorCode errorMessage variables",
		"UPDATE_VARIABLES":                             "processInstanceSelector variables elementSelector",
	}

	// cptParts are the fields of the objects that instructions have, or of each object of a list.
	cptParts = map[string]string{
		"decisionDefinitionSelector": "decisionDefinitionId",
		"decisionSelector":           "decisionDefinitionId decisionDefinitionName",
		"elementSelector":            "elementId elementName",
		"elementSelectors":           "elementId elementName",
		"incidentSelector":           "elementId processDefinitionId",
		"jobSelector":                "jobType elementId processDefinitionId",
		"messageSelector":            "messageName correlationKey",
		"processDefinitionSelector":  "processDefinitionId",
		"processInstanceSelector":    "processDefinitionId",
		"runtimeInstructions":        "type afterElementId",
		"startInstructions":          "elementId",
		"userTaskSelector":           "elementId taskName processDefinitionId",
	}

	// cptStates are what the state of an assertion may be.
	cptStates = map[string]string{
		"ASSERT_ELEMENT_INSTANCE":  "IS_ACTIVE IS_COMPLETED IS_TERMINATED",
		"ASSERT_ELEMENT_INSTANCES": "IS_ACTIVE IS_COMPLETED IS_TERMINATED IS_NOT_ACTIVE IS_NOT_ACTIVATED IS_ACTIVE_EXACTLY IS_COMPLETED_IN_ORDER",
		"ASSERT_PROCESS_INSTANCE":  "IS_ACTIVE IS_COMPLETED IS_CREATED IS_TERMINATED",
		"ASSERT_USER_TASK":         "IS_CREATED IS_COMPLETED IS_CANCELED IS_FAILED",
	}

	// ownInstructions are those that Camunda has not.
	ownInstructions = map[string]string{
		"ASSERT_COMPENSATION":      "processInstanceSelector elementSelectors",
		"MOCK_JOB_WORKER_FAIL_JOB": "jobType times errorMessage",
	}
)

// strangers lists the names of a scenario file that neither Camunda nor we have, each with its place.
func strangers(t *testing.T, text []byte) (found []string) {
	t.Helper()
	fields := func(doc json.RawMessage) map[string]json.RawMessage {
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(doc, &parts); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		return parts
	}
	list := func(doc json.RawMessage) (items []json.RawMessage) {
		if err := json.Unmarshal(doc, &items); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		return items
	}
	check := func(place string, parts map[string]json.RawMessage, known []string) {
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if !slices.Contains(known, name) {
				found = append(found, place+"."+name)
			}
		}
	}
	file := fields(text)
	check("file", file, cptFile)
	for i, c := range list(file["testCases"]) {
		parts := fields(c)
		check(fmt.Sprintf("testCases[%d]", i), parts, cptCase)
		for n, doc := range list(parts["instructions"]) {
			in := fields(doc)
			var kind, state string
			_ = json.Unmarshal(in["type"], &kind)
			place := fmt.Sprintf("testCases[%d].instructions[%d] %s", i, n, kind)
			known, ours := ownInstructions[kind]
			if !ours {
				if known = cptInstructions[kind]; known == "" {
					found = append(found, place)
					continue
				}
			}
			delete(in, "type")
			check(place, in, strings.Fields(known))
			if in["state"] != nil && (json.Unmarshal(in["state"], &state) != nil || !slices.Contains(strings.Fields(cptStates[kind]), state)) {
				found = append(found, place+".state "+state)
			}
			for name, part := range in {
				of, ok := cptParts[name]
				if !ok {
					continue
				}
				items := []json.RawMessage{part}
				if strings.HasSuffix(name, "s") {
					items = list(part)
				}
				for _, item := range items {
					check(place+"."+name, fields(item), strings.Fields(of))
				}
			}
		}
	}
	return found
}

// TestScenarios_camundaNames: our example files use Camunda's names, and beside them only the instructions that we say are ours.
func TestScenarios_camundaNames(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"testdata/*.json", "../../examples/modeltest/*.json"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range strangers(t, text) {
				t.Errorf("%s: %s is no name of Camunda Process Test and no instruction of ours", path, name)
			}
		}
	}
}

// The check sees a wrong name at every depth.
func TestScenarios_camundaNames_not(t *testing.T) {
	t.Parallel()
	text := `{"cases": 1, "testCases": [{"name": "n", "steps": [], "instructions": [
		{"type": "DANCE"}, {"type": "INCREASE_TIME", "by": "PT1M"}, {"type": "COMPLETE_JOB", "jobSelector": {"name": "x"}},
		{"type": "ASSERT_ELEMENT_INSTANCES", "elementSelectors": [{"elementId": "a"}, {"element": "b"}], "state": "IS_DONE"},
		{"type": "MOCK_JOB_WORKER_FAIL_JOB", "jobType": "x", "retries": 1}]}]}`
	want := []string{
		"file.cases", "testCases[0].steps", "testCases[0].instructions[0] DANCE", "testCases[0].instructions[1] INCREASE_TIME.by",
		"testCases[0].instructions[2] COMPLETE_JOB.jobSelector.name", "testCases[0].instructions[3] ASSERT_ELEMENT_INSTANCES.state IS_DONE",
		"testCases[0].instructions[3] ASSERT_ELEMENT_INSTANCES.elementSelectors.element", "testCases[0].instructions[4] MOCK_JOB_WORKER_FAIL_JOB.retries",
	}
	if got := strangers(t, []byte(text)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInstructions_camundaNames: every field, selector and state that a file may have is Camunda's, and what is not is an
// instruction that page and package documentation call ours.
func TestInstructions_camundaNames(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/testing-a-model.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("scenario.go")
	if err != nil {
		t.Fatal(err)
	}
	_, ours, _ := strings.Cut(string(source), "// Ours, which Camunda has not:")
	ours, _, _ = strings.Cut(ours, "Camunda's, which we have not")
	for name := range ownInstructions {
		if !strings.Contains(ours, name) || !strings.Contains(string(page), "`"+name+"` (ours") {
			t.Errorf("%s is ours, and scenario.go or docs/testing-a-model.md does not say so", name)
		}
	}
	within := func(place string, of reflect.Type, known string) {
		fields, _ := fieldsOf(of)
		for _, f := range fields {
			if !slices.Contains(strings.Fields(known), f.name) {
				t.Errorf("%s.%s: Camunda Process Test has %s", place, f.name, known)
			}
		}
	}
	for name, m := range instructions() {
		known, ours := ownInstructions[name]
		if !ours {
			if known = cptInstructions[name]; known == "" {
				t.Errorf("%s is no instruction of Camunda Process Test and not documented as ours", name)
				continue
			}
		}
		within(name, m.fields, known)
		fields, _ := fieldsOf(m.fields)
		for _, f := range fields {
			if states := f.rules["enum"]; states != "" {
				for state := range strings.SplitSeq(states, "|") {
					if !slices.Contains(strings.Fields(cptStates[name]), state) {
						t.Errorf("%s: state %s, Camunda Process Test has %s", name, state, cptStates[name])
					}
				}
			}
			part := f.typ
			for part.Kind() == reflect.Pointer || part.Kind() == reflect.Slice {
				part = part.Elem()
			}
			if part.Kind() == reflect.Struct {
				within(name+"."+f.name, part, cptParts[f.name])
			}
		}
	}
}
