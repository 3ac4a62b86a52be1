package nats_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	upstream "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/nats"
	"github.com/vitrip/journeyman/internal/natstest"
)

// asked talks to JetStream without our client.
func asked(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	conn, err := upstream.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func described(t *testing.T, ctx context.Context, js jetstream.JetStream, stream string) *jetstream.StreamInfo {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := js.Stream(ctx, stream)
		if err == nil {
			return s.CachedInfo()
		}
		select {
		case <-tick.C: // a leader is being elected
		case <-ctx.Done():
			t.Fatalf("stream %s: %v", stream, err)
		}
	}
}

// Three servers keep every record: when the stream's leader ends under three busy senders, publishing and consuming go on,
// each key in order, each record once. Without a majority nothing counts as published.
func TestCluster_LeaderEnds(t *testing.T) {
	t.Parallel()
	cluster := natstest.ServeCluster(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := connect(t, nats.Config{URL: cluster.URL()})
	if err := c.EnsureTopics(ctx, 3, events.TopicSpec{Name: topic, Partitions: 2}, events.TopicSpec{Name: "shop.b.done.v1", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	js := asked(t, cluster.URL())
	for _, name := range []string{"journeyman-test", "journeyman-shop", "KV_journeyman-groups"} {
		is := described(t, ctx, js, name)
		if is.Config.Replicas != 3 || is.Config.Storage != jetstream.FileStorage || is.Cluster == nil || len(is.Cluster.Replicas) != 2 {
			t.Errorf("stream %s: %d replicas in %v, %+v; want a leader and two others, on files", name, is.Config.Replicas, is.Config.Storage, is.Cluster)
		}
	}
	const each, keys, before = 60, 3, 20
	want, warm := map[string][]string{}, make(chan struct{}, keys)
	var senders sync.WaitGroup
	defer senders.Wait()
	for k := range keys {
		key := fmt.Sprint("K", k)
		for n := range each {
			want[key] = append(want[key], fmt.Sprint(n))
		}
		senders.Go(func() {
			for n := range each {
				if !insist(t, ctx, c, record(key, n)) {
					return
				}
				if n == before {
					warm <- struct{}{}
				}
			}
		})
	}
	consumer, err := c.Subscribe(ctx, "g", topic)
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	got := map[string][]string{}
	receive := func(n int) {
		t.Helper()
		for range n {
			d, err := consumer.Fetch(ctx)
			if err != nil {
				t.Fatalf("%v, after %v", err, got)
			}
			got[d.Key] = append(got[d.Key], string(d.Body))
			if err := consumer.Commit(ctx, d); err != nil {
				t.Logf("commit of %s/%s: %v", d.Key, d.Body, err) // the next one brings it
			}
		}
	}
	receive(before)
	for range keys {
		select {
		case <-warm:
		case <-ctx.Done():
			t.Fatal("the senders do not get on")
		}
	}
	cluster.Stop(described(t, ctx, js, "journeyman-test").Cluster.Leader)
	receive(each*keys - before)
	senders.Wait()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the group got, where + is too much and - is missing:\n%s", diff)
	}
	is := described(t, ctx, js, "journeyman-test")
	if is.State.Msgs != each*keys {
		t.Errorf("the stream has %d records, want %d", is.State.Msgs, each*keys)
	}
	if err := consumer.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	cluster.Stop(is.Cluster.Leader)
	if err := c.Publish(ctx, []events.Record{record("K0", each)})[0]; err == nil || events.FaultOf(err) != events.Retriable {
		t.Errorf("one server of three: got %v, want a retriable error", err)
	}
}

// insist tries again until the record is acknowledged, as a relay does. No failure on the way may be for good.
func insist(t *testing.T, ctx context.Context, c *nats.Client, r events.Record) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := c.Publish(ctx, []events.Record{r})[0]
		if err == nil {
			return true
		}
		if events.FaultOf(err) != events.Retriable {
			t.Errorf("%s/%s: got %v, want a retriable error", r.Key, r.Body, err)
			return false
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Errorf("%s/%s: %v", r.Key, r.Body, err)
			return false
		}
	}
}

