package inbox_test

import (
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
)

// A message that comes again days later is recognised: the inbox is not
// partitioned by time, where uniqueness would end at midnight.
func TestRule25_RepeatIsRecognisedOnAnotherDay(t *testing.T) {
	onEach(t, testRule25RepeatIsRecognisedOnAnotherDay)
}

func testRule25RepeatIsRecognisedOnAnotherDay(t *testing.T, f *fixture) {
	f.run(apply)
	m := f.created("K", 1)
	f.publish(m)
	f.eventually("the message", func() bool { return f.applied() == 1 })
	if err := postgres.AdvanceClock(f.ctx, f.pool, "journeyman", 3*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	f.publish(m, f.created("K", 2))
	f.eventually("the next message", func() bool { return f.count(`SELECT count(*) FROM applied WHERE body::jsonb->>'n' = '2'`) == 1 })
	if got := f.order("K"); got != "1 2" {
		t.Errorf("applied %s, want 1 2", got)
	}
	var kind string
	if err := f.pool.QueryRow(f.ctx, `SELECT relkind::text FROM pg_class WHERE oid = 'journeyman.inbox'::regclass`).Scan(&kind); err != nil || kind != "r" {
		t.Errorf("inbox is of kind %q (%v), want an ordinary table", kind, err)
	}
}
