package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// table prints the end of each step and fault.
func (s *stage) table(runs []*run, faults []fault) string {
	cells := map[string]string{}
	var out strings.Builder
	for _, r := range runs {
		switch len(r.cells) {
		case 0:
			fmt.Fprintf(&out, "%s without a fault: %s\n", r.saga, s.result(r))
		case 1:
			cells[r.cells[0].String()] = s.result(r)
		}
	}
	out.WriteString("\n| step |")
	for _, f := range faults {
		fmt.Fprintf(&out, " %s |", f)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(faults)) + "\n")
	for _, st := range steps() {
		fmt.Fprintf(&out, "| %s |", st)
		for _, f := range faults {
			fmt.Fprintf(&out, " %s |", cells[cell{st, f}.String()])
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestMatrixSingles plays every single fault at every step of all models, and compares the table with the one in testdata.
func TestMatrixSingles(t *testing.T) {
	s := setup(t)
	runs := s.play(singles(pairable()), 1)
	s.golden("singles.md", s.table(runs, pairable()))
	s.finish(runs)
}

// golden compares what came out with a file of testdata; FAULTS_UPDATE=1 writes it.
func (s *stage) golden(name, got string) {
	s.Helper()
	s.Logf("%s:\n%s", name, got)
	path := filepath.Join("testdata", name)
	if os.Getenv("FAULTS_UPDATE") != "" {
		s.must(os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path) //nolint:gosec // a constant
	s.must(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		s.Errorf("%s differs (-want +got), FAULTS_UPDATE=1 writes it:\n%s", path, diff)
	}
}

// finish reports what is wrong with single runs and audits what they share.
func (s *stage) finish(runs []*run) {
	s.Helper()
	s.Logf("%d sagas, clocks moved %d times, %v", len(runs), s.moves, s.offset())
	s.report(runs)
	s.audit()
}
