package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
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
	if code, _, errs := run(nil, "engine", "--history-age", "-1s"); code == ExitDone || !strings.Contains(errs, "HistoryAge is -1s") {
		t.Errorf("--history-age -1s: exit code %d, %s", code, errs)
	}
}

// --history and --history-age reach the engine.
func TestEngine_History(t *testing.T) {
	t.Parallel()
	facts, stop := runEngine(t, "--history", "1", "--history-age", "1h")
	defer stop()
	const model = `<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" id="d" targetNamespace="x"><bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f" sourceRef="s" targetRef="e"/><bpmn:endEvent id="e"/></bpmn:process></bpmn:definitions>`
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("resources", "p.bpmn")
	if err == nil {
		_, err = io.WriteString(part, model)
	}
	if err = errors.Join(err, form.Close()); err != nil {
		t.Fatal(err)
	}
	post := func(path, contentType string, body io.Reader, out any) {
		t.Helper()
		res, err := http.Post(facts["rest"]+"/v2"+path, contentType, body)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(out); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", path, res.StatusCode, err)
		}
	}
	kept := func() int {
		t.Helper()
		var found struct{ Items []any }
		post("/process-instances/search", "application/json", strings.NewReader("{}"), &found)
		return len(found.Items)
	}
	var nothing any
	post("/deployments", form.FormDataContentType(), &body, &nothing)
	for range 3 {
		post("/process-instances", "application/json", strings.NewReader(`{"processDefinitionId":"p"}`), &nothing)
	}
	if n := kept(); n != 1 {
		t.Errorf("%d instances are kept, want 1", n)
	}
	if code, _, errs := run(nil, "engine", "clock", "advance", "--rest", facts["rest"], "--by", "61m"); code != ExitDone {
		t.Errorf("advance: %d %s", code, errs)
	}
	if n := kept(); n != 0 {
		t.Errorf("%d instances are kept after an hour, want none", n)
	}
}
