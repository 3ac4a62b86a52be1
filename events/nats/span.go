package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
)

// Spans gives stretches of the topics' partitions as [events.SpanReader] says.
// Offsets are the stream's sequences, so a span has holes.
func (c *Client) Spans(ctx context.Context, from, until time.Time, topics ...string) ([]events.Span, error) {
	var spans []events.Span
	for _, t := range slices.Compact(slices.Sorted(slices.Values(topics))) {
		n, err := c.count(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("nats: %w", err)
		}
		stream, err := c.js.Stream(ctx, c.stream(t))
		if err != nil {
			return nil, fmt.Errorf("nats: topic %s: %w", t, err)
		}
		for no := range n {
			s, err := c.span(ctx, stream, partition{t, no}, from, until)
			if err != nil {
				return nil, fmt.Errorf("nats: topic %s partition %d: %w", t, no, err)
			}
			if s.First < s.End {
				spans = append(spans, s)
			}
		}
	}
	return spans, nil
}

func (c *Client) span(ctx context.Context, stream jetstream.Stream, at partition, from, until time.Time) (events.Span, error) {
	s := events.Span{Topic: at.topic, Partition: at.no}
	last, err := stream.GetLastMsgForSubject(ctx, ofPartition(at))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return s, nil
	}
	if err != nil || !from.IsZero() && last.Time.Before(from) {
		return s, err
	}
	first, err := c.firstFrom(ctx, at, from)
	if err != nil {
		return s, err
	}
	s.First, s.End = first, int64(last.Sequence)+1 //nolint:gosec // far below
	if !until.IsZero() && !last.Time.Before(until) {
		s.End, err = c.firstFrom(ctx, at, until)
	}
	return s, err
}

// firstFrom gives the sequence of the partition's first record at or after a time, which must exist.
func (c *Client) firstFrom(ctx context.Context, at partition, from time.Time) (int64, error) {
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{ofPartition(at)}, InactiveThreshold: time.Minute}
	if !from.IsZero() {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &from
	}
	var seq int64
	err := c.each(ctx, at, cfg, func(d events.Delivery) (bool, error) {
		seq = d.Position.Offset
		return false, nil
	})
	return seq, err
}

// spanStall is how long a span may give no record before it counts as broken.
const spanStall = 30 * time.Second

// ReadSpan reads one span as [events.SpanReader] says, outside any group.
func (c *Client) ReadSpan(ctx context.Context, s events.Span, fn func(events.Delivery) error) error {
	cfg := jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{ofPartition(partition{s.Topic, s.Partition})}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq: uint64(max(s.First, 1)), InactiveThreshold: time.Minute, //nolint:gosec // never negative
	}
	var stop error
	err := c.each(ctx, partition{s.Topic, s.Partition}, cfg, func(d events.Delivery) (bool, error) {
		if d.Position.Offset >= s.End {
			return false, nil
		}
		stop = fn(d)
		return stop == nil && d.Position.Offset < s.End-1, nil
	})
	if stop != nil {
		return stop
	}
	if err != nil {
		return fmt.Errorf("nats: %s/%d from %d: %w", s.Topic, s.Partition, s.First, err)
	}
	return nil
}

// each gives the records of an ordered consumer to fn until that wants no more.
func (c *Client) each(ctx context.Context, at partition, cfg jetstream.OrderedConsumerConfig, fn func(events.Delivery) (bool, error)) error {
	consumer, err := c.js.OrderedConsumer(ctx, c.stream(at.topic), cfg)
	if err != nil {
		return err
	}
	msgs, err := consumer.Messages(jetstream.PullMaxMessages(256))
	if err != nil {
		return err
	}
	defer msgs.Stop()
	for {
		d, err := c.nextWithin(ctx, msgs, at)
		if err != nil {
			return err
		}
		if more, err := fn(d); err != nil || !more {
			return err
		}
	}
}

func (c *Client) nextWithin(ctx context.Context, msgs jetstream.MessagesContext, at partition) (events.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, spanStall)
	defer cancel()
	for {
		msg, err := msgs.Next(jetstream.NextContext(ctx))
		if errors.Is(err, jetstream.ErrNoHeartbeat) {
			continue // it recovers by itself
		}
		if err != nil {
			return events.Delivery{}, err
		}
		return delivery(msg, at)
	}
}
