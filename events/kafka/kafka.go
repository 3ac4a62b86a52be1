// Package kafka is the Kafka transport: publisher, subscriber and admin over
// segmentio/kafka-go, with that client's known traps closed.
//
// It publishes with Client.RawProduce and batches of its own, never with the Writer, which sleeps,
// retries behind the caller's back and reorders after a failed batch: acks of
// all replicas, Java's partitioner, requests of at most 900 KB, one request in
// flight per partition, stop at the first failure. It consumes with
// FetchMessage and commits only what the caller has finished, up to the first
// record of a partition that is not; groups start at the oldest record.
//
// kafka-go has no idempotent producer: a lost acknowledgement stores a record
// twice. Consumers recognise it by its id (package events/inbox). Topics written
// with Kafka transactions must not be consumed: this client shows aborted records.
package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Config configures a [Client]. Brokers must be set.
type Config struct {
	Brokers  []string    // host:port of some of the brokers
	ClientID string      // shown in the broker's logs, "" means "journeyman"
	TLS      *tls.Config // nil means plaintext
	SASL     SASL        // zero means none; refused without TLS unless Mechanism says otherwise

	MetadataTTL time.Duration // how old the view of topics and leaders may be, 0 means 250 ms
	DialTimeout time.Duration // 0 means 5 s
	MaxRequest  int           // bytes of one produce request, 0 means 900 KB
	Parallel    int           // produce requests in flight over all partitions, 0 means 16
	Compression string        // "lz4", "zstd", "snappy", "gzip" or "none"; "" means "lz4"

	SessionTimeout time.Duration // how long a dead consumer keeps its partitions, 0 means 10 s
	Heartbeat      time.Duration // 0 means a tenth of SessionTimeout
	MaxWait        time.Duration // how long a fetch waits for data at the broker, 0 means 1 s

	Dial func(ctx context.Context, network, address string) (net.Conn, error) // nil means TCP; a place for faults in tests
}

// SASL are credentials.
type SASL struct {
	Mechanism          string // "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512"; "" means none
	Username, Password string
	WithoutTLS         bool // allow credentials over plaintext: tests and private networks only
}

// Client is a connection pool to one Kafka cluster. It is an events.Publisher,
// events.Subscriber and events.Admin, all over one shared transport. Safe for
// concurrent use. Close it after the consumers.
type Client struct {
	cfg       Config
	codec     kafka.Compression
	mechanism sasl.Mechanism
	transport *kafka.Transport
	api       *kafka.Client
	slots     chan struct{} // bounds produce requests in flight

	mu    sync.Mutex
	parts map[string]partitions
	locks map[partition]chan struct{} // one produce request per partition
}

// New checks the configuration and refuses all that is wrong with it at once. It does not connect.
func New(cfg Config) (*Client, error) {
	var errs []error
	if len(cfg.Brokers) == 0 {
		errs = append(errs, errors.New("brokers: none"))
	}
	for _, b := range cfg.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			errs = append(errs, fmt.Errorf("brokers: %q, want host:port", b))
		}
	}
	cfg = cfg.withDefaults()
	codec, err := compression(cfg.Compression)
	errs = append(errs, err)
	mechanism, err := cfg.SASL.mechanism(cfg.TLS != nil)
	errs = append(errs, err)
	for name, d := range map[string]time.Duration{
		"metadata ttl": cfg.MetadataTTL, "dial timeout": cfg.DialTimeout, "session timeout": cfg.SessionTimeout, "heartbeat": cfg.Heartbeat, "max wait": cfg.MaxWait,
	} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s %v, want above 0", name, d))
		}
	}
	if cfg.Heartbeat*3 > cfg.SessionTimeout {
		errs = append(errs, fmt.Errorf("heartbeat %v, want at most a third of the session timeout, %v", cfg.Heartbeat, cfg.SessionTimeout))
	}
	if cfg.MaxRequest < 1000 || cfg.Parallel < 1 {
		errs = append(errs, fmt.Errorf("max request %d and parallel %d, want at least 1000 and 1", cfg.MaxRequest, cfg.Parallel))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	c := &Client{cfg: cfg, codec: codec, mechanism: mechanism, parts: map[string]partitions{}, locks: map[partition]chan struct{}{}, slots: make(chan struct{}, cfg.Parallel)}
	c.transport = &kafka.Transport{
		Dial: cfg.Dial, DialTimeout: cfg.DialTimeout, IdleTimeout: 30 * time.Second, MetadataTTL: cfg.MetadataTTL,
		ClientID: cfg.ClientID, TLS: cfg.TLS, SASL: mechanism,
	}
	c.api = &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Transport: c.transport, Timeout: 10 * time.Second}
	return c, nil
}

// Close closes idle connections. Publishing afterwards opens them again.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.MetadataTTL, 250*time.Millisecond)
	set(&c.DialTimeout, 5*time.Second)
	set(&c.SessionTimeout, 10*time.Second)
	set(&c.Heartbeat, c.SessionTimeout/10)
	set(&c.MaxWait, time.Second)
	if c.ClientID == "" {
		c.ClientID = "journeyman"
	}
	if c.MaxRequest == 0 {
		c.MaxRequest = 900_000
	}
	if c.Parallel == 0 {
		c.Parallel = 16
	}
	if c.Compression == "" {
		c.Compression = "lz4"
	}
	return c
}

func compression(name string) (kafka.Compression, error) {
	switch name {
	case "lz4":
		return kafka.Lz4, nil
	case "zstd":
		return kafka.Zstd, nil
	case "snappy":
		return kafka.Snappy, nil
	case "gzip":
		return kafka.Gzip, nil
	case "none":
		return 0, nil
	}
	return 0, fmt.Errorf("compression %q, want lz4, zstd, snappy, gzip or none", name)
}

func (s SASL) mechanism(overTLS bool) (sasl.Mechanism, error) {
	if s.Mechanism == "" {
		return nil, nil //nolint:nilnil // kafka-go's way of saying none
	}
	if s.Username == "" || s.Password == "" {
		return nil, errors.New("sasl: username or password is empty")
	}
	if !overTLS && !s.WithoutTLS {
		return nil, errors.New("sasl: credentials would travel in plaintext: set TLS, or WithoutTLS")
	}
	switch strings.ToUpper(s.Mechanism) {
	case "PLAIN":
		return plain.Mechanism{Username: s.Username, Password: s.Password}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, s.Username, s.Password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, s.Username, s.Password)
	}
	return nil, fmt.Errorf("sasl: mechanism %q, want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", s.Mechanism)
}
