package outbox_test

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
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/outbox"
)

// Variables with which the test binary starts itself as a relay that dies.
const (
	envChild   = "JOURNEYMAN_TEST_OUTBOX_CHILD" // DSN
	envOver    = "JOURNEYMAN_TEST_OUTBOX_OVER"  // the transport's name
	envBrokers = "JOURNEYMAN_TEST_OUTBOX_BROKERS"
	envPrefix  = "JOURNEYMAN_TEST_OUTBOX_PREFIX"
	envArm     = "JOURNEYMAN_TEST_OUTBOX_ARM"
	envLog     = "JOURNEYMAN_TEST_OUTBOX_LOG"
)

// child is the relay process: it runs until it is killed.
func child(dsn string) {
	err := func() error {
		if err := crash.Arm(os.Getenv(envArm), os.Getenv(envLog)); err != nil {
			return err
		}
		ctx := context.Background()
		pool, err := pgxpool.New(ctx, dsn)
		if err != nil {
			return err
		}
		var k eventstest.Broker
		for _, over := range transports() {
			if over.name != os.Getenv(envOver) {
				continue
			}
			if k, _, err = over.dial(strings.Split(os.Getenv(envBrokers), ","), os.Getenv(envPrefix)); err != nil {
				return err
			}
		}
		r, err := outbox.NewRelay(pool, k, outbox.RelayConfig{Lanes: 1, Batch: 10, Lease: time.Second})
		if err != nil {
			return err
		}
		return r.Run(ctx)
	}()
	fmt.Fprintln(os.Stderr, "child ended:", err)
	os.Exit(3)
}

// transport is what messages travel on in a test.
type transport struct {
	name  string
	serve func(t *testing.T) (addrs []string, prefix string) // starts a broker, or finds a part of one
	dial  func(addrs []string, prefix string) (eventstest.Broker, func() error, error)
}

// realWire is a broker that is reached over the wire, and what a consumer sees of it.
type realWire struct {
	eventstest.Broker
	over   transport
	addrs  []string
	prefix string // of topics and groups
}

// dial gives a client of Kafka whose topics and groups carry a prefix.
func dial(addrs []string, prefix string) (eventstest.Broker, func() error, error) {
	k, err := kafka.New(kafka.Config{Brokers: addrs})
	if err != nil {
		return eventstest.Broker{}, nil, err
	}
	return eventstest.Shared(eventstest.Broker{Publisher: k, Subscriber: k, Admin: k}, prefix), k.Close, nil
}

// onEach runs a test over each transport, side by side.
func onEach(t *testing.T, test func(t *testing.T, k realWire)) {
	t.Helper()
	for _, over := range transports() {
		t.Run(over.name, func(t *testing.T) {
			t.Parallel()
			test(t, wire(t, over, 4))
		})
	}
}

func wire(t *testing.T, over transport, partitions int) realWire {
	t.Helper()
	k := realWire{over: over}
	k.addrs, k.prefix = over.serve(t)
	var stop func() error
	var err error
	if k.Broker, stop, err = over.dial(k.addrs, k.prefix); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	topics := catalog(t).Topics()
	for i := range topics {
		topics[i].Partitions = partitions
	}
	if err := k.EnsureTopics(ctx, 1, topics...); err != nil {
		t.Fatal(err)
	}
	return k
}

// topicLog reads n distinct messages, and what repeats came before the last of them, in order per key and topic.
func (f *fixture) topicLog(k events.Subscriber, n int, topics ...string) []events.Record {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	c, err := k.Subscribe(ctx, "audit-"+events.NewID(), topics...)
	if err != nil {
		f.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // reading is the test
	var log []events.Record
	seen := map[string]bool{}
	for len(seen) < n {
		d, err := c.Fetch(ctx)
		if err != nil {
			f.Fatalf("read %d distinct of %d messages: %v", len(seen), n, err)
		}
		seen[d.Header(events.HeaderEventID)] = true
		log = append(log, d.Record)
	}
	return log
}

// The relay process is killed at each step, then another takes over: nothing
// is lost, no key is reordered, and only what was acknowledged and not deleted
// comes twice.
func TestRelay_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	for point, maxDuplicates := range map[string]int{"relay.publish.before": 0, "relay.publish.acked": 10, "relay.delete.after": 0} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, k realWire) { killedAt(t, k, point, maxDuplicates) })
		})
	}
}

func killedAt(t *testing.T, k realWire, point string, maxDuplicates int) {
	f := setup(t)
	const n = 60
	for i := range n / 2 {
		key := fmt.Sprintf("K-%d", i%5)
		if err := f.stage(origin(fmt.Sprintf("op-%d", i)), []events.Message{created(key, i), created(key, i)}); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(t.TempDir(), "points")
	cmd := exec.CommandContext(f.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+f.pool.Config().ConnString(), envOver+"="+k.over.name, envBrokers+"="+strings.Join(k.addrs, ","), envPrefix+"="+k.prefix, envArm+"="+point+":2", envLog+"="+log)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:forcetypeassert // Unix
		t.Fatalf("child ended with %v, want SIGKILL\n%s", err, out)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.HasPrefix(string(text), point) {
		t.Fatalf("point not recorded: %q, %v", text, err)
	}
	f.relay(k, func(c *outbox.RelayConfig) { c.Stager = nil; c.Lease = time.Second })
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	records := f.topicLog(k, n, "test.thing.created.v1")
	if bad := inversions(records); bad > 0 {
		t.Errorf("%d inversions: %v", bad, brief(records))
	}
	if dup := len(records) - n; dup > maxDuplicates {
		t.Errorf("%d duplicates, want at most %d", dup, maxDuplicates)
	}
	if logged := f.count(`SELECT count(DISTINCT event_id) FROM journeyman.event_log`); logged != n {
		t.Errorf("event log has %d of %d", logged, n)
	}
}

// The whole way: eight writers with slow commits, four relays, a broker over the wire.
func TestRelay_OrderAndLossOverTheWire(t *testing.T) {
	t.Parallel()
	onEach(t, orderAndLoss)
}

func orderAndLoss(t *testing.T, k realWire) {
	f := setup(t)
	for range 4 {
		f.relay(k, func(c *outbox.RelayConfig) { c.Batch = 200; c.Lease = time.Second })
	}
	committed := f.write(8, 40, 2*time.Second)
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	records := f.topicLog(k, committed, "test.thing.created.v1", "test.thing.renamed.v1")
	// Across topics there is no order to read, so each topic by itself: sequences must grow.
	byTopic := map[string]map[string]int{}
	seen := map[string]bool{}
	for _, r := range records {
		id := r.Header(events.HeaderEventID)
		if seen[id] {
			continue
		}
		seen[id] = true
		last := byTopic[r.Topic]
		if last == nil {
			last = map[string]int{}
			byTopic[r.Topic] = last
		}
		if n := sequence(r); n <= last[r.Key] {
			t.Errorf("topic %s key %s: sequence %d after %d", r.Topic, r.Key, n, last[r.Key])
		} else {
			last[r.Key] = n
		}
	}
	t.Logf("committed %d, duplicates %d", committed, len(records)-committed)
}
