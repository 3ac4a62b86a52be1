package outbox_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// onOwnServer is a fixture over a PostgreSQL of its own that may be killed. Its WAL is written when a commit waits for it, and else
// as late as can be: what committed without waiting is lost by a crash. What is written outlives it, the machine stays up.
func onOwnServer(t *testing.T) (*fixture, *postgres.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	bin, err := postgres.Find("", os.Getenv("JOURNEYMAN_POSTGRES_CACHE"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := postgres.LaunchIn(ctx, bin, "/tmp", "wal_writer_delay=10s", "wal_writer_flush_after=1GB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	pool, err := pgxpool.New(ctx, server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := outbox.Migrate(ctx, pool, "journeyman"); err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, ctx: ctx, pool: pool, Stager: stager(t, ""), desk: outbox.NewDesk("journeyman")}, server
}

// acking is a broker behind whose answers something happens before the relay hears them.
type acking struct {
	events.Publisher
	then func()
}

func (a acking) Publish(ctx context.Context, records []events.Record) []error {
	errs := a.Publisher.Publish(ctx, records)
	a.then()
	return errs
}

// The database server is killed after the broker's acknowledgement: before the relay's delete, and after its commit, which does not
// wait for the disk, so that it is undone by the crash; once as a whole, once by a server process, whereupon it recovers without having
// been started anew. Each time the rows are there again after the recovery and the same relay publishes them again under their ids:
// nothing is lost, no key is reordered, and the event log has each message once.
func TestRelay_DatabaseKilledBehindTheAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"acknowledged", "deleted", "deleted by a server that goes on"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			f, server := onOwnServer(t)
			k := wire(t, transports()[0], 4)
			const n, kills = 400, 3
			for i := range n / 2 {
				key := fmt.Sprintf("K-%d", i%7)
				if err := f.stage(origin(fmt.Sprintf("op-%d", i)), []events.Message{created(key, i), created(key, i)}); err != nil {
					t.Fatal(err)
				}
			}
			var batches, killed atomic.Int64
			crash := func() {
				if batches.Add(1)%3 != 0 || killed.Load() == kills {
					return
				}
				killed.Add(1)
				if place == "deleted by a server that goes on" {
					if err := server.CrashBackend(f.ctx); err != nil {
						t.Error(err)
					}
					return
				}
				if err := server.Crash(); err != nil {
					t.Error(err)
				}
				if err := server.Restart(f.ctx); err != nil {
					t.Errorf("restart: %v", err)
				}
			}
			var pub events.Publisher = k
			var hooks outbox.Hooks
			if place == "acknowledged" {
				pub = acking{k, crash}
			} else {
				hooks.Published = func(string, int, time.Duration) { crash() }
			}
			f.relay(pub, func(c *outbox.RelayConfig) { c.Lanes, c.Batch, c.Hooks = 1, 20, hooks })
			f.eventually("the last crash", func() bool { return killed.Load() == kills })
			f.eventually("an empty outbox", func() bool {
				var left int
				return f.pool.QueryRow(f.ctx, `SELECT count(*) FROM journeyman.outbox`).Scan(&left) == nil && left == 0
			})
			records := f.topicLog(k, n, "test.thing.created.v1")
			if bad := inversions(records); bad > 0 {
				t.Errorf("%d inversions: %v", bad, brief(records))
			}
			again := len(records) - n
			if again == 0 || again > kills*n/2 {
				t.Errorf("%d records came twice: want some, the crash undid no delete, or all", again)
			}
			if rows, ids := f.count(`SELECT count(*) FROM journeyman.event_log`), f.count(`SELECT count(DISTINCT event_id) FROM journeyman.event_log`); rows != n || ids != n {
				t.Errorf("event log has %d rows of %d messages, want %d", rows, ids, n)
			}
			t.Logf("killed %d times, %d of %d records came twice", killed.Load(), again, n)
		})
	}
}