// A domain's stream and the bucket of groups are made on files.
func TestEnsureTopics_MakesFiles(t *testing.T) {
	t.Parallel()
	url := natstest.Serve(t)
	ensure(t, connect(t, nats.Config{URL: url}), 2)
	js := asked(t, url)
	for _, name := range []string{"journeyman-test", "KV_journeyman-groups"} {
		if is := described(t, within(t), js, name); is.Config.Storage != jetstream.FileStorage || is.Config.Replicas != 1 {
			t.Errorf("stream %s: %d copies in %v, want one on files", name, is.Config.Replicas, is.Config.Storage)
		}
	}
}

// What is there and differs from what the catalog asks for is refused and left as it is; stream, found and wanted are named.
func TestEnsureTopics_RefusesWhatDiffers_O3(t *testing.T) {
	t.Parallel()
	const metadata = "journeyman.topic." + topic
	stream := jetstream.StreamConfig{
		Name: "journeyman-test", Subjects: []string{topic + ".*.*"}, Storage: jetstream.FileStorage, Replicas: 1, Metadata: map[string]string{metadata: "2"},
	}
	groups := jetstream.KeyValueConfig{Bucket: "journeyman-groups", Storage: jetstream.FileStorage, Replicas: 1, LimitMarkerTTL: time.Hour}
	tests := map[string]struct {
		edit              func(*jetstream.StreamConfig, *jetstream.KeyValueConfig)
		copies, partition int
		says              []string // none when it is taken
	}{
		"as asked":         {nil, 1, 2, nil},
		"fewer copies":     {nil, 3, 2, []string{"stream journeyman-test has 1 copies, want at least 3", "stream KV_journeyman-groups has 1 copies, want at least 3"}},
		"other partitions": {nil, 1, 5, []string{"stream journeyman-test", topic + " has 2 partitions, want 5"}},
		"no partitions": {func(s *jetstream.StreamConfig, _ *jetstream.KeyValueConfig) { s.Metadata = nil }, 1, 2, []string{
			"stream journeyman-test", "without " + metadata, "want it to say 2 partitions",
		}},
		"in memory": {func(s *jetstream.StreamConfig, _ *jetstream.KeyValueConfig) { s.Storage = jetstream.MemoryStorage }, 1, 2, []string{
			"stream journeyman-test is kept in Memory, want files",
		}},
		"groups in memory": {func(_ *jetstream.StreamConfig, kv *jetstream.KeyValueConfig) { kv.Storage = jetstream.MemoryStorage }, 1, 2, []string{
			"stream KV_journeyman-groups is kept in Memory, want files",
		}},
		"all at once": {func(s *jetstream.StreamConfig, _ *jetstream.KeyValueConfig) { s.Storage = jetstream.MemoryStorage }, 3, 5, []string{
			"journeyman-test has 1 copies", "KV_journeyman-groups has 1 copies", "is kept in Memory", "2 partitions, want 5",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, url := within(t), natstest.Serve(t)
			js, s, kv := asked(t, url), stream, groups
			if tt.edit != nil {
				tt.edit(&s, &kv)
			}
			if _, err := js.CreateStream(ctx, s); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateKeyValue(ctx, kv); err != nil {
				t.Fatal(err)
			}
			before := described(t, ctx, js, s.Name).Config
			err := connect(t, nats.Config{URL: url}).EnsureTopics(ctx, tt.copies, events.TopicSpec{Name: topic, Partitions: tt.partition})
			if (err == nil) != (tt.says == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to say %q", err, want)
				}
			}
			if diff := cmp.Diff(before, described(t, ctx, js, s.Name).Config); diff != "" {
				t.Errorf("the stream was changed:\n%s", diff)
			}
		})
	}
}

// A consumer whose stream went away with the only server that had it leaves all the same.
func TestClose_WithoutTheStream(t *testing.T) {
	t.Parallel()
	cluster := natstest.ServeCluster(t)
	c := connect(t, nats.Config{URL: cluster.URL()})
	ensure(t, c, 1)
	publish(t, c, record("K", 1))
	m := join(t, c)
	fetch(t, m, 1)
	cluster.Stop(described(t, within(t), asked(t, cluster.URL()), "journeyman-test").Cluster.Leader)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if d, err := m.Fetch(ctx); err == nil { // while it looks for the stream
		t.Errorf("got %s of no server", d.Body)
	}
	closed := make(chan struct{})
	go func() { _ = m.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not close")
	}
}
