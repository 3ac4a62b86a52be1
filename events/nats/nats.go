// Package nats is the NATS JetStream transport: publisher, subscriber and
// admin over nats.go.
//
// A domain of the catalog is a stream on files, a topic a range of its
// subjects: "<topic>.<partition>.<business key>", the key escaped. A record's
// event id is its Nats-Msg-Id, so that the server drops a repeat within
// [DuplicateWindow]; the id of a replay or redrive is part of it, so that what is delivered again on purpose arrives. A key's records are sent one after another, each when the
// one before is acknowledged.
//
// JetStream's own acknowledgements redeliver what a dead consumer held after
// newer records were handed out, which turns the order of a key around. So a
// group's position in each partition is a record in a key-value bucket, written
// by the partition's one owner and conditional on nobody having taken the
// partition over: a consumer that was paused cannot move it. Reading goes on
// from there in order.
//
// An acknowledged record survives the loss of power of a single server only
// when that server has "sync_interval: always"; without it, use three replicas.
package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// DuplicateWindow is how long a stream knows an event id again.
const DuplicateWindow = 10 * time.Minute

// Config configures a [Client]. URL must be set.
type Config struct {
	URL  string      // nats://host:port of some of the servers, comma separated
	Name string      // shown by the server, "" means "journeyman"
	TLS  *tls.Config // nil means what the URL's scheme says

	User, Password  string // empty means none
	Token           string // "" means none
	CredentialsFile string // JWT and seed, "" means none

	Prefix         string        // of stream and bucket names, "" means "journeyman-"
	Parallel       int           // keys published side by side, 0 means 64
	AckTimeout     time.Duration // how long an acknowledgement of the server may take, 0 means 5 s
	SessionTimeout time.Duration // how long a dead consumer keeps its partitions, 0 means 10 s
	Heartbeat      time.Duration // 0 means a fifth of SessionTimeout
}

// Client is a connection to one NATS cluster. It is an events.Publisher,
// events.Subscriber and events.Admin. Safe for concurrent use. Close it after
// the consumers.
type Client struct {
	cfg  Config
	conn *nats.Conn
	js   jetstream.JetStream

	mu     sync.Mutex
	topics map[string]partitions
	failed error // why the last attempt to connect failed, nil while connected: nats.go forgets it
}

// New checks the configuration, refuses all that is wrong with it at once, and
// connects in the background; it goes on trying for ever.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(cfg.URL != "", "url: empty")
	check(cfg.User == "" || cfg.Token == "", "user and token: want one of them")
	check((cfg.User == "") == (cfg.Password == ""), "user and password: want both or none")
	check(cfg.Parallel >= 1, "parallel %d, want 1 or more", cfg.Parallel)
	check(cfg.Prefix == escape(cfg.Prefix), "prefix %q, want only letters, digits, '-' and '_'", cfg.Prefix)
	for name, d := range map[string]time.Duration{"ack timeout": cfg.AckTimeout, "session timeout": cfg.SessionTimeout, "heartbeat": cfg.Heartbeat} {
		check(d > 0, "%s %v, want above 0", name, d)
	}
	check(cfg.Heartbeat*3 <= cfg.SessionTimeout, "heartbeat %v, want at most a third of the session timeout, %v", cfg.Heartbeat, cfg.SessionTimeout)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	opts := []nats.Option{
		nats.Name(cfg.Name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectBufSize(-1), // a record that cannot be sent now is the caller's again
		nats.Timeout(5 * time.Second),
	}
	c := &Client{cfg: cfg, topics: map[string]partitions{}}
	opts = append(opts,
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.note(err) }),
		nats.ConnectHandler(func(*nats.Conn) { c.note(nil) }), nats.ReconnectHandler(func(*nats.Conn) { c.note(nil) }))
	if cfg.TLS != nil {
		opts = append(opts, nats.Secure(cfg.TLS))
	}
	if cfg.User != "" {
		opts = append(opts, nats.UserInfo(cfg.User, cfg.Password))
	}
	if cfg.Token != "" {
		opts = append(opts, nats.Token(cfg.Token))
	}
	if cfg.CredentialsFile != "" {
		opts = append(opts, nats.UserCredentials(cfg.CredentialsFile))
	}
	conn, err := nats.Connect(cfg.URL, opts...)
	if err != nil {
		return nil, fmt.Errorf("nats: connect: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("nats: %w", err)
	}
	c.conn, c.js = conn, js
	return c, nil
}

func (c *Client) note(err error) {
	c.mu.Lock()
	c.failed = err
	c.mu.Unlock()
}

// why adds to an error of a client that is not connected what keeps it from connecting: certificates, an address nobody listens at.
func (c *Client) why(err error) error {
	c.mu.Lock()
	failed := c.failed
	c.mu.Unlock()
	if err == nil || failed == nil || c.conn.IsConnected() || errors.Is(err, failed) {
		return err
	}
	return fmt.Errorf("%w: not connected: %w", err, failed)
}

// Close closes the connection.
func (c *Client) Close() error {
	c.conn.Close()
	return nil
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.AckTimeout, 5*time.Second)
	set(&c.SessionTimeout, 10*time.Second)
	set(&c.Heartbeat, c.SessionTimeout/5)
	if c.Name == "" {
		c.Name = "journeyman"
	}
	if c.Prefix == "" {
		c.Prefix = "journeyman-"
	}
	if c.Parallel == 0 {
		c.Parallel = 64
	}
	return c
}

// groups opens the bucket with the groups' positions, or makes it with the given replicas.
func (c *Client) groups(ctx context.Context, replicas int) (jetstream.KeyValue, error) {
	name := c.cfg.Prefix + "groups"
	kv, err := c.js.KeyValue(ctx, name)
	if !errors.Is(err, jetstream.ErrBucketNotFound) || replicas == 0 {
		return kv, c.why(err)
	}
	return c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: name, Description: "positions of consumer groups", Replicas: replicas, Storage: jetstream.FileStorage, History: 1, LimitMarkerTTL: time.Hour,
	})
}
