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

// Spans gives stretches of the topics' partitions as [events.SpanReader] says.
func (c *Client) Spans(ctx context.Context, from, until time.Time, topics ...string) ([]events.Span, error) {
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	counts := map[string]int{}
	for _, t := range topics {
		n, err := c.count(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		counts[t] = n
	}
	first, err := c.offsets(ctx, counts, from, false)
	if err != nil {
		return nil, err
	}
	end, err := c.offsets(ctx, counts, until, true)
	if err != nil {
		return nil, err
	}
	var spans []events.Span
	for _, t := range topics {
		for p := range counts[t] {
			at := partition{t, p}
			if first[at] < end[at] {
				spans = append(spans, events.Span{Topic: t, Partition: p, First: first[at], End: end[at]})
			}
		}
	}
	return spans, nil
}

// offsets gives, per partition, the first offset with a time at or after t; where there is none, the end.
// Without a time it gives the end or the beginning.
func (c *Client) offsets(ctx context.Context, counts map[string]int, t time.Time, end bool) (map[partition]int64, error) {
	ask := map[string][]kafka.OffsetRequest{}
	for topic, n := range counts {
		for p := range n {
			switch {
			case !t.IsZero():
				ask[topic] = append(ask[topic], kafka.TimeOffsetOf(p, t), kafka.LastOffsetOf(p))
			case end:
				ask[topic] = append(ask[topic], kafka.LastOffsetOf(p))
			default:
				ask[topic] = append(ask[topic], kafka.FirstOffsetOf(p))
			}
		}
	}
	res, err := c.api.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
	if err != nil {
		return nil, fmt.Errorf("kafka: offsets: %w", err)
	}
	out := map[partition]int64{}
	for topic, list := range res.Topics {
		for _, o := range list {
			if o.Error != nil {
				return nil, fmt.Errorf("kafka: offsets of topic %s partition %d: %w", topic, o.Partition, o.Error)
			}
			at := partition{topic, o.Partition}
			switch {
			case t.IsZero() && !end:
				out[at] = o.FirstOffset
			default:
				out[at] = o.LastOffset
				for offset := range o.Offsets { // of the time asked for; none, or -1, when all records are older
					if offset >= 0 {
						out[at] = offset
					}
				}
			}
		}
	}
	return out, nil
}

// spanStall is how long a span may give no record before it counts as broken:
// offsets in it may hold no record that a client sees.
const spanStall = 30 * time.Second

// ReadSpan reads one span as [events.SpanReader] says, outside any group.
func (c *Client) ReadSpan(ctx context.Context, s events.Span, fn func(events.Delivery) error) (err error) {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: c.cfg.Brokers, Topic: s.Topic, Partition: s.Partition,
		Dialer:   &kafka.Dialer{ClientID: c.cfg.ClientID, Timeout: c.cfg.DialTimeout, DualStack: true, TLS: c.cfg.TLS, SASLMechanism: c.mechanism, DialFunc: c.cfg.Dial},
		MinBytes: 1, MaxBytes: 10 << 20, MaxWait: min(c.cfg.MaxWait, spanWait), QueueCapacity: 256, ReadBackoffMin: 10 * time.Millisecond, ReadBackoffMax: 500 * time.Millisecond, MaxAttempts: 3,
	})
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.SetOffset(s.First); err != nil {
		return fmt.Errorf("kafka: %s/%d at %d: %w", s.Topic, s.Partition, s.First, err)
	}
	for next := s.First; next < s.End; {
		m, err := readWithin(ctx, r)
		if err != nil {
			return fmt.Errorf("kafka: %s/%d at %d: %w", s.Topic, s.Partition, next, err)
		}
		if m.Offset >= s.End {
			return nil
		}
		next = m.Offset + 1
		if err := fn(delivery(m)); err != nil {
			return err
		}
	}
	return nil
}

// spanWait is how long a fetch may wait for data: all of a span is there already,
// and the fetch behind its end is waited for when the reader is closed.
const spanWait = 50 * time.Millisecond

func readWithin(ctx context.Context, r *kafka.Reader) (kafka.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, spanStall)
	defer cancel()
	return r.FetchMessage(ctx)
}

func delivery(m kafka.Message) events.Delivery {
	d := events.Delivery{
		Record:   events.Record{Topic: m.Topic, Key: string(m.Key), Body: m.Value, Headers: make([]events.Header, len(m.Headers))},
		Position: events.Position{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset}, Time: m.Time,
	}
	for i, h := range m.Headers {
		d.Headers[i] = events.Header{Name: h.Key, Value: string(h.Value)}
	}
	return d
}
