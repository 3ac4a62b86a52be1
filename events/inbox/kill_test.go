package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/internal/crash"
)

// Variables with which the test binary starts itself as a consumer that dies.
const (
	envChild   = "JOURNEYMAN_TEST_INBOX_CHILD" // DSN
	envOver    = "JOURNEYMAN_TEST_INBOX_OVER"  // the transport's name
	envBrokers = "JOURNEYMAN_TEST_INBOX_BROKERS"
	envPrefix  = "JOURNEYMAN_TEST_INBOX_PREFIX"
	envArm     = "JOURNEYMAN_TEST_INBOX_ARM"
	envLog     = "JOURNEYMAN_TEST_INBOX_LOG"
	envStall   = "JOURNEYMAN_TEST_INBOX_STALL" // handle the first message only when a line comes on standard input
)

// child is the consumer process: it runs until it is killed.
func child() {
	err := func() error {
		if err := crash.Arm(os.Getenv(envArm), os.Getenv(envLog)); err != nil {
			return err
		}
		ctx := context.Background()
		pool, err := pgxpool.New(ctx, os.Getenv(envChild))
		if err != nil {
			return err
		}
		var bus eventstest.Broker
		for _, over := range transports() {
			if over.name != os.Getenv(envOver) {
				continue
			}
			c, err := over.dial(strings.Split(os.Getenv(envBrokers), ","))
			if err != nil {
				return err
			}
			bus = shared(c, os.Getenv(envPrefix))
		}
		cat, err := events.ParseCatalog([]byte(catalogYAML))
		if err != nil {
			return err
		}
		handler, cfg := inbox.Handler(apply), inbox.Config{Group: "view", Catalog: cat, Concurrency: 2}
		if os.Getenv(envStall) != "" {
			handler = stall()
			cfg.HandlerTimeout = time.Second
			cfg.Hooks.Duplicate = func(string) { fmt.Println("duplicate") }
		}
		i, err := inbox.New(bus, pool, cfg, inbox.Route{Types: []string{"test.thing.created"}, Handler: handler})
		if err != nil {
			return err
		}
		return i.Run(ctx)
	}()
	fmt.Fprintln(os.Stderr, "child ended:", err)
	os.Exit(3)
}

// The consumer process is killed inside a message's transaction, and between
// the database's commit and the offset's: each message is applied once, in order.
func TestInbox_Killed(t *testing.T) {
	for _, point := range []string{"inbox.begun", "inbox.committed"} {
		t.Run(point, func(t *testing.T) {
			onEach(t, func(t *testing.T, f *fixture) { killed(t, f, point) })
		})
	}
}

func killed(t *testing.T, f *fixture, point string) {
	var all []events.Record
	for n := 1; n <= 10; n++ {
		for k := range 4 {
			all = append(all, f.created(fmt.Sprintf("K-%d", k), n))
		}
	}
	f.publish(all...)
	log := filepath.Join(t.TempDir(), "points")
	cmd := exec.CommandContext(f.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+f.dsn, envOver+"="+f.over.name, envBrokers+"="+strings.Join(f.addrs, ","), envPrefix+"="+f.mine, envArm+"="+point+":7", envLog+"="+log)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:forcetypeassert // Unix
		t.Fatalf("child ended with %v, want SIGKILL\n%s", err, out)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.HasPrefix(string(text), point) {
		t.Fatalf("point not recorded: %q, %v", text, err)
	}
	f.run(apply)
	f.eventually("all messages", func() bool { return f.applied() >= len(all) })
	for k := range 4 {
		if got := f.order(fmt.Sprintf("K-%d", k)); got != "1 2 3 4 5 6 7 8 9 10" {
			t.Errorf("key %d: applied %s", k, got)
		}
	}
}
