package enginetest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var rewrite = flag.Bool("update", false, "write scenario.schema.json")

// TestScenarioSchema: the shipped schema is the one that the code checks by.
func TestScenarioSchema(t *testing.T) {
	want, err := makeSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("scenario.schema.json", want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(ScenarioSchema(), want) {
		t.Error("scenario.schema.json differs from the code; run go test ./engine/enginetest -run TestScenarioSchema -update and read the diff")
	}
}

// TestScenarioSchema_agrees: schema and code accept and refuse the same files.
func TestScenarioSchema_agrees(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(ScenarioSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("scenario.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	texts := map[string]string{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	one := func(instruction string) string {
		return `{"testCases": [{"name": "n", "instructions": [` + instruction + `]}]}`
	}
	for _, bad := range []string{
		`{}`, `[]`, `{"testCases": []}`, `{"testCases": [{"instructions": []}]}`, `{"testCases": [{"name": "", "instructions": []}]}`,
		one(`7`), one(`{}`), one(`{"type": "DANCE"}`), one(`{"type": "INCREASE_TIME"}`), one(`{"type": "INCREASE_TIME", "duration": "soon"}`),
		one(`{"type": "COMPLETE_JOB", "jobSelector": {}}`), one(`{"type": "COMPLETE_JOB", "jobSelector": {"jobType": ""}}`),
		one(`{"type": "BROADCAST_SIGNAL", "signalName": "x", "variables": [1]}`),
		one(`{"type": "ASSERT_PROCESS_INSTANCE", "processInstanceSelector": {"processDefinitionId": "p"}}`),
	} {
		texts[bad] = bad
	}
	texts["good"] = one(`{"type": "ASSERT_COMPENSATION", "processInstanceSelector": {"processDefinitionId": "p"}, "elementSelectors": []}`)
	for name, text := range texts {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		bySchema := schema.Validate(v)
		_, byCode := ParseScenarios([]byte(text))
		if (bySchema == nil) != (byCode == nil) {
			t.Errorf("%s: the schema says %v, the code %v", name, bySchema, byCode)
		}
	}
}
