package dedup

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestStatements prepares every statement of the package against the migrated schema.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := pgtest.Pool(t)
	for range 2 {
		if err := Migrate(ctx, pool, "jm_other"); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Statements(t, pool, render("jm_other"), func(_, sql string) string { return strings.ReplaceAll(sql, "{{unless}}", "") })
	pgtest.Statements(t, pool, renderRecord("jm_other"), nil)
}
