package workertest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	ruleHead  = regexp.MustCompile(`(?m)^(\d+)\. \*\*`)
	ruleTests = regexp.MustCompile("`(TestChanging_\\w+|…_\\w+)`")
	tableRow  = regexp.MustCompile(`(?m)^\| (\d+)\. `)
)

// TestChanging_documented: every rule of docs/changing-a-worker.md names tests that exist, every row of its table has a rule,
// and no test of a rule is left out of the page.
func TestChanging_documented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/changing-a-worker.md")
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), "changing_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "TestChanging_") {
			tests = append(tests, fn.Name.Name)
		}
	}
	page := string(text)
	heads := ruleHead.FindAllStringSubmatchIndex(page, -1)
	var named []string
	for i, h := range heads {
		end := len(page)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		rule := page[h[2]:h[3]]
		if rule != strconv.Itoa(i+1) {
			t.Errorf("rule %s stands in place %d", rule, i+1)
		}
		found := ruleTests.FindAllStringSubmatch(page[h[0]:end], -1)
		if len(found) == 0 {
			t.Errorf("rule %s names no test", rule)
		}
		full := ""
		for _, m := range found {
			name, short := strings.CutPrefix(m[1], "…")
			candidates := []string{name}
			if short { // of the test before it, or of the page
				candidates = []string{full + name, "TestChanging" + name}
			} else {
				full = name
			}
			at := slices.IndexFunc(candidates, func(c string) bool { return slices.Contains(tests, c) })
			if at < 0 {
				t.Errorf("rule %s names %s, which is no test", rule, m[1])
				continue
			}
			named = append(named, candidates[at])
		}
	}
	for _, name := range tests {
		if !slices.Contains(named, name) {
			t.Errorf("no rule names %s", name)
		}
	}
	rows := tableRow.FindAllStringSubmatch(page, -1)
	if len(rows) < len(heads) {
		t.Errorf("%d rows for %d rules", len(rows), len(heads))
	}
	for _, r := range rows {
		if n, err := strconv.Atoi(r[1]); err != nil || n > len(heads) {
			t.Errorf("the table has a row %s and the page no such rule", r[1])
		}
	}
}
