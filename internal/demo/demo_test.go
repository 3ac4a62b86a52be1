package demo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/vitrip/journeyman/examples/bookings"
	"github.com/vitrip/journeyman/internal/app"
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

// perform runs the demo over some files of the script.
func perform(t *testing.T, cfg Config) audit.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	var out bytes.Buffer
	cfg.Out, cfg.Bookings, cfg.LogFile = &out, 1, filepath.Join(t.TempDir(), "log")
	report, err := Run(ctx, cfg)
	t.Logf("%s", out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(cfg.LogFile, 40))
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

func TestRun(t *testing.T) {
	exe := binary(t, "")
	t.Run("whole script", func(t *testing.T) { wholeScript(t, exe) })
	t.Run("interrupted", func(t *testing.T) { interrupted(t, exe) })
}

// wholeScript plays everything: every crash point once, and a clean audit.
func wholeScript(t *testing.T, exe string) {
	t.Helper()
	r := perform(t, Config{Executable: exe, Script: bookings.FS()})
	if !r.Clean() {
		t.Errorf("findings:\n%s", strings.Join(r.Findings, "\n"))
	}
	if r.OrphansMade < 2 || r.DuplicatesDelivered == 0 || r.WorkerKills < len(wantPoints) || r.Refunds == 0 || r.Expired == 0 || r.Cancelled == 0 {
		t.Errorf("the run did not break what it should: %+v", r)
	}
}

// interrupted ends a run early and looks for what is left behind.
func interrupted(t *testing.T, exe string) {
	t.Helper()
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

// TestRun_broken breaks one part of the worker process at a time and wants the audit to see it.
func TestRun_broken(t *testing.T) {
	exe := binary(t, "ruleswitch")
	tests := map[string]struct {
		off   string // rules that the worker process leaves out
		reach func(app.Suppliers) app.Suppliers
		files []string
		bad   func(audit.Report) int
	}{
		"relay": {off: "901", files: []string{"01", "03", "06"}, bad: func(r audit.Report) int { return r.EventsLost }},
		"dedup": {off: "1,19", files: []string{"01", "04", "23", "24"}, bad: func(r audit.Report) int { return r.Repeated }},
		"undo": {
			reach: func(s app.Suppliers) app.Suppliers { s.Flight = deaf(t, s.Flight); return s },
			files: []string{"01", "03", "11"}, bad: func(r audit.Report) int { return r.OrphansOpen },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := perform(t, Config{
				Executable: exe, Script: some(t, tt.files...), Reach: tt.reach, Settle: 8 * time.Second, WorkerEnv: []string{"JOURNEYMAN_RULE_OFF=" + tt.off},
			})
			if tt.bad(r) == 0 || r.Clean() {
				t.Errorf("the audit does not see it: %+v", r)
			}
		})
	}
}

// deaf stands before a supplier and answers every cancellation with 200 without passing it on.
func deaf(t *testing.T, base string) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, ok := strings.CutSuffix(r.URL.Path, "/cancel"); ok {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"id":%q,"status":"cancelled"}`, strings.TrimPrefix(id, "/reservations/"))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
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
