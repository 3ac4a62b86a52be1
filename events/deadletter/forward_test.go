package deadletter_test

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
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/internal/crash"
)

// Variables with which the test binary starts itself as a forwarder that dies.
const (
	envChild   = "JOURNEYMAN_TEST_DEADLETTER_CHILD" // DSN
	envBrokers = "JOURNEYMAN_TEST_DEADLETTER_BROKERS"
	envPrefix  = "JOURNEYMAN_TEST_DEADLETTER_PREFIX"
	envArm     = "JOURNEYMAN_TEST_DEADLETTER_ARM"
	envLog     = "JOURNEYMAN_TEST_DEADLETTER_LOG"
)

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
		k, err := kafka.New(kafka.Config{Brokers: strings.Split(os.Getenv(envBrokers), ",")})
		if err != nil {
			return err
		}
		cat, err := events.ParseCatalog([]byte(catalogYAML))
		if err != nil {
			return err
		}
		f, err := deadletter.NewForwarder(deadletter.ForwarderConfig{DB: pool, Catalog: cat, Publisher: eventstest.Shared(eventstest.Broker{Publisher: k, Subscriber: k, Admin: k}, os.Getenv(envPrefix))})
		if err != nil {
			return err
		}
		return f.Run(ctx)
	}()
	fmt.Fprintln(os.Stderr, "child ended:", err)
	os.Exit(3)
}

// read reads the first n distinct letters of a topic, by letter id or event id, and what repeats came between.
func (f *fixture) read(topic string, n int) []events.Delivery {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	c, err := f.broker.Subscribe(ctx, "reader-"+events.NewID(), topic)
	if err != nil {
		f.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // reading is the test
	var all []events.Delivery
	seen := map[string]bool{}
	for len(seen) < n {
		d, err := c.Fetch(ctx)
		if err != nil {
			f.Fatalf("read %d of %d from %s: %v", len(seen), n, topic, err)
		}
		seen[d.Header(deadletter.HeaderLetter)+d.Header(events.HeaderEventID)] = true
		all = append(all, d)
	}
	return all
}

// What was set aside is in the DLQ topic of its type too, with the original
// bytes and the story. The forwarder is killed between broker and table: nothing is lost.
func TestForwarder_E8_Killed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.consume("view", inbox.ReplayRefused, bad)
	var sent []events.Record
	for n := range 150 {
		sent = append(sent, f.record("K", n+1))
	}
	broken := events.Record{Topic: "test.thing.created.v1", Key: "K", Body: []byte("no \x00 message")}
	f.publish(append(sent, broken)...)
	f.letters(151)
	log := filepath.Join(t.TempDir(), "points")
	cmd := exec.CommandContext(f.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+f.dsn, envBrokers+"="+strings.Join(f.addrs, ","), envPrefix+"="+f.prefix, envArm+"=deadletter.published:1", envLog+"="+log)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:forcetypeassert // Unix
		t.Fatalf("child ended with %v, want SIGKILL\n%s", err, out)
	}
	fw, err := deadletter.NewForwarder(deadletter.ForwarderConfig{DB: f.pool, Catalog: f.cat, Publisher: f.broker, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	stop := f.background(fw.Run)
	f.eventually("all to be forwarded", func() bool {
		d, err := f.desk().Depth(f.ctx)
		return err == nil && d.Unforwarded == 0 && d.Dead == 151 && d.Refused == 0
	})
	stop()
	got := f.read("test.dlq.v1", 150)
	if dup := len(got) - 150; dup != 100 {
		t.Errorf("%d repeats, want the batch that was published before the kill", dup)
	}
	byID := map[string]events.Delivery{}
	for _, d := range got {
		byID[d.Header(events.HeaderEventID)] = d
	}
	for _, r := range sent {
		d := byID[r.Header(events.HeaderEventID)]
		if string(d.Body) != string(r.Body) || d.Header(deadletter.HeaderReason) != "bad_data" || d.Header(deadletter.HeaderGroup) != "view" || d.Header(deadletter.HeaderTopic) != r.Topic ||
			d.Header(deadletter.HeaderAttempts) != "1" || d.Header(deadletter.HeaderError) == "" || d.Header(deadletter.HeaderDiedAt) == "" {
			t.Fatalf("DLQ topic has %+v for %s", d.Record, r.Body)
		}
	}
	if d := f.read(events.DefaultDLQ, 1)[0]; string(d.Body) != string(broken.Body) || d.Header(deadletter.HeaderReason) != inbox.ReasonEnvelope {
		t.Errorf("a body that is no message: %+v", d.Record)
	}
}

// picky refuses one record for good.
type picky struct{ events.Publisher }

func (p picky) Publish(ctx context.Context, records []events.Record) []error {
	errs := p.Publisher.Publish(ctx, records[1:])
	return append([]error{&events.PublishError{Fault: events.Permanent, Err: errors.New("too large")}}, errs...)
}

// One that the topic refuses does not stop the others.
func TestForwarder_E8_RefusedByTheTopic(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.consume("view", inbox.ReplayRefused, bad)
	f.publish(f.record("K", 1), f.record("K", 2), f.record("K", 3))
	f.letters(3)
	fw, err := deadletter.NewForwarder(deadletter.ForwarderConfig{DB: f.pool, Catalog: f.cat, Publisher: picky{f.broker}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := fw.Pass(f.ctx); n != 3 || err != nil {
		t.Fatalf("%d, %v; want 3", n, err)
	}
	if d, err := f.desk().Depth(f.ctx); err != nil || d.Refused != 1 || d.Unforwarded != 0 || d.Dead != 3 {
		t.Errorf("depth %+v, %v", d, err)
	}
	f.read("test.dlq.v1", 2)
}
