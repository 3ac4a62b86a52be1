package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rulesFile is a file of Prometheus rules.
type rulesFile struct {
	Groups []struct {
		Rules []struct{ Record, Alert, Expr string }
	}
}

// notMetrics are the words of the query language that the rules use.
var notMetrics = []string{"sum", "max", "rate", "increase", "deriv", "by", "on", "or", "and", "offset"} //nolint:gochecknoglobals // constant

// alerted gives the metrics that the rules in deploy/alerts read, and those that they record.
func alerted(t *testing.T) (read, recorded []string) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/alerts/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("rules: %v, %v", files, err)
	}
	noise := regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[^]]*\]|\b(?:by|on) \([^)]*\)|\b[0-9]+[smhd]\b`)
	word := regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.yaml") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f rulesFile
		if err := yaml.Unmarshal(text, &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				if r.Record != "" {
					recorded = append(recorded, r.Record)
				}
				expr := noise.ReplaceAllString(noise.ReplaceAllString(r.Expr, ""), "")
				for _, w := range word.FindAllString(expr, -1) {
					if !slices.Contains(notMetrics, w) {
						read = append(read, w)
					}
				}
			}
		}
	}
	return read, recorded
}

// exported says whether a page of metrics describes name, or the histogram that name is a series of.
func exported(page, name string) bool {
	for _, suffix := range []string{"", "_sum", "_count", "_bucket"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && strings.Contains(page, "\n# TYPE "+base+" ") {
			return true
		}
	}
	return false
}

// checkAlerts wants every metric of the rules on the page.
func checkAlerts(t *testing.T, page string) {
	t.Helper()
	read, recorded := alerted(t)
	if len(read) < 25 || len(recorded) != 5 {
		t.Errorf("the rules read %d metrics and record %v: were they parsed?", len(read), recorded)
	}
	for _, name := range append(read, recorded...) {
		if strings.Contains(name, ":") && slices.Contains(recorded, name) { // a rule's own
			continue
		}
		if !exported("\n"+page, name) {
			t.Errorf("alerts use %s, which nothing exports", name)
		}
	}
}
