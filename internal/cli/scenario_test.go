package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const errandModel = "../../engine/enginetest/testdata/errand.bpmn"

// scenarioFile writes a scenario file with one test case per list of instructions.
func scenarioFile(t *testing.T, instructions ...string) string {
	t.Helper()
	var cases []string
	for i, list := range instructions {
		cases = append(cases, `{"name": "case `+string(rune('a'+i))+`", "instructions": [`+list+`]}`)
	}
	path := filepath.Join(t.TempDir(), "errand.json")
	if err := os.WriteFile(path, []byte(`{"testCases": [`+strings.Join(cases, ",\n")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	goErrand = `{"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": {"processDefinitionId": "errand"}, "variables": {"owner": "ada"}}`
	atBuy    = `{"type": "ASSERT_ELEMENT_INSTANCE", "processInstanceSelector": {"processDefinitionId": "errand"}, "elementSelector": {"elementId": "buy"}, "state": "IS_ACTIVE"}`
	atHome   = `{"type": "ASSERT_ELEMENT_INSTANCE", "processInstanceSelector": {"processDefinitionId": "errand"}, "elementSelector": {"elementId": "home"}, "state": "IS_ACTIVE"}`
)

func TestTest(t *testing.T) {
	t.Parallel()
	path := scenarioFile(t, goErrand+","+atBuy, goErrand+","+atHome)
	code, stdout, _ := run(nil, "test", path, "--model", errandModel)
	if code != ExitWrong || !strings.Contains(stdout, "ok   "+path+": case a (") || !strings.Contains(stdout, "FAIL "+path+": case b: line 2, instruction 2, ASSERT_ELEMENT_INSTANCE: element home: 0 runs IS_ACTIVE, want 1; active: [buy]; nobody serves [shop.buy]") ||
		!strings.Contains(stdout, "1 passed, 1 failed, 0 mistakes in files") || !strings.Contains(stdout, "never completed: home") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	dir := filepath.Join(t.TempDir(), "coverage")
	code, stdout, stderr := run(nil, "test", path, "--model", errandModel, "--json", "--coverage", dir)
	var r scenarioReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != ExitWrong || r.Passed != 1 || r.Failed != 1 || len(r.Cases) != 2 || r.Cases[1].Passed || len(r.Coverage) != 1 || r.Coverage[0].Covered == 0 || !strings.Contains(stderr, "FAIL") {
		t.Errorf("exit code %d, %v, %+v, stderr %s", code, err, r, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "errand.svg")); err != nil {
		t.Error(err)
	}
	if code, stdout, stderr := run(nil, "test", path, "--model", errandModel, "--complete-others"); code != ExitWrong || !strings.Contains(stdout, "ok   "+path+": case b") {
		t.Errorf("with the others completed case b ends at home: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// The models lie beside the file, all is well.
func TestTest_passes(t *testing.T) {
	t.Parallel()
	path := scenarioFile(t, goErrand+","+atBuy)
	text, err := os.ReadFile(errandModel)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "errand.bpmn"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := run(nil, "test", path); code != ExitDone || !strings.Contains(stdout, "1 passed, 0 failed") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestTest_mistakes(t *testing.T) {
	t.Parallel()
	path := scenarioFile(t, `{"type": "INCREASE_TIME", "duration": "soon"}`)
	code, stdout, _ := run(nil, "test", path, "--model", errandModel)
	if want := path + `:1: testCases[0].instructions[0].duration is "soon": want an ISO 8601 duration`; code != ExitWrong || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, want %q in\n%s", code, want, stdout)
	}
	code, stdout, _ = run(nil, "test", path, "--model", errandModel, "--json")
	var r scenarioReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != ExitWrong || len(r.Mistakes) != 1 || r.Mistakes[0].File != path || r.Mistakes[0].Path != "testCases[0].instructions[0].duration" || r.Mistakes[0].Value != `"soon"` {
		t.Errorf("exit code %d, %v, %+v", code, err, r)
	}
	for name, tt := range map[string]struct {
		args []string
		want int
		says string
	}{
		"no file":      {nil, ExitUsage, "no scenario file"},
		"missing file": {[]string{path + ".none"}, ExitMissing, "errand.json.none"},
		"no model":     {[]string{scenarioFile(t, goErrand)}, ExitMissing, "name the models with --model"},
		"bad model":    {[]string{scenarioFile(t, goErrand), "--model", path}, ExitWrong, "errand.json"},
		"lost model":   {[]string{scenarioFile(t, goErrand), "--model", "none.bpmn"}, ExitMissing, "none.bpmn"},
	} {
		code, stdout, stderr := run(nil, append([]string{"test"}, tt.args...)...)
		if code != tt.want || !strings.Contains(stdout+stderr, tt.says) {
			t.Errorf("%s: exit code %d, want %d and %q in %s%s", name, code, tt.want, tt.says, stdout, stderr)
		}
	}
	if code, stdout, _ := run(nil, "test", "--schema"); code != ExitDone || !json.Valid([]byte(stdout)) || !strings.Contains(stdout, "MOCK_JOB_WORKER_COMPLETE_JOB") {
		t.Errorf("schema: exit code %d", code)
	}
}

// The example's test cases, as its page says to run them.
func TestTest_example(t *testing.T) {
	t.Parallel()
	if code, stdout, stderr := run(nil, "test", "../../examples/modeltest/leave.json"); code != ExitDone || !strings.Contains(stdout, "4 passed, 0 failed, 0 mistakes in files") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
