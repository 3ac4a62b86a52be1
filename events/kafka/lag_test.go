package kafka_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/kafka"
)

// The lag is exact for a group that does not exist, one that is half way, and one that is done.
func TestLag(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	k, err := kafka.New(kafka.Config{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // idle connections
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := k.EnsureTopics(ctx, 1, events.TopicSpec{Name: "a", Partitions: 2}, events.TopicSpec{Name: "b", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	var records []events.Record
	for i := range 20 {
		records = append(records, events.Record{Topic: "a", Key: fmt.Sprintf("K-%d", i), Body: []byte("x")})
	}
	for _, err := range k.Publish(ctx, records) {
		if err != nil {
			t.Fatal(err)
		}
	}
	behind := func() (n int64) {
		t.Helper()
		lags, err := k.Lag(ctx, "g", "b", "a")
		if err != nil || len(lags) != 3 || lags[0].Topic != "a" || lags[2].Topic != "b" {
			t.Fatalf("got %+v, %v", lags, err)
		}
		for _, l := range lags {
			n += l.Behind
		}
		return n
	}
	if n := behind(); n != 20 {
		t.Errorf("a group that does not exist is %d behind, want 20", n)
	}
	c, err := k.Subscribe(ctx, "g", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // end of the test
	for done := 1; done <= 20; done++ {
		d, err := c.Fetch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Commit(ctx, d); err != nil {
			t.Fatal(err)
		}
		if done%10 == 0 {
			if n := behind(); n != int64(20-done) {
				t.Errorf("after %d the group is %d behind", done, n)
			}
		}
		if done == 10 {
			eventstest.LagTimes(ctx, t, k, "g", "a")
		}
	}
}
