package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGenerate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my-travel")
	model := "../../bpmn/models/refund.bpmn"
	generate := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := run(nil, append([]string{"generate", model, "-o", dir}, args...)...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d:\n%s%s", args, code, want, stdout, stderr)
		}
		return stdout
	}
	if out := generate(ExitWrong, "--check"); !strings.Contains(out, "refund_gen.go: missing") {
		t.Errorf("check of an empty folder says %q", out)
	}
	if out := generate(ExitDone); !strings.Contains(out, "package mytravel") {
		t.Errorf("generate says %q", out)
	}
	if out := generate(ExitDone, "--check"); out != "" {
		t.Errorf("check of fresh files says %q", out)
	}
	path := filepath.Join(dir, "refund_gen.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "segmentRefund", "segmentRefunded", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := generate(ExitWrong, "--check"); !strings.Contains(out, `"segmentRefunded"`) {
		t.Errorf("check does not show the changed line: %q", out)
	}
	var doc struct{ Differences []difference }
	if err := json.Unmarshal([]byte(generate(ExitWrong, "--check", "--json")), &doc); err != nil || len(doc.Differences) != 1 || doc.Differences[0].Reason != "differs" {
		t.Errorf("%v, %+v", err, doc)
	}
	generate(ExitWrong, "-p", "Not A Package")
	if code, _, stderr := run(nil, "generate", filepath.Join(dir, "none.bpmn")); code != ExitMissing || !strings.Contains(stderr, "none.bpmn") {
		t.Errorf("missing model: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := run(nil, "generate", path, "-o", dir); code != ExitWrong || !strings.Contains(stderr, "refund_gen.go") {
		t.Errorf("no model: exit code %d, %s", code, stderr)
	}
}
