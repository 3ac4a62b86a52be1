package nats_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
)

// Spans are what the stream holds between two times; reading one ends where it ends, or where the caller says.
func TestSpans_E9(t *testing.T) {
	t.Parallel()
	c := open(t, serve(t, t.TempDir(), -1))
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := c.EnsureTopics(ctx, 1, events.TopicSpec{Name: "test.a.done.v1", Partitions: 3}, events.TopicSpec{Name: "test.b.done.v1", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	publish := func(from, to int) {
		t.Helper()
		var records []events.Record
		for i := from; i < to; i++ {
			records = append(records, events.Record{
				Topic: "test.a.done.v1", Key: fmt.Sprintf("K-%d", i%7), Body: fmt.Append(nil, i),
				Headers: []events.Header{{Name: events.HeaderEventID, Value: events.NewID()}, {Name: "n", Value: fmt.Sprint(i)}},
			})
		}
		for _, err := range c.Publish(ctx, records) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(0, 40)
	middle := time.Now()
	publish(40, 100)
	read := func(from, until time.Time) map[string]bool {
		t.Helper()
		spans, err := c.Spans(ctx, from, until, "test.b.done.v1", "test.a.done.v1")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, s := range spans {
			last := s.First - 1
			if err := c.ReadSpan(ctx, s, func(d events.Delivery) error {
				if d.Position.Offset <= last || d.Position.Offset >= s.End || d.Position.Partition != s.Partition || d.Header("n") != string(d.Body) {
					return fmt.Errorf("got %+v after %d in %+v", d, last, s)
				}
				last = d.Position.Offset
				got[string(d.Body)] = true
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		return got
	}
	for what, w := range map[string]struct {
		from, until time.Time
		n           int
		holds       string
	}{
		"all": {n: 100, holds: "0"}, "from": {from: middle, n: 60, holds: "40"}, "until": {until: middle, n: 40, holds: "39"},
		"after all": {from: time.Now().Add(time.Hour)}, "before all": {until: time.Now().Add(-time.Hour)},
	} {
		if got := read(w.from, w.until); len(got) != w.n || w.n > 0 && !got[w.holds] {
			t.Errorf("%s: %d records, want %d with %s", what, len(got), w.n, w.holds)
		}
	}
	spans, err := c.Spans(ctx, time.Time{}, time.Time{}, "test.a.done.v1")
	if err != nil {
		t.Fatal(err)
	}
	enough, n := errors.New("enough"), 0
	if err := c.ReadSpan(ctx, spans[0], func(events.Delivery) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	}); !errors.Is(err, enough) || n != 3 {
		t.Errorf("read %d, %v; want 3 and the caller's error", n, err)
	}
}
