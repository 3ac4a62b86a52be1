package export

import (
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// Every statement fits the migrated tables, in a schema of another name too.
func TestStatements_prepare(t *testing.T) {
	t.Parallel()
	t.Cleanup(pgtest.Stop)
	pool := pgtest.Pool(t)
	for range 2 { // the second run finds nothing to do
		if err := Migrate(t.Context(), pool, "elsewhere"); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Statements(t, pool, render("elsewhere"), nil)
}
