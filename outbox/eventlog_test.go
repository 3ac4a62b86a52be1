package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// published stages and relays n messages over some keys and returns what the broker got.
func (f *fixture) published(n int) []events.Record {
	f.Helper()
	bk := newBroker()
	_, stop := f.relay(bk)
	for i := range n {
		if err := f.stage(origin(fmt.Sprintf("op-%d", i)), []events.Message{created(fmt.Sprintf("K-%d", i%7), i), renamed(fmt.Sprintf("K-%d", i%7), i)}); err != nil {
			f.Fatal(err)
		}
	}
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	stop()
	return bk.records()
}

// Rows of the event log cannot be changed or removed, by the parent or by a day, not even by the tables' owner (spec E4).
func TestEventLog_E4_AppendOnly(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.published(3)
	var day string
	if err := f.pool.QueryRow(f.ctx, `SELECT tableoid::regclass::text FROM journeyman.event_log LIMIT 1`).Scan(&day); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"journeyman.event_log", day} {
		for _, sql := range []string{"UPDATE %s SET body = ''", "UPDATE %s SET seq = seq", "DELETE FROM %s", "TRUNCATE %s"} {
			sql := fmt.Sprintf(sql, table)
			if _, err := f.pool.Exec(f.ctx, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v, want it refused as append-only", sql, err)
			}
		}
	}
	if n := f.count(`SELECT count(*) FROM journeyman.event_log`); n != 6 {
		t.Errorf("event log has %d rows, want 6", n)
	}
}

// What the log gives back is what the broker got, in the order of each key.
func TestEventLog_E9_ReadsBackWhatWasPublished(t *testing.T) {
	t.Parallel()
	f := setup(t)
	sent := f.published(30)
	log := outbox.NewLog("journeyman")
	until, err := log.Settle(f.ctx, f.pool)
	if err != nil {
		t.Fatal(err)
	}
	read := func(filter outbox.LogFilter) []events.Record {
		t.Helper()
		filter.Until = until
		var all []events.Record
		at := outbox.LogCursor{}
		for {
			page, err := log.Page(f.ctx, f.pool, at, filter, 7)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				return all
			}
			for _, r := range page {
				rec, err := r.Record()
				if err != nil {
					t.Fatal(err)
				}
				all, at = append(all, rec), r.Cursor()
			}
		}
	}
	all := read(outbox.LogFilter{})
	if len(all) != len(sent) {
		t.Fatalf("read %d of %d", len(all), len(sent))
	}
	bytes := map[string]string{}
	for _, r := range sent {
		bytes[r.Header(events.HeaderEventID)] = fmt.Sprint(r)
	}
	for _, r := range all {
		if got := fmt.Sprint(r); got != bytes[r.Header(events.HeaderEventID)] {
			t.Errorf("read %s, the broker got %s", got, bytes[r.Header(events.HeaderEventID)])
		}
	}
	if bad := inversions(all); bad > 0 {
		t.Errorf("%d inversions: %v", bad, brief(all))
	}
	for pattern, want := range map[string]int{"test.thing.created": 30, "test.*": 60, "*.thing.renamed": 30, "test.thing": 0, "test.*.*": 60, "*.created": 0} {
		if n := len(read(outbox.LogFilter{Types: []string{pattern}})); n != want {
			t.Errorf("pattern %s: %d rows, want %d", pattern, n, want)
		}
	}
	if n := len(read(outbox.LogFilter{Keys: []string{"K-1", "K-2"}, Types: []string{"test.thing.renamed"}})); n != 9 {
		t.Errorf("two keys, one type: %d rows, want 9", n)
	}
}

