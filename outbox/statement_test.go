package outbox

import (
	"strings"
	"testing"
)

// Whatever stands in quotes, comments or other statements, a bare COMMIT behind them is found.
func FuzzEndsTransaction(f *testing.F) {
	for _, s := range []string{"SELECT 1", "SELECT 'a''b'", `SELECT "x"`, "/* c */ SELECT $tag$ ; $tag$", "SELECT E'\\''", "--\n", "$", "'", "/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		_, bad := endsTransaction(sql)
		if !bad && !strings.ContainsAny(sql, `'"$/-`) {
			if _, found := endsTransaction(sql + ";COMMIT"); !found {
				t.Errorf("COMMIT after %q is not found", sql)
			}
		}
	})
}
