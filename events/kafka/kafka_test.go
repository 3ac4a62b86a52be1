package kafka_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	upstream "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/kafka"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func open(t *testing.T, cfg kafka.Config, opts ...kfake.Opt) (*kafka.Client, *kfake.Cluster) {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.GroupMinSessionTimeout(time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cfg.Brokers = cluster.ListenAddrs()
	c, err := kafka.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, cluster
}

func TestConformance(t *testing.T) {
	t.Parallel()
	eventstest.Transport(t, func(t *testing.T) eventstest.Broker {
		t.Helper()
		c, _ := open(t, kafka.Config{})
		return eventstest.Broker{Publisher: c, Subscriber: c, Admin: c, MaxBytes: 1 << 20}
	})
}

func TestConformance_SASL(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			c, _ := open(t, kafka.Config{SASL: kafka.SASL{Mechanism: m, Username: "u", Password: "p", WithoutTLS: true}}, kfake.EnableSASL(), kfake.Superuser(m, "u", "p"))
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := c.EnsureTopics(ctx, 1, events.TopicSpec{Name: "t.a.done.v1", Partitions: 1}); err != nil {
				t.Fatal(err)
			}
			if errs := c.Publish(ctx, []events.Record{{Topic: "t.a.done.v1", Key: "k", Body: []byte("1")}}); errs[0] != nil {
				t.Fatal(errs[0])
			}
			consumer, err := c.Subscribe(ctx, "g", "t.a.done.v1")
			if err != nil {
				t.Fatal(err)
			}
			defer consumer.Close() //nolint:errcheck // the fetch is the test
			if d, err := consumer.Fetch(ctx); err != nil || string(d.Body) != "1" {
				t.Errorf("got %q, %v", d.Body, err)
			}
		})
	}
}

func TestNew_RefusesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := kafka.New(kafka.Config{Brokers: []string{"nowhere"}, Compression: "rar", Heartbeat: time.Hour, SASL: kafka.SASL{Mechanism: "PLAIN", Username: "u", Password: "secret"}})
	for _, want := range []string{`"nowhere"`, `"rar"`, "heartbeat", "plaintext"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Error("the error shows the password")
	}
}

func TestPublish_PartitionsAsJavaDoes(t *testing.T) {
	t.Parallel()
	balancer := upstream.Murmur2Balancer{}
	list := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for i := range 500 {
		key := strings.Repeat("ключ", i%5) + fmt.Sprint("k", i*7919)
		if got, want := events.Partition(key, len(list)), balancer.Balance(upstream.Message{Key: []byte(key)}, list...); got != want {
			t.Fatalf("key %q: partition %d, want %d", key, got, want)
		}
	}
}

// A lost acknowledgement: the broker stores the request and answers with a
// time-out. The records must count as not published, and their order hold when
// they are sent again.
func TestPublish_LostAcknowledgement(t *testing.T) {
	t.Parallel()
	c, cluster := open(t, kafka.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.EnsureTopics(ctx, 1, events.TopicSpec{Name: "t.a.done.v1", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut})
	batch := []events.Record{{Topic: "t.a.done.v1", Key: "a", Body: []byte("1")}, {Topic: "t.a.done.v1", Key: "b", Body: []byte("2")}}
	for i, err := range c.Publish(ctx, batch) {
		if err == nil || events.FaultOf(err) != events.Retriable {
			t.Errorf("record %d: got %v, want a retriable error", i, err)
		}
	}
	for i, err := range c.Publish(ctx, batch) {
		if err != nil {
			t.Errorf("record %d again: %v", i, err)
		}
	}
}

// The leader moves: the call fails or not, and within seconds publishing works again.
func TestPublish_LeaderMoves(t *testing.T) {
	t.Parallel()
	c, cluster := open(t, kafka.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := c.EnsureTopics(ctx, 1, events.TopicSpec{Name: "t.a.done.v1", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	rec := []events.Record{{Topic: "t.a.done.v1", Key: "a", Body: []byte("1")}}
	for range 3 {
		if err := cluster.MoveTopicPartition("t.a.done.v1", 0, (cluster.LeaderFor("t.a.done.v1", 0)+1)%3); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for {
			err := c.Publish(ctx, rec)[0]
			if err == nil {
				break
			}
			if events.FaultOf(err) != events.Retriable {
				t.Fatalf("got %v, want a retriable error", err)
			}
			if ctx.Err() != nil {
				t.Fatalf("still failing after %v: %v", time.Since(start), err)
			}
		}
		t.Logf("back after %v", time.Since(start))
	}
}

func TestPublish_BadCredentialsAreUnusable(t *testing.T) {
	t.Parallel()
	c, _ := open(t, kafka.Config{SASL: kafka.SASL{Mechanism: "PLAIN", Username: "u", Password: "wrong", WithoutTLS: true}}, kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "p"))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := c.Publish(ctx, []events.Record{{Topic: "t.a.done.v1", Key: "a", Body: []byte("1")}})[0]
	t.Logf("%v", err)
	if err == nil || events.FaultOf(err) == events.Permanent {
		t.Errorf("got %v, must not park the key", err)
	}
}

func TestEnsureTopics_ChecksCopies(t *testing.T) {
	t.Parallel()
	c, _ := open(t, kafka.Config{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	topic := events.TopicSpec{Name: "t.a.done.v1", Partitions: 2}
	if err := c.EnsureTopics(ctx, 1, topic); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureTopics(ctx, 3, topic); err == nil || !strings.Contains(err.Error(), "copies") {
		t.Errorf("one copy where three are asked for: got %v", err)
	}
	if err := c.EnsureTopics(ctx, 0, topic); err == nil {
		t.Error("replication 0 was taken")
	}
}
