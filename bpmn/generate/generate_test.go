package generate_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn/generate"
	"github.com/vitrip/journeyman/bpmn/models"
)

var update = flag.Bool("update", false, "write the generated packages")

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func trip(t *testing.T) generate.Model {
	t.Helper()
	return generate.Model{Name: "trip.bpmn", Source: read(t, "testdata/trip.bpmn"), Example: read(t, "testdata/trip.example.json")}
}

// packages lists the generated packages of this module with their models, from this folder. Each is what
// journeyman generate writes there: regenerated and compared here, compiled by the build, used by its own tests.
func packages() map[string][]string {
	return map[string][]string{
		"internal/trip":           {"testdata/trip.bpmn"},
		"../../sagas/tourbooking": {"../models/tour-booking.bpmn"},
		"../../sagas/refund":      {"../models/refund.bpmn"},
		"../../sagas/ticketing":   {"../models/ticketing.bpmn"},
		"../../sagas/amendment":   {"../models/amendment.bpmn"},
		"../../sagas/reservation": {"../models/reservation.bpmn"},
		"../../sagas/export":      {"../models/data-export.bpmn"},
		"../../examples/order":    {"../../examples/order/order.bpmn"},
	}
}

func modelAt(t *testing.T, path string) generate.Model {
	t.Helper()
	m := generate.Model{Name: path, Source: read(t, path)}
	doc, err := os.ReadFile(strings.TrimSuffix(path, ".bpmn") + ".example.json")
	if err == nil {
		m.Example = doc
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return m
}

// TestFiles_golden is the drift check of spec B6: what lies in the repository is what its models give.
func TestFiles_golden(t *testing.T) {
	for dir, paths := range packages() {
		var of []generate.Model
		for _, p := range paths {
			of = append(of, modelAt(t, p))
		}
		files, err := generate.Files(of, generate.Options{Package: filepath.Base(dir)})
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := generate.Write(dir, files); err != nil {
				t.Fatal(err)
			}
		}
		found, err := generate.Compare(dir, files)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			t.Errorf("%s/%s: %s; run go test ./bpmn/generate -update and read the diff\n%s", dir, d.File, d.Reason, strings.Join(d.Lines, "\n"))
		}
		if len(files) != len(of)+1 {
			t.Errorf("%s: %d files, want %d", dir, len(files), len(of)+1)
		}
		for _, f := range files {
			if strings.Contains(string(f.Text), "does not tell the type") {
				t.Errorf("%s/%s: a field has no type; add it to the example data", dir, f.Name)
			}
		}
	}
}

