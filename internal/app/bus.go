package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/nats"
)

// The transports that relay and consumers run on (spec O3, Z1).
const (
	TransportKafka = "kafka"
	TransportNATS  = "nats"
)

// Bus is one connection that publishes, consumes, makes topics, and tells what the broker has and how far groups are.
type Bus interface {
	events.Publisher
	events.Subscriber
	events.Admin
	events.LagReader
	events.SpanReader
	Close() error
}

// checkTransport names what is missing for the transport, or stands there for the other one.
func (c Config) checkTransport() []error {
	var errs []error
	switch c.Transport {
	case TransportKafka:
		if len(c.Kafka.Brokers) == 0 {
			errs = append(errs, fmt.Errorf("app: Brokers is empty, want the brokers of transport %s", TransportKafka))
		}
		if c.NATS.URL != "" {
			errs = append(errs, fmt.Errorf("app: NATS.URL is set, but the transport is %s", TransportKafka))
		}
	case TransportNATS:
		if c.NATS.URL == "" {
			errs = append(errs, fmt.Errorf("app: NATS.URL is empty, want the servers of transport %s", TransportNATS))
		}
		if len(c.Kafka.Brokers) > 0 {
			errs = append(errs, fmt.Errorf("app: Brokers is set, but the transport is %s", TransportNATS))
		}
	default:
		errs = append(errs, fmt.Errorf("app: Transport is %q, want %s or %s", c.Transport, TransportKafka, TransportNATS))
	}
	if c.Replication < 0 {
		errs = append(errs, fmt.Errorf("app: Replication is %d, want 1 or more, or 0 to make no topics", c.Replication))
	}
	return errs
}

// OpenBus connects to the transport of a configuration, whose other fields do not matter. It refuses what is wrong with it all at
// once. What cannot be reached shows when it is used.
func OpenBus(cfg Config) (Bus, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.checkTransport()...); err != nil {
		return nil, err
	}
	if cfg.Transport == TransportNATS {
		return nats.New(cfg.NATS)
	}
	return kafka.New(cfg.Kafka)
}

// EnsureTopics makes the topics of the catalog that are missing, with the catalog's partitions and retention and the copies of
// Config.Replication, and refuses those that differ (spec O3). It does nothing when Replication is 0.
func (a *App) EnsureTopics(ctx context.Context) error {
	if a.cfg.Replication == 0 {
		return nil
	}
	topics := a.catalog.Topics()
	if a.cfg.Background.DeadLetters {
		topics = append(topics, deadletter.Topics(a.catalog)...)
	}
	if err := a.bus.EnsureTopics(ctx, a.cfg.Replication, topics...); err != nil {
		return fmt.Errorf("topics: %w", err)
	}
	return nil
}
