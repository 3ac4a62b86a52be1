package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// timeBytes bounds what is read to learn one record's time; a batch that is larger comes whole all the same.
const timeBytes = 64 << 10

// TimeAt gives the time of a record as [events.LagReader] says. It reads one batch.
func (c *Client) TimeAt(ctx context.Context, at events.Position) (time.Time, error) {
	res, err := c.api.Fetch(ctx, &kafka.FetchRequest{Topic: at.Topic, Partition: at.Partition, Offset: at.Offset, MinBytes: 1, MaxBytes: timeBytes, MaxWait: spanWait})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("kafka: %s/%d at %d: %w", at.Topic, at.Partition, at.Offset, err)
	}
	for {
		r, err := res.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return time.Time{}, nil
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("kafka: %s/%d at %d: %w", at.Topic, at.Partition, at.Offset, err)
		}
		if r.Offset >= at.Offset { // a batch may begin before it
			return r.Time, nil
		}
	}
}
