package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNew scaffolds one of each into a module of its own, builds it against this one and runs its tests.
func TestNew(t *testing.T) {
	t.Parallel()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(repo, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(string(mod), "module example.com/shop") +
		"\nrequire github.com/vitrip/journeyman v0.0.0\nreplace github.com/vitrip/journeyman => " + repo + "\n"
	sum, err := os.ReadFile(filepath.Join(repo, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": text, "go.sum": string(sum)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"worker", "room-reserve"}, {"saga", "seat-hold"}, {"consumer", "booking-view", "--event", "tour.booking.confirmed"}} {
		name := strings.ReplaceAll(args[1], "-", "")
		full := append([]string{"new"}, append(args, "-o", filepath.Join(dir, name))...)
		if code, stdout, stderr := run(nil, full...); code != ExitDone || !strings.Contains(stdout, "package example.com/shop/"+name) {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		if code, _, stderr := run(nil, full...); code != ExitWrong || !strings.Contains(stderr, "is there already") {
			t.Errorf("%v again: exit code %d, %s", args, code, stderr)
		}
	}
	if code, stdout, stderr := run(nil, "bpmn", "lint", filepath.Join(dir, "seathold", "seat-hold.bpmn")); code != ExitDone {
		t.Errorf("lint of the scaffolded model: %s%s", stdout, stderr)
	}
	if code, stdout, _ := run(nil, "generate", filepath.Join(dir, "seathold", "seat-hold.bpmn"), "-o", filepath.Join(dir, "seathold"), "--check"); code != ExitDone {
		t.Errorf("generated code of the scaffolded model differs: %s", stdout)
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %v: %v\n%s", args, err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), "gofmt", "-l", dir)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("not formatted: %s %v", out, err)
	}
}

func TestNew_refusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		args []string
		want int
		says string
	}{
		"no name":    {[]string{"new", "worker"}, ExitUsage, "accepts 1 arg"},
		"bad name":   {[]string{"new", "worker", "Room_Reserve"}, ExitUsage, "lower-case words"},
		"bad event":  {[]string{"new", "consumer", "view", "--event", "Order"}, ExitUsage, "--event"},
		"no module":  {[]string{"new", "saga", "seat", "-o", dir}, ExitMissing, "go mod init"},
		"other kind": {[]string{"new", "robot", "seat"}, ExitUsage, "robot"},
	} {
		if code, stdout, stderr := run(nil, tt.args...); code != tt.want || !strings.Contains(stdout+stderr, tt.says) {
			t.Errorf("%s: exit code %d, want %d and %q in %s%s", name, code, tt.want, tt.says, stdout, stderr)
		}
	}
}
