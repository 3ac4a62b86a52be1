package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/events"
)

// Lag tells how far a group is behind as [events.LagReader] says.
func (c *Client) Lag(ctx context.Context, group string, topics ...string) ([]events.Lag, error) {
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	counts, ask := map[string]int{}, map[string][]int{}
	for _, t := range topics {
		n, err := c.count(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("kafka: lag: %w", err)
		}
		counts[t] = n
		for p := range n {
			ask[t] = append(ask[t], p)
		}
	}
	if len(topics) == 0 {
		return nil, nil
	}
	// First what the group has: what it finishes meanwhile makes the lag too long, never negative.
	res, err := c.api.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: ask})
	if err == nil {
		err = res.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) { // some brokers say so, others give positions of -1
		res, err = &kafka.OffsetFetchResponse{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: lag of group %s: %w", group, err)
	}
	committed := map[partition]int64{}
	for topic, list := range res.Topics {
		for _, o := range list {
			if o.Error != nil {
				return nil, fmt.Errorf("kafka: lag of group %s in topic %s partition %d: %w", group, topic, o.Partition, o.Error)
			}
			committed[partition{topic, o.Partition}] = o.CommittedOffset
		}
	}
	first, err := c.offsets(ctx, counts, time.Time{}, false)
	if err != nil {
		return nil, err
	}
	end, err := c.offsets(ctx, counts, time.Time{}, true)
	if err != nil {
		return nil, err
	}
	var lags []events.Lag
	for _, t := range topics {
		for p := range counts[t] {
			at := partition{t, p}
			is, known := committed[at]
			if !known {
				is = -1
			}
			lags = append(lags, events.MakeLag(t, p, is, first[at], end[at]))
		}
	}
	return lags, nil
}