// TestFiles_golden_complete: no generated file of this module escapes the drift check.
func TestFiles_golden_complete(t *testing.T) {
	t.Parallel()
	known := packages()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != "." {
			return filepath.SkipDir
		}
		if d.Name() != generate.NamesFile {
			return nil
		}
		dir, err := filepath.Rel(".", filepath.Dir(path))
		if dir == filepath.Join("..", "..", "bpmn", "generate", "internal", "trip") {
			dir = filepath.Join("internal", "trip")
		}
		if _, ok := known[filepath.ToSlash(dir)]; err == nil && !ok {
			t.Errorf("%s is generated and not compared: add it to packages", dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The order in which models are given changes nothing.
func TestFiles_order(t *testing.T) {
	t.Parallel()
	var of []generate.Model
	for _, name := range models.Names() {
		of = append(of, modelAt(t, filepath.Join("../models", name)))
	}
	files, err := generate.Files(of, generate.Options{Package: "travel"})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(of)
	other, err := generate.Files(of, generate.Options{Package: "travel"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files, other); d != "" {
		t.Errorf("the order of the models changes the code:\n%s", d)
	}
}

// TestFiles_testdata: every model of package bpmn's testdata gives code or a named error.
func TestFiles_testdata(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../testdata/*/*.bpmn")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d models, %v", len(paths), err)
	}
	generated := 0
	for _, path := range append(paths, "../testdata/all.bpmn") {
		_, err := generate.Files([]generate.Model{{Name: path, Source: read(t, path)}}, generate.Options{Package: "x"})
		if err != nil && !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: error does not name the model: %v", path, err)
		}
		if err == nil {
			generated++
		}
	}
	if generated == 0 {
		t.Error("no model gave code")
	}
}

func TestFiles_refusals(t *testing.T) {
	t.Parallel()
	good := trip(t)
	edit := func(old, text string) generate.Model {
		m := good
		if !strings.Contains(string(m.Source), old) {
			t.Fatalf("model lacks %q", old)
		}
		m.Source = []byte(strings.ReplaceAll(string(m.Source), old, text))
		return m
	}
	with := func(example string) generate.Model {
		m := good
		m.Example = []byte(example)
		return m
	}
	opts := generate.Options{Package: "trip"}
	tests := map[string]struct {
		models []generate.Model
		opts   generate.Options
		want   string
	}{
		"package":       {[]generate.Model{good}, generate.Options{Package: "My-Trip"}, `package "My-Trip"`},
		"keyword":       {[]generate.Model{good}, generate.Options{Package: "func"}, `package "func"`},
		"nothing":       {nil, opts, "no models"},
		"twice":         {[]generate.Model{good, good}, opts, "given twice"},
		"no XML":        {[]generate.Model{{Name: "x.bpmn", Source: []byte("hello")}}, opts, "x.bpmn"},
		"unfit to run":  {[]generate.Model{edit(`targetRef="car"`, `targetRef="cab"`)}, opts, "cab"},
		"type":          {[]generate.Model{edit(`value="int?"`, `value="integer"`)}, opts, `type "integer": want one of any, bool`},
		"example":       {[]generate.Model{with(`{"vars": {}}`)}, opts, "trip.example.json"},
		"example twice": {[]generate.Model{with(`{} {}`)}, opts, "something follows"},
		"modeler's":     {[]generate.Model{edit(`value="{&#34;carId&#34;`, `value="[&#34;carId&#34;`)}, opts, "exampleOutputJson"},
		"same Go name":  {[]generate.Model{edit(`type="guest.tell"`, `type="car-reserve"`)}, opts, "JobCarReserve in Go: rename one"},
	}
	for name, tt := range tests {
		_, err := generate.Files(tt.models, tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want it to say %s", name, err, tt.want)
		}
	}
}

// What a model says must not get out of comments and strings into code.
func TestFiles_hostileText(t *testing.T) {
	t.Parallel()
	m := trip(t)
	m.Source = []byte(strings.NewReplacer(`name="Reserve car"`, "name=\"x&#10;*/ func init() { panic(1) }\"", `"NO_CAR"`, `"NO&#34;_CAR&#10;"`, `NO_CAR, TOO`, `TOO`).Replace(string(m.Source)))
	files, err := generate.Files([]generate.Model{m}, generate.Options{Package: "trip"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(string(f.Text), "\nfunc init") || strings.Contains(string(f.Text), "\n*/") {
			t.Errorf("%s:\n%s", f.Name, f.Text)
		}
	}
}

func TestCompareAndWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, err := generate.Files([]generate.Model{trip(t)}, generate.Options{Package: "trip"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(want ...string) []generate.Difference {
		t.Helper()
		found, err := generate.Compare(dir, files)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range found {
			got = append(got, d.File+" "+d.Reason)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("differences (-want +got):\n%s", d)
		}
		return found
	}
	check("journeyman_gen.go missing", "trip_gen.go missing")
	if err := generate.Write(dir, files); err != nil {
		t.Fatal(err)
	}
	check()
	path := filepath.Join(dir, "trip_gen.go")
	text := strings.Replace(string(read(t, path)), `"car"`, `"cab"`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, "gone_gen.go")
	if err := os.WriteFile(old, files[0].Text, 0o600); err != nil {
		t.Fatal(err)
	}
	found := check("gone_gen.go stale", "trip_gen.go differs")
	if lines := found[1].Lines; len(lines) != 2 || !strings.HasPrefix(lines[0], "-") || !strings.Contains(lines[0], `"cab"`) || !strings.Contains(lines[1], `"car"`) {
		t.Errorf("changed lines %q", lines)
	}
	if err := generate.Write(dir, files); err != nil {
		t.Fatal(err)
	}
	check()
	if _, err := os.Stat(old); err == nil {
		t.Error("the stale file is still there")
	}
	if err := os.WriteFile(path, []byte("package trip\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := generate.Write(dir, files); err == nil || !strings.Contains(err.Error(), "was not generated") {
		t.Errorf("a file of the user's was overwritten: %v", err)
	}
}

func FuzzFiles(f *testing.F) {
	text, err := os.ReadFile("testdata/trip.bpmn")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte(`{"variables":{"a":[1]},"jobs":{"car.reserve":{"input":{"x":null}}}}`))
	f.Add([]byte(strings.ReplaceAll(string(text), "guest.tell", "привет \u2028.9")), []byte(`{}`))
	f.Fuzz(func(t *testing.T, source, example []byte) {
		m := generate.Model{Name: "x.bpmn", Source: source, Example: example}
		_, err := generate.Files([]generate.Model{m}, generate.Options{Package: "x"})
		if err != nil && strings.Contains(err.Error(), "fault of the generator") {
			t.Fatal(err)
		}
	})
}
