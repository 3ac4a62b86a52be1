package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
)

// Lag tells how far a group is behind as [events.LagReader] says. Positions are
// sequences of the stream; what lies between is counted by the server.
func (c *Client) Lag(ctx context.Context, group string, topics ...string) ([]events.Lag, error) {
	kv, err := c.groups(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("nats: lag: bucket of groups: %w", err)
	}
	m := &consumer{c: c, kv: kv, group: escape(group)}
	var lags []events.Lag
	for _, t := range slices.Compact(slices.Sorted(slices.Values(topics))) {
		n, err := c.count(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("nats: lag: topic %s: %w", t, err)
		}
		stream, err := c.js.Stream(ctx, c.stream(t))
		if err != nil {
			return nil, fmt.Errorf("nats: lag: topic %s: %w", t, err)
		}
		for no := range n {
			l, err := m.lag(ctx, stream, partition{t, no})
			if err != nil {
				return nil, fmt.Errorf("nats: lag of group %s in topic %s partition %d: %w", group, t, no, err)
			}
			lags = append(lags, l)
		}
	}
	return lags, nil
}

func (m *consumer) lag(ctx context.Context, stream jetstream.Stream, at partition) (events.Lag, error) {
	l := events.Lag{Topic: at.topic, Partition: at.no, Committed: -1}
	var is place
	switch e, err := m.kv.Get(ctx, m.key(at)); {
	case errors.Is(err, jetstream.ErrKeyNotFound):
	case err != nil:
		return l, err
	default:
		if err := json.Unmarshal(e.Value(), &is); err != nil {
			return l, err
		}
		l.Committed = int64(is.Seq) + 1 //nolint:gosec // far below
		l.Next = l.Committed
	}
	last, err := stream.GetLastMsgForSubject(ctx, ofPartition(at))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return l, nil
	case err != nil:
		return l, err
	}
	l.End = int64(last.Sequence) + 1 //nolint:gosec // far below
	info, err := stream.Info(ctx)
	if err != nil {
		return l, err
	}
	if is.Seq > info.State.LastSeq {
		l.Ahead = true
		return l, nil
	}
	if is.Seq >= last.Sequence {
		return l, nil
	}
	// An ordered consumer that reads nothing tells how much there is to read.
	c, err := m.c.js.CreateOrUpdateConsumer(ctx, m.c.stream(at.topic), jetstream.ConsumerConfig{
		FilterSubject: ofPartition(at), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: is.Seq + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return l, err
	}
	l.Behind = int64(c.CachedInfo().NumPending) //nolint:gosec // far below
	return l, m.c.js.DeleteConsumer(ctx, m.c.stream(at.topic), c.CachedInfo().Name)
}

// TimeAt gives the time of a record as [events.LagReader] says.
func (c *Client) TimeAt(ctx context.Context, at events.Position) (time.Time, error) {
	stream, err := c.js.Stream(ctx, c.stream(at.Topic))
	if err != nil {
		return time.Time{}, fmt.Errorf("nats: topic %s: %w", at.Topic, err)
	}
	m, err := stream.GetMsg(ctx, uint64(max(at.Offset, 1)), jetstream.WithGetMsgSubject(ofPartition(partition{at.Topic, at.Partition}))) //nolint:gosec // never negative
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("nats: %s/%d at %d: %w", at.Topic, at.Partition, at.Offset, err)
	}
	return m.Time, nil
}
