package work

import (
	"context"
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// Every statement can be prepared with nothing on the search path.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	if err := Migrate(ctx, pool, "other_schema"); err != nil {
		t.Fatal(err)
	}
	pgtest.Statements(t, pool, render("other_schema"), nil)
}
