package operator_test

import (
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator"
)

// TestStatements prepares every statement against the migrated schema with an empty search path: none may forget to name it.
func TestStatements(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	conn, err := r.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `SET search_path = ''`); err != nil {
		t.Fatal(err)
	}
	for name, sql := range operator.Statements(operatortest.Schema) {
		if sql == "" || strings.Contains(sql, "{{") {
			t.Errorf("%s: empty or not rendered: %q", name, sql)
		}
		if _, err := conn.Conn().Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseHead(f *testing.F) {
	f.Add("12:" + strings.Repeat("0a", 32))
	f.Add("-1:")
	f.Add("1:" + strings.Repeat("0", 63) + " ")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := operator.ParseHead(text)
		if err != nil {
			return
		}
		if again, err := operator.ParseHead(h.String()); err != nil || again != h {
			t.Errorf("ParseHead(%q) = %v, read again %v, %v", text, h, again, err)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add("2251799813685249")
	f.Add("+1")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := operator.ParseKey("key", text)
		if err != nil {
			return
		}
		if again, err := operator.ParseKey("key", k.String()); err != nil || again != k || k <= 0 {
			t.Errorf("ParseKey(%q) = %d, read again %d, %v", text, k, again, err)
		}
	})
}
