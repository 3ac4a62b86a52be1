//go:build clients

package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/test/clients/toolcache"
)

// cases is what every client plays, by name, in this order.
var cases = []string{
	"topology",
	"deploy",
	"deploy the same again",
	"deploy a broken model",
	"create, activate, complete",
	"create an unknown process",
	"fetch some variables",
	"create and wait for the result",
	"an empty poll ends in time",
	"a long poll gets the next job",
	"fail with retries and back-off",
	"a job times out",
	"extend the time-out",
	"throw an error that is caught",
	"throw an error nobody catches",
	"an incident, resolved",
	"a message, then a timer",
	"a message that waits",
	"correlate a message",
	"a signal starts a process",
	"set variables",
	"cancel",
	"a worker",
	"a streaming worker",
	"a user task",
	"search with filters, order and pages",
	"search incidents and get one",
	"search jobs",
	"search variables and elements",
	"search definitions and read the XML",
	"delete a definition",
}

// line is what a client's program prints about a case.
type line struct {
	Case   string `json:"case"`
	Cannot string `json:"cannot"` // reason why the client has no such thing
	Error  string `json:"error"`
	MS     int    `json:"ms"`
}

// TestClients plays the cases with every client, each against an engine of its own.
func TestClients(t *testing.T) {
	for _, client := range []struct {
		name   string
		able   int // cases it can play; the rest it says why not
		script string
	}{
		{"camunda8-sdk-8.8.13-grpc", 24, "sdk-grpc.mjs"},
		{"camunda8-sdk-8.8.13-rest", 29, "sdk-rest.mjs"},
		{"zeebe-node-8.3.2", 21, "zeebe-node.mjs"},
		{"orchestration-cluster-api-8.8.4", 30, "cluster-api.mjs"},
	} {
		t.Run(client.name, func(t *testing.T) {
			play(t, client.able, script(t, client.script))
		})
	}
}

// script prepares a script with the installed packages beside it.
func script(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	modules, err := toolcache.Node(t.Context(), "node")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	scripts, err := filepath.Glob("node/*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		raw, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(s)), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return command(t, "node", filepath.Join(dir, name))
}

// command is bounded: a client that hangs fails its cases.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, name, args...)
}

// play runs one client's program against a new engine and turns its lines into subtests.
func play(t *testing.T, able int, cmd *exec.Cmd) {
	t.Helper()
	e, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	}()
	models, err := filepath.Abs("models")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(append(os.Environ(), cmd.Env...), "ENGINE_GRPC="+e.Addr(), "ENGINE_REST="+e.RESTAddr(), "ENGINE_MODELS="+models)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s", cmd.Path, err, complaints.Bytes())
	}
	var names []string
	played := 0
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Case == "" {
			continue // the clients' own log lines
		}
		names = append(names, l.Case)
		t.Run(l.Case, func(t *testing.T) {
			switch {
			case l.Cannot != "":
				t.Skip("left out: " + l.Cannot)
			case l.Error != "":
				t.Error(l.Error)
			}
		})
		if l.Cannot == "" {
			played++
		}
	}
	if diff := cmp.Diff(cases, names); diff != "" {
		t.Errorf("cases (-want +played):\n%s\n%s", diff, complaints.Bytes())
	}
	if played != able {
		t.Errorf("%d cases played, want %d", played, able)
	}
	t.Logf("%d of %d cases played", played, len(names))
}
