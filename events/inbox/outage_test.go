package inbox_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events/inbox"
)

// The database is gone for a while: the inbox pauses, says so once, burns no attempt, and goes on.
func TestInbox_DatabaseOutage(t *testing.T) { onEach(t, testInboxDatabaseOutage) }

func testInboxDatabaseOutage(t *testing.T, f *fixture) {
	var paused, resumed atomic.Int64
	f.run(apply, func(c *inbox.Config) {
		c.Hooks.Paused = func(error) { paused.Add(1) }
		c.Hooks.Resumed = func(time.Duration) { resumed.Add(1) }
	})
	f.publish(f.created("K", 1))
	f.eventually("the first message", func() bool { return f.applied() == 1 })

	name := f.pool.Config().ConnConfig.Database
	admin, err := pgx.Connect(f.ctx, strings.ReplaceAll(f.dsn, " dbname="+name, " dbname=postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(f.ctx) //nolint:errcheck // end of the test
	allow := func(yes string) {
		t.Helper()
		if _, err := admin.Exec(f.ctx, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS "+yes); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Exec(f.ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name); err != nil {
			t.Fatal(err)
		}
	}
	allow("false")
	f.publish(f.created("K", 2), f.created("K", 3), f.created("L", 1))
	f.eventually("the pause", func() bool { return paused.Load() == 1 })
	allow("true")
	f.eventually("all messages", func() bool {
		var n int
		return f.pool.QueryRow(f.ctx, `SELECT count(*) FROM applied`).Scan(&n) == nil && n == 4
	})
	f.eventually("the end of the pause", func() bool { return resumed.Load() == 1 })
	if got := f.order("K"); got != "1 2 3" {
		t.Errorf("applied %s, want 1 2 3", got)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.inbox_retry`) + len(f.dead()); n != 0 {
		t.Errorf("%d messages in retry or dead, want none: an outage is no attempt", n)
	}
}

// A database that takes no writes, as after a failover, is an outage too (FC-C4).
func TestInbox_ReadOnlyDatabase(t *testing.T) { onEach(t, testInboxReadOnlyDatabase) }

func testInboxReadOnlyDatabase(t *testing.T, f *fixture) {
	var paused, resumed atomic.Int64
	f.run(apply, func(c *inbox.Config) {
		c.Hooks.Paused = func(error) { paused.Add(1) }
		c.Hooks.Resumed = func(time.Duration) { resumed.Add(1) }
	})
	f.publish(f.created("K", 1))
	f.eventually("the first message", func() bool { return f.applied() == 1 })
	admin, err := pgx.Connect(f.ctx, f.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(f.ctx) //nolint:errcheck // end of the test
	name := f.pool.Config().ConnConfig.Database
	readOnly := func(yes string) {
		t.Helper()
		for _, sql := range []string{
			"SET default_transaction_read_only = off", "ALTER DATABASE " + name + " SET default_transaction_read_only = " + yes,
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
		} {
			if _, err := admin.Exec(f.ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	readOnly("on")
	f.publish(f.created("K", 2), f.created("K", 3), f.created("L", 1))
	f.eventually("the pause", func() bool { return paused.Load() == 1 })
	readOnly("off")
	f.eventually("all messages", func() bool {
		var n int
		return f.pool.QueryRow(f.ctx, `SELECT count(*) FROM applied`).Scan(&n) == nil && n == 4
	})
	f.eventually("the end of the pause", func() bool { return resumed.Load() == 1 })
	if got := f.order("K"); got != "1 2 3" {
		t.Errorf("applied %s, want 1 2 3", got)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.inbox_retry`) + len(f.dead()); n != 0 {
		t.Errorf("%d messages in retry or dead, want none", n)
	}
}
