package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/outbox"
)

// Leaders move from broker to broker while rows flow: nothing is lost, no key is reordered.
func TestRelay_LeadersMove(t *testing.T) {
	t.Parallel()
	f := setup(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	k, err := kafka.New(kafka.Config{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // end of the test
	topics := catalog(t).Topics()
	for i := range topics {
		topics[i].Partitions = 4
	}
	if err := k.EnsureTopics(f.ctx, 1, topics...); err != nil {
		t.Fatal(err)
	}
	r, _ := f.relay(k, func(c *outbox.RelayConfig) { c.Batch = 20 })
	stop := make(chan struct{})
	var movers sync.WaitGroup
	var moves atomic.Int64
	movers.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			p := rand.Int32N(4)
			if err := cluster.MoveTopicPartition("test.thing.created.v1", p, (cluster.LeaderFor("test.thing.created.v1", p)+1)%3); err != nil {
				t.Error(err)
			}
			moves.Add(1)
		}
	})
	committed := f.write(4, 20, 2*time.Second)
	f.eventually("a publish that met the wrong leader", func() bool { return r.Stats().Failures > 0 })
	close(stop)
	movers.Wait()
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	records := f.topicLog(k, committed, "test.thing.created.v1", "test.thing.renamed.v1")
	last, seen := map[[2]string]int{}, map[string]bool{}
	for _, r := range records {
		id, at := r.Header(events.HeaderEventID), [2]string{r.Topic, r.Key}
		if seen[id] {
			continue
		}
		seen[id] = true
		if n := sequence(r); n <= last[at] {
			t.Errorf("topic %s key %s: sequence %d after %d", r.Topic, r.Key, n, last[at])
		} else {
			last[at] = n
		}
	}
	t.Logf("%d moves, committed %d, duplicates %d", moves.Load(), committed, len(records)-committed)
}

// slowBroker takes each record and answers some calls only when their time is
// up: the relay cannot know that they arrived.
type slowBroker struct {
	*broker
	slow atomic.Bool
}

func (b *slowBroker) Publish(ctx context.Context, records []events.Record) []error {
	errs := b.broker.Publish(ctx, records)
	if b.slow.Load() && rand.IntN(3) == 0 {
		<-ctx.Done()
		for i := range errs {
			errs[i] = &events.PublishError{Err: ctx.Err()}
		}
	}
	return errs
}

// A broker that answers too late holds rows, not for ever and never past their
// key: on every doubt the row stays and is published again under its id.
func TestRelay_SlowBroker(t *testing.T) {
	t.Parallel()
	f := setup(t)
	bk := &slowBroker{broker: newBroker()}
	bk.slow.Store(true)
	r, _ := f.relay(bk, func(c *outbox.RelayConfig) { c.ProduceTimeout = 50 * time.Millisecond; c.Batch = 20 })
	const n = 200
	for i := range n {
		if err := f.stage(origin(fmt.Sprintf("op-%d", i)), []events.Message{created(fmt.Sprintf("K-%d", i%10), i)}); err != nil {
			t.Fatal(err)
		}
	}
	f.eventually("a publish without an answer", func() bool { return r.Stats().Failures > 0 })
	bk.slow.Store(false)
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	log := bk.records()
	ids := map[string]bool{}
	for _, r := range log {
		ids[r.Header(events.HeaderEventID)] = true
	}
	if len(ids) != n || inversions(log) > 0 {
		t.Errorf("%d distinct of %d, %d inversions", len(ids), n, inversions(log))
	}
	if len(log) == n {
		t.Error("nothing came twice: the broker was never slow")
	}
	if s := r.Stats(); s.Parked > 0 || s.Lost > 0 {
		t.Errorf("parked %d, lost %d shards; a slow broker is no reason", s.Parked, s.Lost)
	}
}

// What an operator watches: rows that wait and the age of the oldest, by topic, and parked keys.
func TestDesk_Backlog(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for i := range 3 {
		if err := f.stage(origin(fmt.Sprintf("op-%d", i)), []events.Message{created("K", i), renamed("K", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.pool.Exec(f.ctx, `
		INSERT INTO journeyman.outbox_parked_key (business_key, shard, event_id, reason, since) VALUES ('P', 1, gen_random_uuid(), 'too large', now());
		SELECT journeyman.advance_clock('90 seconds')`); err != nil {
		t.Fatal(err)
	}
	b, err := f.desk.Backlog(f.ctx, f.pool)
	if err != nil {
		t.Fatal(err)
	}
	if b.Rows != 6 || b.ParkedKeys != 1 || len(b.Topics) != 2 || b.Topics[0].Rows != 3 || b.Oldest < 90*time.Second || b.Oldest > 150*time.Second {
		t.Errorf("backlog %+v, want 6 rows of 2 topics, 1 parked key, the oldest 90 s and a little old", b)
	}
}
