package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// ring runs a ringer of the fixture's stager until the end of the test.
func (f *fixture) ring(pool *pgxpool.Pool, s *outbox.Stager) {
	f.Helper()
	r, err := outbox.NewRinger(pool, outbox.RingerConfig{Stager: s})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.Errorf("ringer ended with %v", err)
		}
	})
}

// A relay of another process, which would look once a minute, hears of each
// commit, also after its connection was cut.
func TestRinger_WakesRelaysOfOtherProcesses(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	r, _ := f.relay(bk, func(c *outbox.RelayConfig) { c.Stager = nil; c.Listen = true; c.Poll = time.Minute })
	f.ring(f.pool, f.Stager)
	listens := func() bool {
		return f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`) == 1
	}
	f.eventually("the relay to own the shards", func() bool { return r.Stats().Shards == events.Shards })
	f.eventually("the relay to listen", listens)
	for n := 1; n <= 5; n++ {
		if err := f.stage(origin(fmt.Sprintf("op-%d", n)), []events.Message{created("K", n)}); err != nil {
			t.Fatal(err)
		}
		f.wait(bk, fmt.Sprintf("message %d", n), atLeast(n))
	}
	if n := f.count(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`); n != 1 {
		t.Fatalf("cut %d connections, want 1", n)
	}
	f.eventually("the relay to listen again", listens)
	if err := f.stage(origin("op-6"), []events.Message{created("K", 6)}); err != nil {
		t.Fatal(err)
	}
	f.wait(bk, "the message after the cut", atLeast(6))
}

// Without the ring the same relay does not hear: what the test above sees is the ring's doing.
func TestRelay_WithoutRingPolls(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := newBroker()
	r, _ := f.relay(bk, func(c *outbox.RelayConfig) { c.Stager = nil; c.Poll = 300 * time.Millisecond })
	f.eventually("the relay to own the shards", func() bool { return r.Stats().Shards == events.Shards })
	if err := f.stage(origin("op-1"), []events.Message{created("K", 1)}); err != nil {
		t.Fatal(err)
	}
	f.wait(bk, "the message, by polling", atLeast(1))
}

func TestNewRinger_RefusesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := outbox.NewRinger(nil, outbox.RingerConfig{Schema: "a b", Every: time.Microsecond})
	for _, want := range []string{"schema", "pool", "stager", "every"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// The relay's delete does not wait for the disk, and the setting does not stick to the connection.
func TestRelay_AckLeavesTheConnectionAsItWas(t *testing.T) {
	t.Parallel()
	f := setup(t)
	cfg := f.pool.Config()
	cfg.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(f.ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r, err := outbox.NewRelay(pool, newBroker(), outbox.RelayConfig{Lanes: 1, Poll: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	if err := f.stage(origin("op-1"), []events.Message{created("K", 1)}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the message", func() bool { return r.Stats().Published == 1 })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var conns []*pgxpool.Conn
	for range 2 {
		c, err := pool.Acquire(f.ctx)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		var got string
		if err := c.QueryRow(f.ctx, "SELECT setting FROM pg_settings WHERE name = 'synchronous_commit'").Scan(&got); err != nil || got == "off" && f.count("SELECT count(*) FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off'") == 0 {
			t.Errorf("synchronous_commit is %q on the relay's connection, %v", got, err)
		}
	}
	for _, c := range conns {
		c.Release()
	}
}
