package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/events"
)

// EnsureTopics creates the topics that are missing, with the retention asked for,
// raises the retention of those that keep for a shorter time, and checks the others as
// [events.Admin] says. replication is the number of copies of each partition,
// 1 only outside production. It waits until the brokers serve the new topics, or ctx ends.
func (c *Client) EnsureTopics(ctx context.Context, replication int, topics ...events.TopicSpec) error {
	if replication < 1 {
		return fmt.Errorf("kafka: replication %d, want 1 or more", replication)
	}
	have, err := c.describe(ctx)
	if err != nil {
		return err
	}
	var missing []kafka.TopicConfig
	var there []events.TopicSpec
	var errs []error
	for _, t := range topics {
		is, exists := have[t.Name]
		switch {
		case !exists:
			missing = append(missing, config(t, replication))
		case is.partitions != t.Partitions:
			errs = append(errs, wrongCount(t, is.partitions))
		case is.copies < replication:
			errs = append(errs, fmt.Errorf("kafka: topic %s has %d copies of a partition, want at least %d", t.Name, is.copies, replication))
		default:
			there = append(there, t)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := c.keepLonger(ctx, there); err != nil {
		return err
	}
	if len(missing) == 0 {
		return nil
	}
	res, err := c.api.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: missing})
	if err != nil {
		return fmt.Errorf("kafka: create topics: %w", err)
	}
	for _, t := range missing {
		if err := res.Errors[t.Topic]; err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			errs = append(errs, fmt.Errorf("kafka: create topic %s: %w", t.Topic, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := c.await(ctx, topics); err != nil {
		return err
	}
	return c.serve(ctx, missing)
}

func wrongCount(t events.TopicSpec, n int) error {
	return fmt.Errorf("kafka: topic %s has %d partitions, want %d: keys would move to other partitions and lose their order", t.Name, n, t.Partitions)
}

// await waits until every topic is known with its partitions: a topic that was
// just made is unknown to the client until its view is refreshed.
func (c *Client) await(ctx context.Context, topics []events.TopicSpec) error {
	tick := time.NewTicker(c.cfg.MetadataTTL / 5)
	defer tick.Stop()
	for {
		have, err := c.describe(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(topics, func(t events.TopicSpec) bool { _, ok := have[t.Name]; return !ok })
		if i < 0 {
			var errs []error
			for _, t := range topics { // another process may have made it differently
				if n := have[t.Name].partitions; n != t.Partitions {
					errs = append(errs, wrongCount(t, n))
				}
			}
			return errors.Join(errs...)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kafka: topic %s is not known yet: %w", topics[i].Name, ctx.Err())
		case <-tick.C:
		}
	}
}

// serve waits until each partition's leader answers for it: a broker's view of
// the cluster shows a new topic's leaders before these have taken up their
// partitions, and records sent meanwhile are refused.
func (c *Client) serve(ctx context.Context, topics []kafka.TopicConfig) error {
	tick := time.NewTicker(c.cfg.MetadataTTL / 5)
	defer tick.Stop()
	ask := map[string][]kafka.OffsetRequest{}
	for _, t := range topics {
		for p := range t.NumPartitions {
			ask[t.Topic] = append(ask[t.Topic], kafka.LastOffsetOf(p))
		}
	}
	for {
		err := c.leaders(ctx, ask)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kafka: new topics are not served yet: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

func (c *Client) leaders(ctx context.Context, ask map[string][]kafka.OffsetRequest) error {
	res, err := c.api.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
	if err != nil {
		return err
	}
	for topic, want := range ask {
		if got := len(res.Topics[topic]); got < len(want) {
			return fmt.Errorf("topic %s: %d of %d partitions", topic, got, len(want))
		}
		for _, p := range res.Topics[topic] {
			if p.Error != nil {
				return fmt.Errorf("topic %s partition %d: %w", topic, p.Partition, p.Error)
			}
		}
	}
	return nil
}

// shape is how a topic stands at the brokers. copies is the smallest number of any partition's.
type shape struct{ partitions, copies int }

// describe gives the shapes of all topics.
func (c *Client) describe(ctx context.Context) (map[string]shape, error) {
	meta, err := c.api.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, fmt.Errorf("kafka: metadata: %w", err)
	}
	have := map[string]shape{}
	for _, t := range meta.Topics {
		if t.Error != nil || len(t.Partitions) == 0 {
			continue
		}
		s := shape{partitions: len(t.Partitions), copies: len(t.Partitions[0].Replicas)}
		for _, p := range t.Partitions {
			s.copies = min(s.copies, len(p.Replicas))
		}
		have[t.Name] = s
	}
	return have, nil
}

func config(t events.TopicSpec, replication int) kafka.TopicConfig {
	cfg := kafka.TopicConfig{Topic: t.Name, NumPartitions: t.Partitions, ReplicationFactor: replication}
	add := func(name string, value int64) {
		cfg.ConfigEntries = append(cfg.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: strconv.FormatInt(value, 10)})
	}
	if t.Retention > 0 {
		add("retention.ms", t.Retention.Milliseconds())
	}
	if t.MaxBytes > 0 {
		add("max.message.bytes", int64(t.MaxBytes))
	}
	if replication >= 3 {
		add("min.insync.replicas", 2)
	}
	return cfg
}
