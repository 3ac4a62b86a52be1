package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// afterwards are the helpers that look at the state which follows.
var afterwards = map[string]bool{
	"state": true, "element": true, "absent": true, "variable": true, "incident": true, "nextIncident": true, "noIncident": true,
	"found": true, "none": true, "alive": true,
}

// Every case pins a line, no table has a subtest without one, and every case
// looks at the state that follows, not at an error alone.
func TestMeta_EveryCasePinsALineAndLooksAtTheState(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, isFunc := d.(*ast.FuncDecl)
			if !isFunc || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" || strings.HasPrefix(fn.Name.Name, "TestMeta_") {
				continue
			}
			calls := called(fn.Body)
			if calls["open"] == 0 {
				t.Errorf("%s: %s pins no line: it never calls open", file, fn.Name.Name)
			}
			looks := 0
			for name, n := range calls {
				if afterwards[name] {
					looks += n
				}
			}
			if looks == 0 {
				t.Errorf("%s: %s never looks at the state that follows", file, fn.Name.Name)
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				call, isCall := n.(*ast.CallExpr)
				if isCall && name(call.Fun) == "Run" && called(call)["open"] == 0 {
					t.Errorf("%s: %s has a subtest that pins no line: use cluster.run or open", file, fn.Name.Name)
				}
				return true
			})
		}
	}
}

// called counts the functions and methods called inside n, by name.
func called(n ast.Node) map[string]int {
	out := map[string]int{}
	ast.Inspect(n, func(n ast.Node) bool {
		if call, isCall := n.(*ast.CallExpr); isCall {
			out[name(call.Fun)]++
		}
		return true
	})
	return out
}

func name(fun ast.Expr) string {
	switch x := fun.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
