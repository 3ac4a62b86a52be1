// Package examples holds what is true of all examples.
package examples

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestPublicOnly: what an example uses, a user can use; its tests too.
func TestPublicOnly(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			if strings.Contains(name, "/internal/") || strings.HasSuffix(name, "/internal") {
				t.Errorf("%s imports %s, which users cannot", path, name)
			}
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%d files read, %v", files, err)
	}
}

// TestReadme: every example has its line, and a test that runs it.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		if !strings.Contains(string(readme), "["+d.Name()+"]("+d.Name()+")") {
			t.Errorf("README.md has no line for %s", d.Name())
		}
		tests, err := filepath.Glob(filepath.Join(d.Name(), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(tests) == 0 && d.Name() != "local" && d.Name() != "bookings" { // the others' tests run local, the demo's audit bookings
			t.Errorf("%s has no test", d.Name())
		}
	}
}
