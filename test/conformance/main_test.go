package conformance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// leastCases is how many named cases the suite promises.
const leastCases = 250

var update = flag.Bool("update", false, "write CASES.md anew")

// entry is one named case that ran.
type entry struct {
	name, pins string
	engineOnly string // why it is left out against other clusters; empty: it is not
}

// ledger is every case of this run.
type ledger struct {
	mu    sync.Mutex
	cases map[string]*entry
}

var seen = ledger{cases: map[string]*entry{}}

// pins notes which line of which document the test proves; a case without one fails.
func pins(tb testing.TB, line string) {
	tb.Helper()
	doc, text, _ := strings.Cut(line, ": ")
	if docs[doc] == "" || strings.TrimSpace(text) == "" {
		tb.Fatalf("the case pins %q, want \"document: what it says\" with a document of docs", line)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if e := seen.cases[tb.Name()]; e != nil {
		tb.Fatalf("the case pins %q and %q, want one line for each case", e.pins, line)
	}
	seen.cases[tb.Name()] = &entry{name: tb.Name(), pins: line}
}

// engineOnly leaves the case out against a cluster that is not the embedded engine.
func (z *cluster) engineOnly(reason string) {
	z.t.Helper()
	seen.mu.Lock()
	if e := seen.cases[z.t.Name()]; e != nil {
		e.engineOnly = reason
	}
	seen.mu.Unlock()
	if z.engine == nil {
		z.t.Skip("left out: " + reason)
	}
}

// run is a named case inside a table, on the same cluster.
func (z *cluster) run(t *testing.T, name, line string, fn func(*testing.T, *cluster)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		pins(t, line)
		fn(t, z.with(t))
	})
}

// suite checks after a whole run against the embedded engine that CASES.md tells the truth.
type suite struct{ *testing.M }

func (s suite) Run() int {
	code := s.M.Run()
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return code
		}
	}
	if code != 0 || os.Getenv("ZEEBE_TEST_ADDRESS") != "" {
		return code
	}
	if err := seen.check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func (l *ledger) check() error {
	if n := len(l.cases); n < leastCases {
		return fmt.Errorf("%d named cases, want %d at least", n, leastCases)
	}
	want := l.table()
	if *update {
		return os.WriteFile("CASES.md", []byte(want), 0o644)
	}
	got, err := os.ReadFile("CASES.md")
	if err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("CASES.md does not list the cases that ran: go test ./test/conformance -update")
	}
	return nil
}

// table is CASES.md.
func (l *ledger) table() string {
	var b strings.Builder
	var names, left []string
	used := map[string]int{}
	for name, e := range l.cases {
		names = append(names, name)
		doc, _, _ := strings.Cut(e.pins, ": ")
		used[doc]++
		if e.engineOnly != "" {
			left = append(left, name)
		}
	}
	slices.Sort(names)
	slices.Sort(left)
	fmt.Fprintf(&b, "# Cases of the conformance suite\n\nWritten by `go test ./test/conformance -update`; a run fails when it is not true.\n%d named cases, %d of them for the embedded engine only.\n\n## Documents\n\n| name | document | cases |\n|---|---|---|\n", len(names), len(left))
	var ids []string
	for id := range used {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(&b, "| %s | %s | %d |\n", id, docs[id], used[id])
	}
	b.WriteString("\n## For the embedded engine only\n\n| case | reason |\n|---|---|\n")
	for _, name := range left {
		fmt.Fprintf(&b, "| %s | %s |\n", name, l.cases[name].engineOnly)
	}
	b.WriteString("\n## Cases\n\n| case | document | what it says |\n|---|---|---|\n")
	for _, name := range names {
		doc, text, _ := strings.Cut(l.cases[name].pins, ": ")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, doc, strings.NewReplacer("|", "\\|", "\n", " ").Replace(text))
	}
	return b.String()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{m}) }
