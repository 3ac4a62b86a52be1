package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// run runs one command line with an environment of its own.
func run(env map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(args, Streams{
		In: strings.NewReader(""), Out: &out, Err: &errs,
		Getenv: func(name string) string { return env[name] },
		Exit:   func(int) {},
	})
	return code, out.String(), errs.String()
}

func TestMain_exitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := write("bad.bpmn", "<definitions/>")
	model := "../../bpmn/models/refund.bpmn"
	tests := map[string]struct {
		args []string
		want int
		says string // in stdout or stderr
	}{
		"no command":                     {nil, ExitDone, "journeyman demo"},
		"unknown command":                {[]string{"dance"}, ExitUsage, `unknown command "dance"`},
		"unknown flag":                   {[]string{"version", "--loud"}, ExitUsage, "--loud"},
		"help topic":                     {[]string{"help", "exit-codes"}, ExitDone, "partly done"},
		"version":                        {[]string{"version"}, ExitDone, "go1."},
		"lint without a file":            {[]string{"bpmn", "lint"}, ExitUsage, "requires at least 1 arg"},
		"lint of a missing file":         {[]string{"bpmn", "lint", filepath.Join(dir, "none.bpmn")}, ExitMissing, "none.bpmn"},
		"lint of a bad model":            {[]string{"bpmn", "lint", bad}, ExitWrong, "bad.bpmn"},
		"lint of a good model":           {[]string{"bpmn", "lint", model}, ExitDone, ""},
		"draw":                           {[]string{"bpmn", "draw", model}, ExitDone, "<svg"},
		"migrate without a database":     {[]string{"migrate"}, ExitUsage, "--dsn or JOURNEYMAN_DSN"},
		"migrate without a server":       {[]string{"migrate", "--dsn", "host=" + dir + " user=postgres"}, ExitMissing, "database"},
		"run without anything":           {[]string{"run"}, ExitUsage, "--zeebe or JOURNEYMAN_ZEEBE"},
		"clock of no engine":             {[]string{"engine", "clock", "advance", "--rest", "http://127.0.0.1:1", "--by", "1m"}, ExitMissing, "engine"},
		"clock moved by nothing":         {[]string{"engine", "clock", "advance"}, ExitUsage, "want more than 0"},
		"demo with fewer than no people": {[]string{"demo", "--bookings", "-1"}, ExitUsage, "want 0 or more"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(nil, tt.args...)
			if code != tt.want || !strings.Contains(stdout+stderr, tt.says) {
				t.Errorf("exit code %d, want %d and %q in:\n%s%s", code, tt.want, tt.says, stdout, stderr)
			}
		})
	}
}

func TestMain_json(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	for _, args := range [][]string{
		{"version", "--json"}, {"bpmn", "lint", "--json", "../../bpmn/models/refund.bpmn"}, {"migrate", "--json", "--dsn", dsn},
	} {
		code, stdout, stderr := run(nil, args...)
		var v map[string]any
		if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != ExitDone {
			t.Errorf("%v: exit code %d, %v: want one JSON document:\n%s%s", args, code, err, stdout, stderr)
		}
	}
	if code, stdout, _ := run(map[string]string{"JOURNEYMAN_DSN": dsn}, "migrate"); code != ExitDone || !strings.Contains(stdout, "0001_create_outbox.sql") {
		t.Errorf("second migrate, DSN from the environment: exit code %d:\n%s", code, stdout)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env  string
		args []string
		want string
	}{
		"default":                        {"", nil, "here"},
		"environment over default":       {"there", nil, "there"},
		"flag over environment":          {"there", []string{"--place", "everywhere"}, "everywhere"},
		"an empty flag is a given value": {"there", []string{"--place", ""}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var place string
			cmd := &cobra.Command{Use: "x", RunE: func(cmd *cobra.Command, _ []string) error {
				return fromEnvironment(cmd, func(string) string { return tt.env })
			}}
			cmd.Flags().StringVar(&place, "place", "here", "where")
			env(cmd, "place", "PLACE")
			cmd.SetArgs(tt.args)
			if err := cmd.Execute(); err != nil {
				t.Fatal(err)
			}
			if place != tt.want {
				t.Errorf("got %q, want %q", place, tt.want)
			}
		})
	}
	if code, _, stderr := run(map[string]string{"JOURNEYMAN_MAX_JOBS_ACTIVE": "many"}, "run"); code != ExitUsage || !strings.Contains(stderr, "JOURNEYMAN_MAX_JOBS_ACTIVE") {
		t.Errorf("bad variable: exit code %d, %s", code, stderr)
	}
}

// TestSignals: the first signal lets the command end in order, the second one ends the process.
func TestSignals(t *testing.T) {
	t.Parallel()
	signals, exited := make(chan os.Signal, 2), make(chan int, 1)
	out := &notice{line: make(chan struct{})}
	s := Streams{
		In: strings.NewReader(""), Out: out, Err: &bytes.Buffer{}, Getenv: func(string) string { return "" },
		Signals: signals, Exit: func(code int) { exited <- code },
	}
	done := make(chan int, 1)
	go func() {
		done <- Main([]string{"engine", "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0", "--log-level", "disabled"}, s)
	}()
	<-out.line
	signals <- syscall.SIGTERM
	select {
	case code := <-done:
		if code != ExitDone {
			t.Errorf("engine stopped by a signal: exit code %d, want 0", code)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the first signal did not end the command")
	}

	stuck := Streams{Signals: signals, Exit: s.Exit}
	end := make(chan struct{})
	go func() {
		defer close(end)
		watchSignals(stuck, func(error) {}, make(chan struct{}))
	}()
	signals <- os.Interrupt
	signals <- os.Interrupt
	if code := <-exited; code != ExitInterrupted {
		t.Errorf("second signal: exit code %d, want %d", code, ExitInterrupted)
	}
	<-end
}

// notice tells when the first line is written.
type notice struct {
	line chan struct{}
	seen bool
}

func (n *notice) Write(p []byte) (int, error) {
	if !n.seen {
		n.seen = true
		close(n.line)
	}
	return len(p), nil
}

func TestExit(t *testing.T) {
	t.Parallel()
	if exit(ExitWrong, nil) != nil {
		t.Error("no error became one")
	}
	var e *exitError
	if err := exit(ExitMissing, os.ErrNotExist); !errors.As(err, &e) || e.code != ExitMissing || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
