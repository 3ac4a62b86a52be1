package nats_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	upstream "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/nats"
)

const topic = "test.thing.created.v1"

func ensure(t *testing.T, c *nats.Client, partitions int) {
	t.Helper()
	if err := c.EnsureTopics(within(t), 1, events.TopicSpec{Name: topic, Partitions: partitions, Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

func record(key string, n int) events.Record {
	return events.Record{Topic: topic, Key: key, Body: []byte(fmt.Sprint(n)), Headers: []events.Header{{Name: events.HeaderEventID, Value: fmt.Sprintf("%s-%d", key, n)}}}
}

func publish(t *testing.T, c *nats.Client, records ...events.Record) {
	t.Helper()
	for i, err := range c.Publish(within(t), records) {
		if err != nil {
			t.Fatalf("publish %d: %v", i, err)
		}
	}
}

func join(t *testing.T, c *nats.Client) events.Consumer {
	t.Helper()
	m, err := c.Subscribe(within(t), "g", topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func fetch(t *testing.T, m events.Consumer, n int) []events.Delivery {
	t.Helper()
	var list []events.Delivery
	for len(list) < n {
		d, err := m.Fetch(within(t))
		if err != nil {
			t.Fatalf("fetch %d of %d: %v", len(list), n, err)
		}
		list = append(list, d)
	}
	return list
}

// A member that the group holds for dead keeps its records open: the next one
// gets them before newer ones, and the old one cannot move the position any more.
func TestGroup_TakeoverKeepsTheOrderAndFencesTheOldMember(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), -1)
	a := open(t, s, func(c *nats.Config) { c.SessionTimeout = time.Hour }) // as if paused: it looks after nothing
	b := open(t, s)
	ensure(t, a, 1)
	for n := range 6 {
		publish(t, a, record("K", n))
	}
	old := join(t, a)
	got := fetch(t, old, 4)
	if err := old.Commit(within(t), got[0], got[1]); err != nil {
		t.Fatal(err)
	}
	overtake(t, s.ClientURL())
	heir := join(t, b)
	for i, d := range fetch(t, heir, 4) {
		if want := fmt.Sprint(i + 2); string(d.Body) != want {
			t.Fatalf("record %d after the takeover is %s, want %s", i, d.Body, want)
		}
	}
	if err := old.Commit(within(t), got...); err != nil {
		t.Logf("commit of the old member: %v", err)
	}
	if err := heir.Close(); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Logf("close of the old member: %v", err)
	}
	if d := fetch(t, join(t, b), 1)[0]; string(d.Body) != "2" {
		t.Errorf("the group goes on at %s, want 2: the old member moved it", d.Body)
	}
}

// overtake takes the partitions of group g over, as a member does that dies right after.
func overtake(t *testing.T, url string) {
	t.Helper()
	conn, err := upstream.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(within(t), "journeyman-groups")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := kv.ListKeysFiltered(within(t), "g.at.>")
	if err != nil {
		t.Fatal(err)
	}
	for key := range keys.Keys() {
		e, err := kv.Get(within(t), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Update(within(t), key, []byte(`{"owner":"somebody-else","seq":2}`), e.Revision()); err != nil {
			t.Fatal(err)
		}
	}
}

// Two members share the partitions; when one leaves the other has all.
func TestGroup_SharesPartitions(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), -1)
	c := open(t, s)
	ensure(t, c, 4)
	members := []events.Consumer{join(t, c), join(t, c)}
	ctx, cancel := context.WithCancel(within(t))
	var mu sync.Mutex
	owners := map[int]map[int]bool{} // partition → members
	next := map[string]int{}
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			for {
				d, err := m.Fetch(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				if owners[d.Position.Partition] == nil {
					owners[d.Position.Partition] = map[int]bool{}
				}
				owners[d.Position.Partition][i] = true
				next[d.Key]++
				mu.Unlock()
				if err := m.Commit(ctx, d); err != nil {
					return
				}
			}
		})
	}
	both := func() bool {
		mu.Lock()
		defer mu.Unlock()
		by := map[int]bool{}
		for _, o := range owners {
			for i := range o {
				by[i] = true
			}
		}
		return len(by) == 2
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	n := 0
	for ; !both(); n++ {
		for k := range 16 {
			publish(t, c, record(fmt.Sprintf("K-%d", k), n))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("one member got everything")
		}
	}
	cancel()
	wg.Wait()
	if err := members[0].Close(); err != nil {
		t.Fatal(err)
	}
	for k := range 16 {
		publish(t, c, record(fmt.Sprintf("K-%d", k), n))
	}
	seen := map[string]bool{}
	for len(seen) < 16 { // repeats of what was not committed may come as well
		if d := fetch(t, members[1], 1)[0]; string(d.Body) == fmt.Sprint(n) {
			seen[d.Key] = true
		}
	}
}

// The server goes away in the middle and comes back with what it had: nothing is lost, no key reordered.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, -1)
	port := s.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is TCP
	c := open(t, s)
	ensure(t, c, 2)
	m := join(t, c)
	const keys, each = 4, 60
	var wg sync.WaitGroup
	down := make(chan struct{})
	for k := range keys {
		wg.Go(func() {
			key := fmt.Sprintf("K-%d", k)
			for n := 0; n < each; {
				err := c.Publish(within(t), []events.Record{record(key, n)})[0]
				if events.FaultOf(err) != events.Retriable {
					t.Errorf("got %v, want a retriable error", err)
					return
				}
				if err == nil {
					n++
				}
				if k == 0 && n == each/3 {
					select {
					case <-down:
					default:
						close(down)
					}
				}
			}
		})
	}
	<-down
	stop(s)
	serve(t, dir, port)
	next := map[string]int{}
	for len(next) < keys || next["K-0"]+next["K-1"]+next["K-2"]+next["K-3"] < keys*each {
		d := fetch(t, m, 1)[0]
		n, err := strconv.Atoi(string(d.Body))
		if err != nil {
			t.Fatal(err)
		}
		if n > next[d.Key] {
			t.Fatalf("key %s: got %d, want %d", d.Key, n, next[d.Key])
		}
		next[d.Key] = max(next[d.Key], n+1)
		if err := m.Commit(within(t), d); err != nil {
			t.Logf("commit: %v", err)
		}
	}
	wg.Wait()
}
