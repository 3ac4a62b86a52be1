package eventstest

import (
	"context"
	"strings"

	"github.com/vitrip/journeyman/events"
)

// Shared gives tests that share a broker a part of it of their own: topics and
// groups carry a prefix at the broker and none at the caller.
func Shared(b Broker, prefix string) Broker {
	b.Publisher = sharedPublisher{b.Publisher, prefix}
	b.Subscriber = sharedSubscriber{b.Subscriber, prefix}
	b.Admin = sharedAdmin{b.Admin, prefix}
	return b
}

type sharedPublisher struct {
	events.Publisher
	prefix string
}

func (p sharedPublisher) Publish(ctx context.Context, records []events.Record) []error {
	own := make([]events.Record, len(records))
	for i, r := range records {
		r.Topic = p.prefix + r.Topic
		own[i] = r
	}
	return p.Publisher.Publish(ctx, own)
}

type sharedSubscriber struct {
	events.Subscriber
	prefix string
}

func (s sharedSubscriber) Subscribe(ctx context.Context, group string, topics ...string) (events.Consumer, error) {
	own := make([]string, len(topics))
	for i, t := range topics {
		own[i] = s.prefix + t
	}
	c, err := s.Subscriber.Subscribe(ctx, s.prefix+group, own...)
	if err != nil {
		return nil, err
	}
	return sharedConsumer{c, s.prefix}, nil
}

type sharedConsumer struct {
	events.Consumer
	prefix string
}

func (c sharedConsumer) Fetch(ctx context.Context) (events.Delivery, error) {
	d, err := c.Consumer.Fetch(ctx)
	d.Topic = strings.TrimPrefix(d.Topic, c.prefix)
	d.Position.Topic = strings.TrimPrefix(d.Position.Topic, c.prefix)
	return d, err
}

func (c sharedConsumer) Commit(ctx context.Context, done ...events.Delivery) error {
	own := make([]events.Delivery, len(done))
	for i, d := range done {
		d.Topic = c.prefix + d.Topic
		d.Position.Topic = c.prefix + d.Position.Topic
		own[i] = d
	}
	return c.Consumer.Commit(ctx, own...)
}

type sharedAdmin struct {
	events.Admin
	prefix string
}

func (a sharedAdmin) EnsureTopics(ctx context.Context, replication int, topics ...events.TopicSpec) error {
	own := make([]events.TopicSpec, len(topics))
	for i, t := range topics {
		t.Name = a.prefix + t.Name
		own[i] = t
	}
	return a.Admin.EnsureTopics(ctx, replication, own...)
}
