package nats_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
)

// The lag is exact for a group that does not exist, one that is half way, and one that is done.
func TestLag(t *testing.T) {
	t.Parallel()
	k := open(t, serve(t, t.TempDir(), -1))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := k.EnsureTopics(ctx, 1, events.TopicSpec{Name: "test.a.done.v1", Partitions: 2}, events.TopicSpec{Name: "test.b.done.v1", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	var records []events.Record
	for i := range 20 {
		records = append(records, events.Record{Topic: "test.a.done.v1", Key: fmt.Sprintf("K-%d", i), Body: []byte("x"), Headers: []events.Header{{Name: events.HeaderEventID, Value: events.NewID()}}})
	}
	for _, err := range k.Publish(ctx, records) {
		if err != nil {
			t.Fatal(err)
		}
	}
	behind := func() (n int64) {
		t.Helper()
		lags, err := k.Lag(ctx, "g", "test.b.done.v1", "test.a.done.v1")
		if err != nil || len(lags) != 3 || lags[0].Topic != "test.a.done.v1" || lags[2].Topic != "test.b.done.v1" {
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
	c, err := k.Subscribe(ctx, "g", "test.a.done.v1", "test.b.done.v1")
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
			eventstest.LagTimes(ctx, t, k, "g", "test.a.done.v1")
		}
	}
}
