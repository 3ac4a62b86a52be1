package inbox

import (
	"context"
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// Purging takes old rows only, and never more than its bound at once.
func TestPurge(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	if err := Migrate(ctx, pool, "journeyman"); err != nil {
		t.Fatal(err)
	}
	i := &Inbox{db: pool, cfg: Config{Group: "g", Schema: "journeyman", Keep: minKeep}, sql: render("journeyman")}
	fill := `INSERT INTO journeyman.inbox SELECT $1, 'old-' || n, '', journeyman.now() FROM generate_series(1, $2::int) n`
	if _, err := pool.Exec(ctx, fill, "g", purgeBatch+10); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, fill, "other", 5); err != nil {
		t.Fatal(err)
	}
	for step, want := range []struct {
		advance time.Duration
		gone    int64
	}{{minKeep - time.Hour, 0}, {2 * time.Hour, purgeBatch}, {0, 10}, {0, 0}} {
		if err := postgres.AdvanceClock(ctx, pool, "journeyman", want.advance); err != nil {
			t.Fatal(err)
		}
		if n, err := i.purgeOnce(ctx); err != nil || n != want.gone {
			t.Errorf("step %d: purged %d (%v), want %d", step, n, err, want.gone)
		}
	}
	var left int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM journeyman.inbox`).Scan(&left); err != nil || left != 5 {
		t.Errorf("%d rows left (%v), want the other group's 5", left, err)
	}
}
