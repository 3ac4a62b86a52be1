package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/kafka"
)

// Spans are what the broker holds between two times; reading one ends where it ends, or where the caller says.
func TestSpans_E9(t *testing.T) {
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
	if err := k.EnsureTopics(ctx, 1, events.TopicSpec{Name: "a", Partitions: 3}, events.TopicSpec{Name: "b", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	publish := func(from, to int) {
		t.Helper()
		var records []events.Record
		for i := from; i < to; i++ {
			records = append(records, events.Record{Topic: "a", Key: fmt.Sprintf("K-%d", i%7), Body: fmt.Append(nil, i), Headers: []events.Header{{Name: "n", Value: fmt.Sprint(i)}}})
		}
		for _, err := range k.Publish(ctx, records) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(0, 40)
	var middle time.Time
	for middle = time.Now(); time.Since(middle) < 5*time.Millisecond; { // the broker keeps milliseconds
	}
	middle = time.Now()
	for time.Since(middle) < 5*time.Millisecond {
	}
	publish(40, 100)
	read := func(from, until time.Time) map[string]bool {
		t.Helper()
		spans, err := k.Spans(ctx, from, until, "b", "a", "a")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, s := range spans {
			next := s.First
			if err := k.ReadSpan(ctx, s, func(d events.Delivery) error {
				if d.Position.Offset != next || d.Position.Partition != s.Partition || d.Header("n") != string(d.Body) || d.Time.IsZero() {
					return fmt.Errorf("got %+v, want offset %d", d, next)
				}
				next++
				got[string(d.Body)] = true
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if next != s.End {
				t.Errorf("span %+v ended at %d", s, next)
			}
		}
		return got
	}
	for what, c := range map[string]struct {
		from, until time.Time
		n           int
		holds       string
	}{
		"all": {n: 100, holds: "0"}, "from": {from: middle, n: 60, holds: "40"}, "until": {until: middle, n: 40, holds: "39"},
		"after all": {from: time.Now().Add(time.Hour)}, "before all": {until: time.Now().Add(-time.Hour)},
	} {
		if got := read(c.from, c.until); len(got) != c.n || c.n > 0 && !got[c.holds] {
			t.Errorf("%s: %d records, want %d with %s", what, len(got), c.n, c.holds)
		}
	}
	spans, err := k.Spans(ctx, time.Time{}, time.Time{}, "a")
	if err != nil {
		t.Fatal(err)
	}
	enough, n := errors.New("enough"), 0
	if err := k.ReadSpan(ctx, spans[0], func(events.Delivery) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	}); !errors.Is(err, enough) || n != 3 {
		t.Errorf("read %d, %v; want 3 and the caller's error", n, err)
	}
	if _, err := k.Spans(ctx, time.Time{}, time.Time{}, "none"); !errors.Is(err, events.ErrUnknownTopic) {
		t.Errorf("an unknown topic: %v", err)
	}
}
