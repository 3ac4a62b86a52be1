package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/events"
)

// Subscribe joins a consumer group as [events.Subscriber] says. The topics
// must exist. It does not wait for the group to settle: Fetch does.
func (c *Client) Subscribe(_ context.Context, group string, topics ...string) (events.Consumer, error) {
	if group == "" || len(topics) == 0 {
		return nil, fmt.Errorf("kafka: subscribe group %q to %d topics, want a name and at least one", group, len(topics))
	}
	cfg := kafka.ReaderConfig{
		Brokers: c.cfg.Brokers, GroupID: group, GroupTopics: topics, StartOffset: kafka.FirstOffset,
		Dialer:   &kafka.Dialer{ClientID: c.cfg.ClientID, Timeout: c.cfg.DialTimeout, DualStack: true, TLS: c.cfg.TLS, SASLMechanism: c.mechanism, DialFunc: c.cfg.Dial},
		MinBytes: 1, MaxBytes: 10 << 20, MaxWait: c.cfg.MaxWait, QueueCapacity: 256,
		SessionTimeout: c.cfg.SessionTimeout, RebalanceTimeout: c.cfg.SessionTimeout, HeartbeatInterval: c.cfg.Heartbeat,
		JoinGroupBackoff: 500 * time.Millisecond, ReadBackoffMin: 10 * time.Millisecond, ReadBackoffMax: 500 * time.Millisecond,
		WatchPartitionChanges: true, MaxAttempts: 3,
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("kafka: subscribe: %w", err)
	}
	return &consumer{reader: kafka.NewReader(cfg), parts: map[partition]*progress{}}, nil
}

// consumer is one group member.
type consumer struct {
	reader *kafka.Reader
	closed atomic.Bool
	mu     sync.Mutex
	parts  map[partition]*progress
	commit sync.Mutex // commits must reach the broker in order
}

// progress is what was fetched from a partition and not committed yet, in order.
type progress struct {
	open []int64
	done map[int64]bool
	owed bool  // last is finished but its commit has not succeeded
	last int64 // of the finished front
}

// closeAfter bounds Close: kafka-go's may hang without a network.
const closeAfter = 5 * time.Second

func (c *consumer) Fetch(ctx context.Context) (events.Delivery, error) {
	m, err := c.reader.FetchMessage(ctx)
	if err != nil {
		if errors.Is(err, io.EOF) && c.closed.Load() { // an end without Close is that of a broker's connection
			err = errors.New("consumer is closed")
		}
		return events.Delivery{}, fmt.Errorf("kafka: fetch: %w", err)
	}
	c.fetched(partition{m.Topic, m.Partition}, m.Offset)
	return delivery(m), nil
}

func (c *consumer) fetched(p partition, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.parts[p]
	if g == nil || len(g.open) > 0 && g.open[len(g.open)-1] >= offset {
		// First time, or the partition was lost and came back: what is open from before is delivered again.
		g = &progress{done: map[int64]bool{}}
		c.parts[p] = g
	}
	g.open = append(g.open, offset)
}

// Commit marks the records and commits, per partition, the last before the
// first that is open. A commit after the partition was lost may be accepted by
// the broker and only leads to repeats.
func (c *consumer) Commit(ctx context.Context, done ...events.Delivery) error {
	c.commit.Lock()
	defer c.commit.Unlock()
	var msgs []kafka.Message
	c.mu.Lock()
	for _, d := range done {
		if g := c.parts[partition{d.Position.Topic, d.Position.Partition}]; g != nil {
			g.finish(d.Position.Offset)
		}
	}
	for p, g := range c.parts {
		if g.owed {
			msgs = append(msgs, kafka.Message{Topic: p.topic, Partition: p.no, Offset: g.last})
		}
	}
	c.mu.Unlock()
	if len(msgs) == 0 {
		return nil
	}
	if err := c.reader.CommitMessages(ctx, msgs...); err != nil {
		return fmt.Errorf("kafka: commit: %w", err) // still owed: the next commit brings it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range msgs {
		if g := c.parts[partition{m.Topic, m.Partition}]; g.last == m.Offset {
			g.owed = false
		}
	}
	return nil
}

// finish marks an offset and moves the front. Offsets of before the partition was lost are none of ours.
func (g *progress) finish(offset int64) {
	if _, ours := slices.BinarySearch(g.open, offset); !ours {
		return
	}
	g.done[offset] = true
	n := 0
	for n < len(g.open) && g.done[g.open[n]] {
		g.last, g.owed = g.open[n], true
		delete(g.done, g.last)
		n++
	}
	g.open = g.open[n:]
}

// Close leaves the group, at most five seconds long.
func (c *consumer) Close() error {
	c.closed.Store(true)
	done := make(chan error, 1)
	go func() { done <- c.reader.Close() }()
	t := time.NewTimer(closeAfter)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-t.C:
		return errors.New("kafka: consumer did not close in time; its partitions are free after the session timeout")
	}
}
