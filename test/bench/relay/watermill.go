package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
)

// counted counts what a publisher has delivered.
type counted struct {
	message.Publisher
	n atomic.Int64
}

func (c *counted) Publish(topic string, messages ...*message.Message) error {
	err := c.Publisher.Publish(topic, messages...)
	if err == nil {
		c.n.Add(int64(len(messages)))
	}
	return err
}

// watermill drains rows with the forwarder of watermill-sql, set as its documentation says for throughput: rows read 1000 at a
// time, payloads as bytes, on pgx; acknowledgements of all replicas as ours, a key per message for its order. The forwarder
// publishes one message, waits for it and marks it, before it takes the next: that is how it keeps order.
func (b *bench) watermill(ctx context.Context, rows, round int) (rate float64, err error) {
	logger := watermill.NopLogger{}
	outboxTopic := fmt.Sprintf("forwarded_%d", round)
	bytesColumn := func(string) string { return "BYTEA" }
	schema := wsql.DefaultPostgreSQLSchema{SubscribeBatchSize: batch, GeneratePayloadType: bytesColumn}
	db := wsql.BeginnerFromPgx(b.pool)
	staged, err := wsql.NewPublisher(db, wsql.PublisherConfig{SchemaAdapter: schema, AutoInitializeSchema: true}, logger)
	if err != nil {
		return 0, err
	}
	wrapped := forwarder.NewPublisher(staged, forwarder.PublisherConfig{ForwarderTopic: outboxTopic})
	for from := 0; from < rows; from += batch {
		var list []*message.Message
		for n := from; n < min(from+batch, rows); n++ {
			key := fmt.Sprintf("booking-%04d", n%1000)
			m := message.NewMessage(watermill.NewUUID(), fmt.Appendf(nil, `{"messageId":"%s","messageType":"bench.room.booked","messageVersion":1,"data":{"room":"%032d","note":"%096d"},"metadata":{"businessKey":"%s","correlationId":"c-%d"}}`, watermill.NewUUID(), n, n, key, n))
			for name, value := range map[string]string{"event_id": m.UUID, "event_type": "bench.room.booked", "event_version": "1", "producer": "bench", "business_key": key, "env": "bench", "correlation_id": key, "operation_id": key} {
				m.Metadata.Set(name, value)
			}
			list = append(list, m)
		}
		if err := wrapped.Publish(topic, list...); err != nil {
			return 0, err
		}
	}
	if _, err := b.pool.Exec(ctx, `CHECKPOINT`); err != nil {
		return 0, err
	}
	off := time.Duration(0)
	sub, err := wsql.NewSubscriber(db, wsql.SubscriberConfig{
		SchemaAdapter: schema, OffsetsAdapter: wsql.DefaultPostgreSQLOffsetsAdapter{}, InitializeSchema: true, PollInterval: 10 * time.Millisecond, AckDeadline: &off,
	}, logger)
	if err != nil {
		return 0, err
	}
	cfg := wkafka.DefaultSaramaSyncPublisherConfig()
	cfg.Producer.RequiredAcks, cfg.Producer.Compression, cfg.Version = sarama.WaitForAll, sarama.CompressionLZ4, sarama.V2_1_0_0
	pub, err := wkafka.NewPublisher(wkafka.PublisherConfig{
		Brokers: []string{b.broker.Forgets}, OverwriteSaramaConfig: cfg,
		Marshaler: wkafka.NewWithPartitioningMarshaler(func(_ string, m *message.Message) (string, error) { return m.Metadata.Get("business_key"), nil }),
	}, logger)
	if err != nil {
		return 0, err
	}
	count := &counted{Publisher: pub}
	f, err := forwarder.NewForwarder(sub, count, logger, forwarder.Config{ForwarderTopic: outboxTopic})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- f.Run(ctx) }()
	for count.n.Load() < int64(rows) {
		select {
		case err := <-done:
			return 0, fmt.Errorf("forwarder ended after %d rows: %w", count.n.Load(), err)
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	rate = float64(rows) / time.Since(began).Seconds()
	return rate, errors.Join(f.Close(), <-done, pub.Close())
}
