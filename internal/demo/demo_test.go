package demo

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/vitrip/journeyman/examples/bookings"
	"github.com/vitrip/journeyman/internal/audit"
)

// binary builds the command as a user would, with a build tag or "".
func binary(t *testing.T, tag string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journeyman")
	out, err := exec.Command("go", "build", "-tags", tag, "-o", path, "../../cmd/journeyman").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// perform runs the demo over some files of the script and checks that nothing is left behind.
func perform(t *testing.T, executable string, files fs.FS, env ...string) audit.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	var out bytes.Buffer
	log := filepath.Join(t.TempDir(), "log")
	report, err := Run(ctx, Config{Script: files, Executable: executable, Bookings: 1, Out: &out, LogFile: log, WorkerEnv: env})
	t.Logf("%s", out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(log, 40))
	}
	if t.Failed() {
		t.Logf("%s", tail(log, 40))
	}
	return report
}

// some gives the script's files whose names start with one of the numbers.
func some(t *testing.T, numbers ...string) fs.FS {
	t.Helper()
	names, err := fs.Glob(bookings.FS(), "*.json")
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{}
	for _, name := range names {
		if slices.ContainsFunc(numbers, func(n string) bool { return strings.HasPrefix(name, n) }) {
			text, err := fs.ReadFile(bookings.FS(), name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = &fstest.MapFile{Data: text}
		}
	}
	return out
}

// TestRun plays the whole script: every crash point once, and a clean audit.
func TestRun(t *testing.T) {
	r := perform(t, binary(t, ""), bookings.FS())
	if !r.Clean() {
		t.Errorf("findings:\n%s", strings.Join(r.Findings, "\n"))
	}
	if r.OrphansMade < 2 || r.DuplicatesDelivered == 0 || r.WorkerKills < len(wantPoints) || r.Refunds == 0 || r.Expired == 0 || r.Cancelled == 0 {
		t.Errorf("the run did not break what it should: %+v", r)
	}
}

// TestRun_broken breaks one part of the worker process at a time and wants the audit to see it.
func TestRun_broken(t *testing.T) {
	exe := binary(t, "ruleswitch")
	tests := map[string]struct {
		off   string
		files []string
		bad   func(audit.Report) int
	}{
		"relay": {"901", []string{"01", "03", "06"}, func(r audit.Report) int { return r.EventsLost }},
		"dedup": {"1,19", []string{"01", "04", "23", "24"}, func(r audit.Report) int { return r.Repeated }},
		"undo":  {"13", []string{"01", "11"}, func(r audit.Report) int { return r.OrphansOpen }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := perform(t, exe, some(t, tt.files...), "JOURNEYMAN_RULE_OFF="+tt.off)
			if tt.bad(r) == 0 || r.Clean() {
				t.Errorf("the audit does not see it: %+v", r)
			}
		})
	}
}

// TestRun_interrupted ends a run early and looks for what is left: files, processes.
func TestRun_interrupted(t *testing.T) {
	exe := binary(t, "")
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithCancel(context.Background())
	out := &until{text: "plain success", found: cancel}
	if _, err := Run(ctx, Config{Script: bookings.FS(), Executable: exe, Out: out}); err == nil || ctx.Err() == nil {
		t.Errorf("interrupted run: error %v", err)
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("left behind: %s", f.Name())
	}
}

// until calls found when the text was written.
type until struct {
	text  string
	found func()
	b     bytes.Buffer
}

func (u *until) Write(p []byte) (int, error) {
	u.b.Write(p)
	if strings.Contains(u.b.String(), u.text) {
		u.found()
	}
	return len(p), nil
}
