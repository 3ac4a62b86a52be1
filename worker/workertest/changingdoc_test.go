package workertest_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	ruleHead  = regexp.MustCompile(`(?m)^(\d+)\. \*\*`)
	ruleTests = regexp.MustCompile("`(TestChanging_\\w+|…_\\w+)`")
	cellTests = regexp.MustCompile("`(_\\w+)`")
	tableRow  = regexp.MustCompile(`(?m)^\| ((\d+)\. .*) \|$`)
)

// changingTests gives for each test of the page how many different builds it runs on one engine and one database.
func changingTests(t *testing.T) map[string]int {
	t.Helper()
	paths, err := filepath.Glob("changing*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	builds := map[string]int{}
	for _, path := range paths {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "TestChanging_") || fn.Name.Name == "TestChanging_documented" {
				continue
			}
			run := map[string]map[string]bool{} // house → what its builds are
			ast.Inspect(fn, func(n ast.Node) bool {
				c, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := c.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains([]string{"build", "served", "leave"}, sel.Sel.Name) {
					return true
				}
				var of, what bytes.Buffer
				if printer.Fprint(&of, files, sel.X) != nil || printer.Fprint(&what, files, c.Args[0]) != nil {
					return true
				}
				if run[of.String()] == nil {
					run[of.String()] = map[string]bool{}
				}
				run[of.String()][what.String()] = true
				return true
			})
			builds[fn.Name.Name] = 0
			for _, b := range run {
				builds[fn.Name.Name] = max(builds[fn.Name.Name], len(b))
			}
		}
	}
	return builds
}

// rows gives the cells of a table of the page, below its heading.
func rows(t *testing.T, page, heading string) (all [][]string) {
	t.Helper()
	_, table, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("the page has no heading %q", heading)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range tableRow.FindAllStringSubmatch(table, -1) {
		all = append(all, strings.Split(m[1], " | "))
	}
	return all
}

// TestChanging_documented: every rule of docs/changing-a-worker.md names tests that exist, of which one runs an old and a new
// build; every cell of its table that says something is shown by such a test; and no test is left out of the page.
func TestChanging_documented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/changing-a-worker.md")
	if err != nil {
		t.Fatal(err)
	}
	page, tests := string(text), changingTests(t)
	shown := map[string]bool{} // rules with a test of two builds
	named := map[string]bool{}
	heads := ruleHead.FindAllStringSubmatchIndex(page, -1)
	for i, h := range heads {
		end := len(page)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		} else if next := strings.Index(page[h[0]:], "\n## "); next >= 0 {
			end = h[0] + next
		}
		rule := page[h[2]:h[3]]
		if rule != strconv.Itoa(i+1) {
			t.Errorf("rule %s stands in place %d", rule, i+1)
		}
		full := ""
		for _, m := range ruleTests.FindAllStringSubmatch(page[h[0]:end], -1) {
			name, short := strings.CutPrefix(m[1], "…")
			candidates := []string{name}
			if short { // of the test before it, or of the page
				candidates = []string{full + name, "TestChanging" + name}
			} else {
				full = name
			}
			at := slices.IndexFunc(candidates, func(c string) bool { _, ok := tests[c]; return ok })
			if at < 0 {
				t.Errorf("rule %s names %s, which is no test", rule, m[1])
				continue
			}
			named[candidates[at]] = true
			shown[rule] = shown[rule] || tests[candidates[at]] >= 2
		}
		if !shown[rule] {
			t.Errorf("rule %s names no test that runs an old and a new build", rule)
		}
	}
	said, proofs := rows(t, page, "What may change"), rows(t, page, "Which test shows what")
	if len(said) < len(heads) || len(said) != len(proofs) {
		t.Fatalf("%d rows with tests for %d rows of %d rules", len(proofs), len(said), len(heads))
	}
	for i, row := range said {
		rule, _, _ := strings.Cut(row[0], ".")
		if n, err := strconv.Atoi(rule); err != nil || n > len(heads) || len(row) != 5 || len(proofs[i]) != 4 || proofs[i][0] != row[0] {
			t.Errorf("row %q of %d cells has tests in row %q of %d cells; want a row of the same name, and a rule of its number", row[0], len(row), proofs[i][0], len(proofs[i]))
			continue
		}
		for cell, what := range []string{"", "waiting jobs", "repeats", "undo"} {
			if cell == 0 {
				continue
			}
			names := cellTests.FindAllStringSubmatch(proofs[i][cell], -1)
			if (row[cell] == "-") != (len(names) == 0) {
				t.Errorf("row %q, %s: the page says %q, and the tests are %q", row[0], what, row[cell], proofs[i][cell])
			}
			for _, m := range names {
				name := "TestChanging" + m[1]
				if tests[name] < 2 {
					t.Errorf("row %q, %s: %s runs %d builds, want an old and a new one", row[0], what, name, tests[name])
				}
				named[name] = true
			}
		}
	}
	for name := range tests {
		if !named[name] {
			t.Errorf("the page does not name %s", name)
		}
	}
}
