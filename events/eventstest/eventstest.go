// Package eventstest is the conformance suite for transports: an
// implementation of the interfaces of package events is right when
// [Transport] passes.
package eventstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
)

// Broker is a transport under test. Publisher, Subscriber and Admin may be one value.
type Broker struct {
	events.Publisher
	events.Subscriber
	events.Admin
	MaxBytes    int           // a record above it is refused for good; 0 = do not try
	Replication int           // copies of each topic, 0 means 1
	Settle      time.Duration // within which everything must happen, 0 means 30 s
}

// Transport runs the suite. open gives a connection to an empty broker; it is
// called once per subtest and cleans up by t.Cleanup.
func Transport(t *testing.T, open func(t *testing.T) Broker) {
	t.Helper()
	for name, test := range map[string]func(*suite){
		"topics are created once and checked":          topicsAreChecked,
		"records arrive as they were sent":             roundTrip,
		"a key keeps its order":                        keyOrder,
		"a group goes on where it committed":           groupResumes,
		"commits out of order stop at the open record": contiguous,
		"unknown topic is retriable and named":         unknownTopic,
		"a record too large is refused alone":          tooLarge,
		"a cancelled context ends publish":             cancelled,
		"a record without key is refused for good":     noKey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with(t, open(t), test)
		})
	}
}

// RoundTrip makes topic, publishes two records of a key, and fetches and commits them in order: for transports that are set up in some
// special way, beside [Transport], which shows the rest.
func RoundTrip(t *testing.T, b Broker, topic string) {
	t.Helper()
	with(t, b, func(s *suite) {
		s.Helper()
		s.topic(topic, 1)
		s.publish(record(topic, "k", "1"), record(topic, "k", "2"))
		c := s.join("g", topic)
		defer c.Close() //nolint:errcheck // the fetches are the test
		for _, want := range []string{"1", "2"} {
			d := s.fetch(c, 1)[0]
			if string(d.Body) != want {
				s.Fatalf("got %q, want %q", d.Body, want)
			}
			if err := c.Commit(s.ctx, d); err != nil {
				s.Fatal(err)
			}
		}
	})
}

// with runs a test on a broker, within the time that it may take.
func with(t *testing.T, b Broker, test func(*suite)) {
	t.Helper()
	if b.Settle == 0 {
		b.Settle = 30 * time.Second
	}
	if b.Replication == 0 {
		b.Replication = 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.Settle)
	defer cancel()
	test(&suite{T: t, Broker: b, ctx: ctx})
}

type suite struct {
	*testing.T
	Broker
	ctx context.Context
}

func (s *suite) topic(name string, partitions int) {
	s.Helper()
	if err := s.Admin.EnsureTopics(s.ctx, s.Replication, events.TopicSpec{Name: name, Partitions: partitions, Retention: time.Hour}); err != nil {
		s.Fatalf("ensure topic: %v", err)
	}
}

func record(topic, key, body string) events.Record {
	return events.Record{Topic: topic, Key: key, Body: []byte(body), Headers: []events.Header{{Name: "n", Value: body}}}
}

func (s *suite) publish(records ...events.Record) {
	s.Helper()
	for i, err := range s.Publisher.Publish(s.ctx, records) {
		if err != nil {
			s.Fatalf("publish record %d: %v", i, err)
		}
	}
}

func (s *suite) join(group string, topics ...string) events.Consumer {
	s.Helper()
	c, err := s.Subscriber.Subscribe(s.ctx, group, topics...)
	if err != nil {
		s.Fatalf("subscribe: %v", err)
	}
	return c
}

func (s *suite) fetch(c events.Consumer, n int) []events.Delivery {
	s.Helper()
	var got []events.Delivery
	for range n {
		d, err := c.Fetch(s.ctx)
		if err != nil {
			s.Fatalf("fetch after %d of %d records: %v", len(got), n, err)
		}
		got = append(got, d)
	}
	return got
}

func topicsAreChecked(s *suite) {
	s.topic("test.a.done.v1", 4)
	s.topic("test.a.done.v1", 4)
	err := s.Admin.EnsureTopics(s.ctx, s.Replication, events.TopicSpec{Name: "test.a.done.v1", Partitions: 8}, events.TopicSpec{Name: "test.b.done.v1", Partitions: 1})
	if err == nil || !strings.Contains(err.Error(), "test.a.done.v1") {
		s.Errorf("other partition count: got %v, want a refusal that names the topic", err)
	}
}

func roundTrip(s *suite) {
	s.topic("test.a.done.v1", 4)
	want := events.Record{Topic: "test.a.done.v1", Key: "Käse/1", Body: []byte(`{"a":"ü"}`), Headers: []events.Header{{Name: "event_id", Value: "1"}, {Name: "x", Value: ""}, {Name: "x", Value: "2"}}}
	s.publish(want)
	c := s.join("g", "test.a.done.v1")
	defer c.Close() //nolint:errcheck // the fetch below is the test
	d := s.fetch(c, 1)[0]
	if got := d.Record; fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		s.Errorf("got %q, want %q", got, want)
	}
	if d.Position.Topic != want.Topic || d.Time.IsZero() {
		s.Errorf("position %+v, time %v", d.Position, d.Time)
	}
}

