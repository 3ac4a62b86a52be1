package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// runEngine starts the command and returns what it printed and a stop.
func runEngine(t *testing.T, args ...string) (facts map[string]string, stop func()) {
	t.Helper()
	r, w := io.Pipe()
	done, signals := make(chan int, 1), make(chan os.Signal, 1)
	go func() {
		code := Main(append([]string{"engine", "--json", "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0", "--log-level", "disabled"}, args...),
			Streams{In: strings.NewReader(""), Out: w, Err: io.Discard, Getenv: func(string) string { return "" }, Exit: func(int) {}, Signals: signals})
		_ = w.Close() //nolint:errcheck // in memory
		done <- code
	}()
	lines := bufio.NewReader(r)
	dec := json.NewDecoder(lines)
	if err := dec.Decode(&facts); err != nil {
		t.Fatal(err)
	}
	return facts, func() {
		t.Helper()
		signals <- syscall.SIGTERM
		if code := <-done; code != ExitDone {
			t.Errorf("exit code %d, want %d", code, ExitDone)
		}
	}
}

// The data directory keeps the clock that "engine clock advance" moved, and the incarnation.
func TestEngine_Data(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, stop := runEngine(t, "--data", dir)
	if code, out, errs := run(nil, "engine", "clock", "advance", "--rest", first["rest"], "--by", "31m"); code != ExitDone {
		t.Errorf("advance: %d %s %s", code, out, errs)
	}
	if code, _, errs := run(nil, "engine", "--data", dir, "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0"); code != ExitMissing || !strings.Contains(errs, fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("second engine: exit code %d, %s", code, errs)
	}
	stop()
	second, stop := runEngine(t, "--data", dir, "--compat", "8.5")
	if first["incarnation"] != second["incarnation"] {
		t.Errorf("incarnation %s, want %s", second["incarnation"], first["incarnation"])
	}
	code, out, errs := run(nil, "engine", "clock", "advance", "--rest", second["rest"], "--by", "1ms", "--json")
	if code != ExitDone {
		t.Errorf("advance: %d %s %s", code, out, errs)
	}
	stop()
	if code, _, errs := run(nil, "engine", "--compat", "7"); code == ExitDone || !strings.Contains(errs, `Compat is "7"`) {
		t.Errorf("--compat 7: exit code %d, %s", code, errs)
	}
}
