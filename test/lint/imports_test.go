// Package lint holds the rules of the house that a machine can check: who may
// import whom, how long a file may be, what an exported signature may show.
package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/vitrip/journeyman/"

// pkg is the part of `go list -json` that the rules need.
type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

// may lists, per package of ours, which packages of ours it may import. A
// trailing /... covers a folder. Packages that are not listed here may import
// what they like (cmd, internal/cli, internal/demo, examples, test).
var may = map[string][]string{ //nolint:gochecknoglobals // a table
	"bpmn":              {"bpmn/feel", "bpmn/isotime"},
	"bpmn/feel":         {"bpmn/isotime"},
	"bpmn/isotime":      {},
	"bpmn/models":       {},
	"outcome":           {},
	"events":            {"events"},
	"events/kafka":      {"events"},
	"events/nats":       {"events"},
	"events/schema/...": {"events", "events/schema/..."},
	"events/eventstest": {"events"},
	"zeebe":             {"internal/postgres", "internal/crash", "internal/rule"},
	"zeebe/rest":        {"zeebe"},
	"dedup":             {"outcome", "internal/postgres", "internal/crash", "internal/rule"},
	"outbox":            {"events", "events/seal", "internal/postgres", "internal/crash", "internal/rule"},
	"events/inbox":      {"events", "events/seal", "outbox", "outcome", "internal/postgres", "internal/crash", "internal/rule", "internal/promtext"},
	"events/seal":       {"events"},
	"events/audit":      {"events", "events/archive", "events/seal", "outbox", "internal/postgres"},
	"events/work":       {"events", "events/seal", "outbox", "outcome", "internal/postgres", "internal/crash", "internal/promtext"},
	"events/webhook":    {"events", "events/seal", "outbox", "outcome", "internal/postgres", "internal/crash"},
	"events/archive":    {"outbox", "events", "events/seal", "internal/postgres", "internal/crash"},
	"events/replay":     {"events/archive", "events/inbox", "events/seal", "outbox", "events", "internal/postgres", "internal/crash"},
	"events/deadletter": {"events/inbox", "events/seal", "outbox", "events", "internal/postgres", "internal/crash"},
	"worker":            {"zeebe", "dedup", "outbox", "events", "outcome", "internal/crash", "internal/rule", "internal/postgres"},
	"sagas":             {"worker", "events/inbox", "events/seal", "events/webhook", "zeebe", "dedup", "outbox", "events", "outcome", "bpmn", "internal/crash", "internal/rule", "internal/postgres"},
	"operator":          {"sagas", "worker", "zeebe", "zeebe/rest", "dedup", "outbox", "events", "events/inbox", "outcome", "bpmn", "internal/postgres"},
	"engine/...":        {"bpmn", "bpmn/feel", "bpmn/isotime", "engine/..."},
}

// never lists what library packages must not pull in, with the reason.
var never = map[string]string{ //nolint:gochecknoglobals // a table
	"github.com/spf13/cobra":                 "command line, only cmd and internal/cli",
	module + "internal/cli":                  "command line, only cmd",
	module + "internal/demo":                 "the demo, only cmd",
	"testing":                                "test library in shipped code",
	"go.opentelemetry.io/otel/sdk":           "the OTel API is fine, an SDK is the program's choice",
	"log":                                    "use zerolog",
	"github.com/twmb/franz-go/pkg/kfake":     "in-process broker, only demo and tests",
	"github.com/twmb/franz-go/pkg/sr/srfake": "in-process registry, only tests",
	"github.com/Shopify/toxiproxy/v2":        "tests only",
	"github.com/pkg/errors":                  "use errors and fmt",
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			if reason, bad := never[imp]; bad && library(name) {
				t.Errorf("%s imports %s: %s", name, imp, reason)
			}
		}
		allowed, listed := rule(name)
		if !listed {
			continue
		}
		for _, imp := range p.Imports {
			short, ours := strings.CutPrefix(imp, module)
			if ours && !slices.ContainsFunc(allowed, func(a string) bool { return covers(a, short) }) {
				t.Errorf("%s imports %s; it may import only %v", name, short, allowed)
			}
		}
	}
}

// TestStandardLibraryOnly holds packages to the standard library and one named exception each.
func TestStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	except := map[string]string{
		"bpmn": "", "bpmn/models": "", "bpmn/feel": "github.com/cockroachdb/apd/v3",
		"outcome": "github.com/jackc/pgx/v5/pgconn", "internal/crash": "", "internal/rule": "", "internal/promtext": "",
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		exception, held := except[name]
		if !held {
			continue
		}
		for _, imp := range p.Imports {
			if strings.Contains(strings.Split(imp, "/")[0], ".") && !strings.HasPrefix(imp, module) && imp != exception {
				t.Errorf("%s imports %s; it may use the standard library and %q only", name, imp, exception)
			}
		}
	}
}

// TestEngineAndWorkerMeetOnTheWire keeps the test fake honest.
func TestEngineAndWorkerMeetOnTheWire(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, dep := range p.Deps {
			short := strings.TrimPrefix(dep, module)
			if covers("engine/...", name) && (short == "worker" || short == "zeebe") || name == "worker" && covers("engine/...", short) {
				t.Errorf("%s depends on %s", name, short)
			}
		}
	}
}

func rule(name string) (allowed []string, listed bool) {
	if a, ok := may[name]; ok {
		return a, true
	}
	for k, a := range may {
		if strings.HasSuffix(k, "/...") && covers(k, name) {
			return a, true
		}
	}
	return nil, false
}

// library says whether a package is for users' programs or shipped inside one.
func library(name string) bool {
	for _, p := range []string{"cmd/...", "internal/...", "examples/...", "test/...", "events/eventstest", "engine/enginetest", "worker/workertest", "sagas/sagatest"} {
		if covers(p, name) {
			return false
		}
	}
	return true
}

func covers(pattern, name string) bool {
	folder, all := strings.CutSuffix(pattern, "/...")
	return name == folder || all && strings.HasPrefix(name, folder+"/")
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}
