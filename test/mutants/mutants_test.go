//go:build mutants

package mutants

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// atOnce is how many faults are tried at the same time; limit ends a suite that a fault made hang.
const (
	atOnce = 2
	limit  = 90 * time.Second
)

var only = flag.String("only", "", "try only the faults whose name contains this text")

type result struct {
	verdict string // killed, SURVIVED or what is wrong with the fault itself
	by      string
	took    time.Duration
}

func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	count, killed := map[string]int{}, map[string]int{}
	turns := make(chan struct{}, atOnce)
	var (
		wg   sync.WaitGroup
		done atomic.Int32
	)
	var picked []mutant
	for _, m := range mutants {
		count[m.section]++
		if strings.Contains(m.name, *only) {
			picked = append(picked, m)
		}
	}
	results := make([]result, len(picked))
	for i, m := range picked {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			began := time.Now()
			results[i] = try(t.Context(), root, t.TempDir(), m)
			results[i].took = time.Since(began)
			fmt.Fprintf(os.Stderr, "%d of %d: %s: %s\n", done.Add(1), len(picked), m.name, results[i].verdict)
		})
	}
	wg.Wait()
	for i, m := range picked {
		if sections[m.section] == "" {
			t.Errorf("%s: no section %q", m.name, m.section)
		}
		r := results[i]
		fmt.Printf("%-3s %-22s | %-48s | %-8s | %-55s | %4.1fs\n", m.section, sections[m.section], m.name, r.verdict, r.by, r.took.Seconds())
		if r.verdict == "killed" {
			killed[m.section]++
		} else {
			t.Errorf("%s: %s %s", m.name, r.verdict, r.by)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(sections)) {
		fmt.Printf("section %-3s %-22s %2d faults, %2d noticed\n", s, sections[s], count[s], killed[s])
		if count[s] < 3 {
			t.Errorf("section %s, %s: %d faults, want 3 at least", s, sections[s], count[s])
		}
	}
}

// try builds one fault in and runs the tests that should notice, then all of them.
func try(ctx context.Context, root, dir string, m mutant) result {
	file := filepath.Join(root, m.file)
	source, err := os.ReadFile(file)
	if err != nil {
		return result{verdict: "broken", by: err.Error()}
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return result{verdict: "broken", by: fmt.Sprintf("%q stands in %s %d times, want once", m.old, m.file, n)}
	}
	changed := filepath.Join(dir, "mutant.go")
	overlay, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "conformance.test")
	mapping, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return result{verdict: "broken", by: err.Error()}
	}
	for name, content := range map[string][]byte{changed: []byte(strings.Replace(string(source), m.old, m.new, 1)), overlay: mapping} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return result{verdict: "broken", by: err.Error()}
		}
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-ldflags=-s -w", "-o", bin, "./test/conformance")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return result{verdict: "broken", by: fmt.Sprintf("does not build: %s", out)}
	}
	defer os.Remove(bin) //nolint:errcheck // in a temporary directory
	for _, tests := range []string{m.tests, "."} {
		if tests == "" {
			continue
		}
		if by := run(ctx, root, bin, tests); by != "" {
			return result{verdict: "killed", by: by}
		}
	}
	return result{verdict: "SURVIVED"}
}

// run returns the first test that failed; empty when all passed.
func run(ctx context.Context, root, bin, tests string) string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-test.run", tests, "-test.failfast", "-test.v", "-test.timeout", limit.String())
	cmd.Dir = filepath.Join(root, "test/conformance")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); found {
			return strings.Fields(name)[0]
		}
	}
	return fmt.Sprintf("%v", err)
}
