package outbox_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/kafka"
)

// The broker goes away in the middle and comes back with what it had: nothing is lost, no key reordered.
func TestRelay_BrokerRestart(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dir := t.TempDir()
	start := func(ports ...int) *kfake.Cluster {
		t.Helper()
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir), kfake.Ports(ports...))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is TCP
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	cluster := start(port)
	defer func() { cluster.Close() }()
	k, err := kafka.New(kafka.Config{Brokers: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // end of the test
	ctx, cancel := context.WithTimeout(f.ctx, 20*time.Second)
	defer cancel()
	if err := k.EnsureTopics(ctx, 1, catalog(t).Topics()...); err != nil {
		t.Fatal(err)
	}
	r, _ := f.relay(k)
	stage := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			key := fmt.Sprintf("K-%d", n%5)
			if err := f.stage(origin(fmt.Sprintf("op-%d", n)), []events.Message{created(key, n)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	stage(0, 50)
	f.eventually("some to be published", func() bool { return r.Stats().Published > 10 })
	cluster.Close()
	stage(50, 100)
	f.eventually("the relay to notice", func() bool { return r.Stats().Failures > 0 })
	cluster = start(port)
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	log := f.topicLog(k, 100, "test.thing.created.v1")
	if bad := inversions(log); bad > 0 {
		t.Errorf("%d inversions: %v", bad, brief(log))
	}
	t.Logf("duplicates: %d", len(log)-100)
}
