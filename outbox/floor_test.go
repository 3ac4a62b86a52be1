package outbox_test

import (
	"fmt"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// A reader's old snapshot keeps every deleted row and its index entry. The
// scans of a backlog must not cross them again and again. Not parallel: the
// server's oldest transaction holds all floors back, also those of other tests.
func TestRelay_ScansCrossNoDeletedRows(t *testing.T) { //nolint:paralleltest // see above
	f := setup(t)
	const rows = 2000
	for n := 0; n < rows; n += 100 {
		msgs := make([]events.Message, 100)
		for i := range msgs {
			msgs[i] = created(fmt.Sprint("K-", (n+i)%50), n+i)
		}
		if err := f.stage(origin(fmt.Sprint("op-", n)), msgs); err != nil {
			t.Fatal(err)
		}
	}
	old, err := f.pool.Begin(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Rollback(f.ctx) //nolint:errcheck // the end
	for _, sql := range []string{`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`, `SELECT count(*) FROM journeyman.outbox`} {
		if _, err := old.Exec(f.ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	bk := newBroker()
	_, stop := f.relay(bk, func(c *outbox.RelayConfig) { c.Batch, c.Lanes = 100, 1 })
	f.wait(bk, "all rows", atLeast(rows))
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	stop()
	f.pool.Reset() // servers of connections that end have told all they count
	// Each row is an entry read by its scan and by its delete; twenty scans that cross what is deleted read 20,000 more.
	const most = 3 * rows
	read := 0
	f.eventually("counts of the index", func() bool {
		read = f.count(`SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = 'journeyman' AND indexrelname = 'outbox_pkey'`)
		return read >= 2*rows
	})
	if read > most {
		t.Errorf("%d entries of the index were read for %d rows, want at most %d", read, rows, most)
	}
}