func keyOrder(s *suite) {
	const keys, each = 20, 30
	s.topic("test.a.done.v1", 8)
	var all []events.Record
	for n := range each {
		for k := range keys {
			all = append(all, record("test.a.done.v1", fmt.Sprintf("K-%d", k), fmt.Sprint(n)))
		}
	}
	s.publish(all[:len(all)/3]...)
	s.publish(all[len(all)/3:]...)
	c := s.join("g", "test.a.done.v1")
	defer c.Close() //nolint:errcheck // the fetch below is the test
	next, home := map[string]int{}, map[string]int{}
	for _, d := range s.fetch(c, keys*each) {
		if got, want := string(d.Body), fmt.Sprint(next[d.Key]); got != want {
			s.Fatalf("key %s: got %s, want %s", d.Key, got, want)
		}
		if p, seen := home[d.Key]; seen && p != d.Position.Partition {
			s.Fatalf("key %s: in partitions %d and %d", d.Key, p, d.Position.Partition)
		}
		home[d.Key] = d.Position.Partition
		next[d.Key]++
	}
}

func groupResumes(s *suite) {
	s.topic("test.a.done.v1", 1)
	s.publish(record("test.a.done.v1", "K", "0"), record("test.a.done.v1", "K", "1"), record("test.a.done.v1", "K", "2"))
	c := s.join("g", "test.a.done.v1")
	got := s.fetch(c, 2)
	if err := c.Commit(s.ctx, got[0]); err != nil {
		s.Fatalf("commit: %v", err)
	}
	if err := c.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	c = s.join("g", "test.a.done.v1")
	defer c.Close() //nolint:errcheck // the fetch below is the test
	if d := s.fetch(c, 1)[0]; string(d.Body) != "1" {
		s.Errorf("after a commit of 0 the group goes on at %s, want 1", d.Body)
	}
	other := s.join("other", "test.a.done.v1")
	defer other.Close() //nolint:errcheck // the fetch below is the test
	if d := s.fetch(other, 1)[0]; string(d.Body) != "0" {
		s.Errorf("a new group starts at %s, want 0", d.Body)
	}
}

func contiguous(s *suite) {
	s.topic("test.a.done.v1", 1)
	var all []events.Record
	for n := range 6 {
		all = append(all, record("test.a.done.v1", "K", fmt.Sprint(n)))
	}
	s.publish(all...)
	c := s.join("g", "test.a.done.v1")
	got := s.fetch(c, 6)
	if err := c.Commit(s.ctx, got[4], got[5], got[0]); err != nil { // 1 is open
		s.Fatalf("commit: %v", err)
	}
	if err := c.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	c = s.join("g", "test.a.done.v1")
	got = s.fetch(c, 5)
	if string(got[0].Body) != "1" {
		s.Fatalf("with 1 open the group goes on at %s", got[0].Body)
	}
	if err := c.Commit(s.ctx, got...); err != nil {
		s.Fatalf("commit: %v", err)
	}
	if err := c.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	s.publish(record("test.a.done.v1", "K", "6"))
	c = s.join("g", "test.a.done.v1")
	defer c.Close() //nolint:errcheck // the fetch below is the test
	if d := s.fetch(c, 1)[0]; string(d.Body) != "6" {
		s.Errorf("after all was committed the group goes on at %s, want 6", d.Body)
	}
}

func unknownTopic(s *suite) {
	s.topic("test.a.done.v1", 1)
	errs := s.Publisher.Publish(s.ctx, []events.Record{record("test.no.such.v1", "K", "0"), record("test.a.done.v1", "K", "1")})
	if !errors.Is(errs[0], events.ErrUnknownTopic) || events.FaultOf(errs[0]) != events.Retriable {
		s.Errorf("unknown topic: got %v, want ErrUnknownTopic, retriable", errs[0])
	}
	if errs[1] != nil {
		s.Errorf("its neighbour in another topic: got %v", errs[1])
	}
	s.topic("test.no.such.v1", 1)
	s.publish(record("test.no.such.v1", "K", "0"))
}

func tooLarge(s *suite) {
	if s.MaxBytes == 0 {
		s.Skip("this broker has no limit")
	}
	s.topic("test.a.done.v1", 1)
	big := record("test.a.done.v1", "big", "0")
	body := make([]byte, s.MaxBytes+1000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(body) // does not compress
	big.Body = body
	after := record("test.a.done.v1", "big", "behind")
	errs := s.Publisher.Publish(s.ctx, []events.Record{record("test.a.done.v1", "a", "1"), big, record("test.a.done.v1", "b", "2"), after})
	if errs[0] != nil || errs[2] != nil {
		s.Errorf("neighbours: got %v and %v", errs[0], errs[2])
	}
	if events.FaultOf(errs[1]) != events.Permanent || errs[1] == nil {
		s.Errorf("too large: got %v, want a permanent fault", errs[1])
	}
	if !errors.Is(errs[3], events.ErrHeldBack) {
		s.Errorf("next of its key: got %v, want ErrHeldBack", errs[3])
	}
}

func cancelled(s *suite) {
	s.topic("test.a.done.v1", 1)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	errs := s.Publisher.Publish(ctx, []events.Record{record("test.a.done.v1", "K", "0")})
	if errs[0] == nil || events.FaultOf(errs[0]) != events.Retriable {
		s.Errorf("got %v, want a retriable error", errs[0])
	}
}

func noKey(s *suite) {
	s.topic("test.a.done.v1", 1)
	errs := s.Publisher.Publish(s.ctx, []events.Record{record("test.a.done.v1", "", "0"), record("test.a.done.v1", "K", "1")})
	if errs[0] == nil || events.FaultOf(errs[0]) != events.Permanent || errs[1] != nil {
		s.Errorf("got %v, want a permanent error and nil", errs)
	}
}
