// Package registry asks a Confluent-compatible schema registry: it registers
// schemas, gives them by id, and remembers both.
//
// A schema's id never changes its meaning, so what was asked for once is never
// asked for again. A registry that does not answer is asked a few times within
// the time-out and then left alone for a second; an id it does not know is an
// answer, and is not asked for again within a second either. With a cache folder
// a process can start while the registry is down, with what it knew the last time.
package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"golang.org/x/sync/singleflight"

	"github.com/vitrip/journeyman/events"
)

// Config configures a [Client]. URLs must be set.
type Config struct {
	URLs               []string          // http or https; each is asked in turn
	Username, Password string            // basic authentication, "" means none
	Token              string            // bearer token, "" means none
	TLS                *tls.Config       // nil means the system's roots
	Timeout            time.Duration     // of one question with all its tries, 0 means 5 s
	Tries              int               // of one question, 0 means 3
	Cache              string            // folder that remembers ids and schemas for starts while the registry is down, "" means none
	Transport          http.RoundTripper // nil means one of its own; a place for faults in tests
}

// Schema is a schema as the registry has it.
type Schema struct {
	Format     events.Format
	Text       string
	References []Reference // in the order in which they need each other
}

// Reference is a schema that another one names.
type Reference struct{ Name, Text string }

// ErrIncompatible is wrapped by the refusal of a schema that breaks the subject's compatibility level.
var ErrIncompatible = errors.New("schema is incompatible with the subject's versions")

// Client asks a registry. Make one with [New]. Safe for concurrent use.
type Client struct {
	cfg   Config
	api   *sr.Client
	group singleflight.Group

	mu      sync.Mutex
	schemas map[int]Schema
	unknown map[int]time.Time // when an id was last found to be unknown
	down    time.Time         // until when the registry is left alone
	why     error
}

const (
	maxAnswer  = 4 << 20 // bytes
	pause      = time.Second
	maxUnknown = 10_000
)

// New checks the configuration and refuses all that is wrong with it at once. It does not connect.
func New(cfg Config) (*Client, error) {
	var errs []error
	if len(cfg.URLs) == 0 {
		errs = append(errs, errors.New("urls: none"))
	}
	for _, text := range cfg.URLs {
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			errs = append(errs, errors.New("urls: want http or https with a host and without credentials in each"))
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Tries == 0 {
		cfg.Tries = 3
	}
	if cfg.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout %v, want above 0", cfg.Timeout))
	}
	if cfg.Tries < 1 || cfg.Tries > 10 {
		errs = append(errs, fmt.Errorf("tries %d, want 1 to 10", cfg.Tries))
	}
	if cfg.Token != "" && cfg.Username != "" {
		errs = append(errs, errors.New("token and username: want one of them"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.TLS, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 5 * time.Second}
	}
	opts := []sr.ClientOpt{sr.URLs(cfg.URLs...), sr.UserAgent("journeyman"), sr.HTTPClient(&http.Client{Transport: bounded{cfg.Transport}, Timeout: cfg.Timeout})}
	switch {
	case cfg.Token != "":
		opts = append(opts, sr.BearerToken(cfg.Token))
	case cfg.Username != "":
		opts = append(opts, sr.BasicAuth(cfg.Username, cfg.Password))
	}
	api, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	return &Client{cfg: cfg, api: api, schemas: map[int]Schema{}, unknown: map[int]time.Time{}}, nil
}

// Close ends idle connections.
func (c *Client) Close() {
	if t, ok := c.cfg.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// bounded cuts answers off that are larger than any schema.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// Schema gives the schema of an id. The error wraps [events.ErrSchemaUnknown] or [events.ErrSchemaUnavailable].
func (c *Client) Schema(ctx context.Context, id int) (Schema, error) {
	c.mu.Lock()
	s, ok := c.schemas[id]
	since, missed := c.unknown[id]
	c.mu.Unlock()
	if ok {
		return s, nil
	}
	if missed && time.Since(since) < pause {
		return Schema{}, fmt.Errorf("schema id %d: %w", id, events.ErrSchemaUnknown)
	}
	// One question for all that wait for it, so none of them may end it for the others.
	answer := c.group.DoChan(fmt.Sprint(id), func() (any, error) { return c.fetch(context.WithoutCancel(ctx), id) })
	select {
	case r := <-answer:
		if r.Err != nil {
			return Schema{}, fmt.Errorf("schema id %d: %w", id, r.Err)
		}
		return r.Val.(Schema), nil //nolint:forcetypeassert // what fetch gives
	case <-ctx.Done():
		return Schema{}, fmt.Errorf("schema id %d: %w: %w", id, events.ErrSchemaUnavailable, ctx.Err())
	}
}

func (c *Client) fetch(ctx context.Context, id int) (Schema, error) {
	var s Schema
	err := c.ask(ctx, func(ctx context.Context) error {
		got, err := c.api.SchemaByID(ctx, id)
		if err != nil {
			return err
		}
		s, err = c.whole(ctx, got)
		return err
	})
	switch {
	case errors.Is(err, events.ErrSchemaUnavailable):
		if kept, known, fault := c.recall(id); fault != nil {
			err = errors.Join(err, fault)
		} else if known {
			s, err = kept, nil
		}
	case err == nil:
		if fault := c.keep(id, s); fault != nil { // the message waits: its schema is not at fault
			err = fmt.Errorf("%w: %w", events.ErrSchemaUnavailable, fault)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.schemas[id] = s
		delete(c.unknown, id)
	case errors.Is(err, events.ErrSchemaUnknown):
		maps.DeleteFunc(c.unknown, func(_ int, at time.Time) bool { return len(c.unknown) >= maxUnknown || time.Since(at) > pause })
		c.unknown[id] = time.Now()
	}
	return s, err
}

// ask puts a question to the registry a few times, within the time-out. The
// error is the registry's own answer, or wraps [events.ErrSchemaUnavailable] or [events.ErrSchemaUnknown].
func (c *Client) ask(ctx context.Context, question func(ctx context.Context) error) error {
	c.mu.Lock()
	left, why := time.Until(c.down), c.why
	c.mu.Unlock()
	if left > 0 {
		return why
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	var err error
	for try := 1; ; try++ {
		err = question(ctx)
		answer, answered := errors.AsType[*sr.ResponseError](err)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errUnusable):
			return err
		case answered && answer.StatusCode == http.StatusNotFound && answer.ErrorCode != 0:
			return fmt.Errorf("%w: %w", events.ErrSchemaUnknown, err)
		case answered && (answer.StatusCode == http.StatusConflict || answer.StatusCode == http.StatusUnprocessableEntity || answer.StatusCode == http.StatusBadRequest):
			return err
		case try == c.cfg.Tries || !rest(ctx, try):
			err = fmt.Errorf("%w: %w", events.ErrSchemaUnavailable, err)
			c.mu.Lock()
			c.down, c.why = time.Now().Add(pause), err
			c.mu.Unlock()
			return err
		}
	}
}

// rest waits before another try; false means that ctx ended.
func rest(ctx context.Context, try int) bool {
	d := 50 * time.Millisecond << try
	t := time.NewTimer(d + rand.N(d)) //nolint:gosec // jitter needs no secrecy
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
