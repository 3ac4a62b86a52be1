package deadletter

import (
	"context"
	"testing"

	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// Every statement can be prepared with nothing on the search path.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{inbox.Migrate, Migrate} {
		if err := migrate(ctx, pool, "other_schema"); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Statements(t, pool, render("other_schema"), nil)
}