// A transaction that took its time before "now" and has not committed yet: Settle waits for it.
func TestEventLog_E9_SettleWaitsForRowsOnTheirWay(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.published(1)
	log := outbox.NewLog("journeyman")
	tx, err := f.pool.Begin(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(f.ctx) //nolint:errcheck // no effect after commit
	if _, err := tx.Exec(f.ctx, `
		INSERT INTO journeyman.event_log SELECT journeyman.now(), shard, id + 1000, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at
		FROM journeyman.event_log LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	type settled struct {
		at  time.Time
		err error
	}
	done := make(chan settled, 1)
	go func() {
		at, err := log.Settle(f.ctx, f.pool)
		done <- settled{at, err}
	}()
	f.eventually("Settle to wait for the transaction", func() bool {
		return f.count(`SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'ShareLock'`) == 1
	})
	select {
	case s := <-done:
		t.Fatalf("Settle gave %v, %v while a row was on its way", s.at, s.err)
	default:
	}
	if err := tx.Commit(f.ctx); err != nil {
		t.Fatal(err)
	}
	s := <-done
	if s.err != nil {
		t.Fatal(s.err)
	}
	page, err := log.Page(f.ctx, f.pool, outbox.LogCursor{}, outbox.LogFilter{Until: s.at}, 100)
	if err != nil || len(page) != 3 {
		t.Errorf("%d rows before %v, want 3 (%v)", len(page), s.at, err)
	}
}

// With archive on, a day past its retention stays until its archive is
// verified, and stays when it does not hold what was archived (spec E9).
func TestEventLog_E9_DaysAreDroppedOnlyWhenTheirArchiveIsVerified(t *testing.T) {
	t.Parallel()
	f := setup(t)
	log := outbox.NewLog("journeyman")
	if err := log.SetArchived(f.ctx, f.pool, true, "", ""); err == nil {
		t.Error("policy changed without actor and reason")
	}
	if err := log.SetArchived(f.ctx, f.pool, true, "ann", "seven years"); err != nil {
		t.Fatal(err)
	}
	f.published(2)
	if err := postgres.AdvanceClock(f.ctx, f.pool, "journeyman", 10*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	pass := func() {
		t.Helper()
		bk := newBroker()
		r, stop := f.relay(bk, func(c *outbox.RelayConfig) { c.LogRetention = 24 * time.Hour })
		defer stop()
		if err := outbox.DropDays(r, f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	rows := func() int { return f.count(`SELECT count(*) FROM journeyman.event_log`) }
	pass()
	if rows() != 4 {
		t.Fatal("an unarchived day was dropped")
	}
	day := `(SELECT (min(logged_at) AT TIME ZONE 'UTC')::date FROM journeyman.event_log)`
	exec := func(sql string) {
		t.Helper()
		if _, err := f.pool.Exec(f.ctx, sql, pgx.QueryExecModeExec); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO journeyman.event_log_day (day, state, rows, id_sum) SELECT ` + day + `, 'writing', 4, sum(id) FROM journeyman.event_log`)
	pass()
	if rows() != 4 {
		t.Fatal("a day was dropped whose archive is not verified")
	}
	exec(`UPDATE journeyman.event_log_day SET state = 'verified', rows = 3`)
	pass()
	if rows() != 4 || f.count(`SELECT count(*) FROM journeyman.event_log_day WHERE state = 'writing' AND verified_at IS NULL`) != 1 {
		t.Fatal("a day with other rows than its archive was dropped, or not given back to the archive")
	}
	exec(`UPDATE journeyman.event_log_day SET state = 'verified', rows = 4`)
	pass()
	if rows() != 0 || f.count(`SELECT count(*) FROM journeyman.event_log_day WHERE state = 'dropped' AND dropped_at IS NOT NULL`) != 1 {
		t.Error("a day whose archive is verified was not dropped, or not marked")
	}
}

// One relay keeps the days: while another session holds the lock no day is made or dropped, and the relay does not wait for it;
// when it lets go the next look does both.
func TestEventLog_E4_DaysAreLeftToTheHolder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.published(2)
	if err := postgres.AdvanceClock(f.ctx, f.pool, "journeyman", 10*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	days := func() int {
		return f.count(`SELECT count(*) FROM pg_inherits WHERE inhparent = 'journeyman.event_log'::regclass`)
	}
	before := days()
	letGo := f.hold("journeyman.event_log.journeyman")
	looked := make(tries, 100)
	cfg := f.pool.Config()
	cfg.ConnConfig.Tracer = looked
	watched, err := pgxpool.NewWithConfig(f.ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watched.Close)
	old := func(c *outbox.RelayConfig) { c.LogRetention = 24 * time.Hour }
	other := *f
	other.pool = watched
	_, stop := other.relay(newBroker(), old)
	late := time.After(20 * time.Second)
	for _, what := range []string{"to make days", "to drop days", "to index days"} {
		select {
		case <-looked:
		case <-late:
			t.Fatalf("the relay did not try %s", what)
		}
	}
	stop()
	if n := f.count(`SELECT count(*) FROM journeyman.event_log`); n != 4 || days() != before {
		t.Errorf("under another's lock: %d rows in %d days, want 4 in %d", n, days(), before)
	}
	letGo()
	f.relay(newBroker(), old)
	f.eventually("the old day to go and new ones to come", func() bool {
		return f.count(`SELECT count(*) FROM journeyman.event_log`) == 0 &&
			f.count(`SELECT count(*) FROM pg_class WHERE relname = 'event_log_' || to_char(journeyman.now() AT TIME ZONE 'UTC', 'YYYYMMDD')`) == 1
	})
}

// tries hears of each try of a connection at the event log's lock that has its answer.
type tries chan struct{}

type triesLock struct{}

func (c tries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, "pg_try_advisory_xact_lock(hashtextextended('journeyman.event_log.") {
		return context.WithValue(ctx, triesLock{}, true)
	}
	return ctx
}

func (c tries) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(triesLock{}) != nil {
		c <- struct{}{}
	}
}
