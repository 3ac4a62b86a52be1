package nats

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
)

type partition struct {
	topic string
	no    int
}

// partitions is a topic's partition count; it does not change, so it is kept long.
type partitions struct {
	n     int
	until time.Time
}

const partitionsTTL = 30 * time.Second

// headerAll carries a record's headers with their order and exact values, as
// JSON. They also stand as headers of their own, where NATS can carry them.
const headerAll = "Journeyman-Headers"

// Publish sends records as [events.Publisher] says: keys side by side, the
// records of a key one after another.
func (c *Client) Publish(ctx context.Context, records []events.Record) []error {
	errs := make([]error, len(records))
	keys := map[[2]string][]int{}
	for i, r := range records {
		if r.Key == "" {
			errs[i] = &events.PublishError{Fault: events.Permanent, Err: errors.New("record without key")}
			continue
		}
		k := [2]string{r.Topic, r.Key}
		keys[k] = append(keys[k], i)
	}
	slots := make(chan struct{}, c.cfg.Parallel)
	var wg sync.WaitGroup
	for _, list := range keys {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for at, i := range list {
				if errs[i] = c.send(ctx, records[i]); errs[i] != nil {
					for _, later := range list[at+1:] {
						errs[later] = events.ErrHeldBack
					}
					return
				}
			}
		})
	}
	wg.Wait()
	return errs
}

func (c *Client) send(ctx context.Context, r events.Record) error {
	n, err := c.count(ctx, r.Topic)
	if err != nil {
		return c.classify(r.Topic, err)
	}
	msg, err := message(r, n)
	if err != nil {
		return &events.PublishError{Fault: events.Permanent, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.AckTimeout)
	defer cancel()
	if _, err = c.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(c.stream(r.Topic))); err != nil {
		return c.classify(r.Topic, err)
	}
	return nil
}

func message(r events.Record, partitions int) (*nats.Msg, error) {
	msg := nats.NewMsg(subject(partition{r.Topic, events.Partition(r.Key, partitions)}, r.Key))
	msg.Data = r.Body
	if len(r.Headers) == 0 {
		return msg, nil
	}
	pairs := make([][2]string, len(r.Headers))
	for i, h := range r.Headers {
		pairs[i] = [2]string{h.Name, h.Value}
		if native(h) {
			msg.Header.Add(h.Name, h.Value)
		}
	}
	all, err := json.Marshal(pairs)
	if err != nil {
		return nil, err
	}
	msg.Header.Set(headerAll, string(all))
	if id := dedupID(r); id != "" {
		msg.Header.Set(jetstream.MsgIDHeader, id)
	}
	return msg, nil
}

// dedupID is what the server knows a repeat by: the event, and the replay or
// redrive that delivers it again on purpose, which must not be dropped.
func dedupID(r events.Record) string {
	id := r.Header(events.HeaderEventID)
	if id == "" {
		return ""
	}
	for _, name := range []string{events.HeaderReplayID, events.HeaderRedriveID, events.HeaderReplayGroup} {
		if again := r.Header(name); again != "" {
			id += "/" + again
		}
	}
	return id
}

// native reports whether NATS carries the header as it is.
func native(h events.Header) bool {
	bad := func(r rune) bool { return r < ' ' || r == 0x7f }
	return h.Name != "" && !strings.ContainsFunc(h.Name, func(r rune) bool { return bad(r) || r == ':' || r == ' ' }) &&
		!strings.ContainsFunc(h.Value, bad) && strings.TrimSpace(h.Value) == h.Value && !strings.HasPrefix(h.Name, "Nats-") && h.Name != headerAll
}

// count gives a topic's partition count.
func (c *Client) count(ctx context.Context, topic string) (int, error) {
	c.mu.Lock()
	known, ok := c.topics[topic]
	c.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.n, nil
	}
	s, err := c.js.Stream(ctx, c.stream(topic))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, fmt.Errorf("%w: %w", events.ErrUnknownTopic, err)
	}
	if err != nil {
		return 0, err
	}
	written, ok := s.CachedInfo().Config.Metadata[topicPrefix+topic]
	if !ok {
		return 0, events.ErrUnknownTopic
	}
	n, err := strconv.Atoi(written)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("stream %s says %q partitions", c.stream(topic), written)
	}
	c.mu.Lock()
	c.topics[topic] = partitions{n, time.Now().Add(partitionsTTL)}
	c.mu.Unlock()
	return n, nil
}

// tooLarge is the server's code for a message above the stream's limit.
const tooLarge jetstream.ErrorCode = 10054

// classify turns an error of client or server into a publish error. What is
// not known to be for good is taken for temporary.
func (c *Client) classify(topic string, err error) error {
	fault := events.Retriable
	err = c.why(err)
	refused, _ := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, nats.ErrMaxPayload), refused != nil && refused.ErrorCode == tooLarge:
		fault = events.Permanent
	case unusable(err), !c.conn.IsConnected() && unusable(c.conn.LastError()):
		fault = events.Unusable
	case errors.Is(err, jetstream.ErrNoStreamResponse): // the stream may be gone
		c.mu.Lock()
		delete(c.topics, topic)
		c.mu.Unlock()
	}
	return &events.PublishError{Fault: fault, Err: fmt.Errorf("topic %s: %w", topic, err)}
}

// unusable reports whether only an operator can help.
func unusable(err error) bool {
	for _, known := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, nats.ErrPermissionViolation,
		nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	return unverified
}
