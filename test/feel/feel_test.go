//go:build clients

package feel

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/bpmn/feel"
	"github.com/vitrip/journeyman/test/clients/toolcache"
)

const leastExpressions = 300

// difference is a line of differences.tsv.
type difference struct{ ours, theirs, why string }

func TestFeelin(t *testing.T) {
	expressions := corpus(t)
	if len(expressions) < leastExpressions {
		t.Fatalf("the corpus has %d expressions, want %d", len(expressions), leastExpressions)
	}
	theirs := feelin(t, expressions)
	known := differences(t)
	agree := 0
	for i, src := range expressions {
		ours := evaluate(t, src)
		d, listed := known[src]
		delete(known, src)
		switch {
		case ours == theirs[i] && listed:
			t.Errorf("%s\n\tboth give %s, but differences.tsv lists it", src, ours)
		case ours == theirs[i]:
			agree++
		case !listed:
			t.Errorf("%s\n\tours   %s\n\ttheirs %s", src, ours, theirs[i])
		case d.ours != ours || d.theirs != theirs[i]:
			t.Errorf("%s\n\tours   %s, listed %s\n\ttheirs %s, listed %s", src, ours, d.ours, theirs[i], d.theirs)
		case d.why == "":
			t.Errorf("%s\n\tdiffers without a reason", src)
		}
	}
	for src := range known {
		t.Errorf("%s\n\tis listed in differences.tsv, but not in corpus.txt", src)
	}
	t.Logf("%d expressions, %d the same, %d different on purpose", len(expressions), agree, len(expressions)-agree)
}

func corpus(t *testing.T) []string {
	t.Helper()
	var out []string
	seen := map[string]bool{}
	for _, l := range lines(t, "corpus.txt") {
		if strings.TrimSpace(l) == "" || strings.HasPrefix(l, "#") {
			continue
		}
		if seen[l] {
			t.Errorf("%s is twice in corpus.txt", l)
		}
		seen[l] = true
		out = append(out, l)
	}
	return out
}

func differences(t *testing.T) map[string]difference {
	t.Helper()
	out := map[string]difference{}
	for _, l := range lines(t, "differences.tsv") {
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		f := strings.Split(l, "\t")
		if len(f) != 4 {
			t.Fatalf("differences.tsv: %q has %d columns, want expression, ours, theirs, reason", l, len(f))
		}
		out[f[0]] = difference{f[1], f[2], f[3]}
	}
	return out
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

// evaluate gives the value as JSON, or "syntax error", or the error that stopped it.
func evaluate(t *testing.T, src string) string {
	t.Helper()
	raw, err := os.ReadFile("context.json")
	if err != nil {
		t.Fatal(err)
	}
	context, err := feel.FromJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	vars := feel.Variables{}
	for name, v := range context.Entries {
		vars[name] = v
	}
	e, err := feel.Compile(src)
	if err != nil {
		return "syntax error"
	}
	v, _, err := e.Eval(vars)
	switch {
	case err != nil:
		return err.Error()
	case v.Kind() == feel.Range || v.Kind() == feel.Function:
		return `{"` + strings.ToLower(v.Kind().String()) + `":true}`
	}
	return canonical(t, v.JSON())
}

// feelin evaluates all expressions in one process.
func feelin(t *testing.T, expressions []string) []string {
	t.Helper()
	modules, err := toolcache.Node(t.Context(), "node")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script, err := os.ReadFile("node/evaluate.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "evaluate.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	context, err := filepath.Abs("context.json")
	if err != nil {
		t.Fatal(err)
	}
	var in, complaints bytes.Buffer
	for _, src := range expressions {
		quoted, err := json.Marshal(src)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(quoted, '\n'))
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "evaluate.mjs"), context)
	cmd.Stdin, cmd.Stderr = &in, &complaints
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, complaints.Bytes())
	}
	var out []string
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		var r struct {
			Value          json.RawMessage
			Syntax, Failed string
		}
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		switch {
		case r.Syntax != "":
			out = append(out, "syntax error")
		case r.Failed != "":
			out = append(out, r.Failed)
		default:
			out = append(out, canonical(t, r.Value))
		}
	}
	if len(out) != len(expressions) {
		t.Fatalf("%d answers to %d expressions", len(out), len(expressions))
	}
	return out
}

// canonical sorts the keys and keeps the numbers as they are written.
func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
