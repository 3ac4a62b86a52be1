package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files calls fn for every Go file of ours with its content.
func files(t *testing.T, fn func(path string, src []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "node_modules" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		fn(filepath.ToSlash(rel), src)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFileLength(t *testing.T) {
	t.Parallel()
	files(t, func(path string, src []byte) {
		limit := 600
		if strings.HasSuffix(path, "_test.go") {
			limit = 1000
		}
		if n := bytes.Count(src, []byte("\n")); n > limit {
			t.Errorf("%s has %d lines, at most %d: split it by concept", path, n, limit)
		}
	})
}

func TestNamesOfFoldersAndFiles(t *testing.T) {
	t.Parallel()
	files(t, func(path string, _ []byte) {
		for _, part := range strings.Split(strings.TrimSuffix(path, ".go"), "/") {
			switch part {
			case "util", "utils", "common", "helper", "helpers", "manager", "misc", "types", "base":
				t.Errorf("%s: %q says nothing about what is inside", path, part)
			}
		}
	})
}

// TestNoSleepInTests keeps tests on signals and virtual time.
func TestNoSleepInTests(t *testing.T) {
	t.Parallel()
	files(t, func(path string, src []byte) {
		if strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "test/lint/") && bytes.Contains(src, []byte("time.Sleep(")) {
			t.Errorf("%s sleeps: wait for a signal, or use testing/synctest", path)
		}
	})
}

// TestNoInternalTypesInPublicAPI keeps internal and generated types out of exported signatures.
func TestNoInternalTypesInPublicAPI(t *testing.T) {
	t.Parallel()
	files(t, func(path string, src []byte) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if !library(dir) || strings.Contains(path, "/internal/") || strings.HasSuffix(path, "_test.go") {
			return
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, src, 0)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		hidden := map[string]string{}
		for _, imp := range file.Imports {
			p := strings.Trim(imp.Path.Value, `"`)
			if strings.HasPrefix(p, module+"internal/") || strings.Contains(p, "/internal/") || strings.HasSuffix(p, "/pkg/pb") {
				name := p[strings.LastIndex(p, "/")+1:]
				if imp.Name != nil {
					name = imp.Name.Name
				}
				hidden[name] = p
			}
		}
		for _, decl := range file.Decls {
			for _, expr := range exported(decl) {
				ast.Inspect(expr, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok {
						if id, ok := sel.X.(*ast.Ident); ok && hidden[id.Name] != "" {
							t.Errorf("%s shows %s.%s in an exported signature", fset.Position(sel.Pos()), hidden[id.Name], sel.Sel.Name)
						}
					}
					return true
				})
			}
		}
	})
}

// exported gives the type expressions of a declaration that a user can see.
func exported(decl ast.Decl) []ast.Node {
	var seen []ast.Node
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !receiverExported(d.Recv) {
			return nil
		}
		seen = append(seen, d.Type)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok || !ts.Name.IsExported() {
				continue
			}
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				seen = append(seen, ts.Type)
				continue
			}
			for _, f := range st.Fields.List {
				if len(f.Names) == 0 || f.Names[0].IsExported() {
					seen = append(seen, f.Type)
				}
			}
		}
	}
	return seen
}

func receiverExported(recv *ast.FieldList) bool {
	t := recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if idx, ok := t.(*ast.IndexExpr); ok {
		t = idx.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}
