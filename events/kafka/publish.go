package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/vitrip/journeyman/events"
)

type partition struct {
	topic string
	no    int
}

// partitions is a topic's partition count. It is kept long: a key's partition
// must not change, and a stale count only costs a retry.
type partitions struct {
	n     int
	until time.Time
}

const partitionsTTL = 30 * time.Second

// Publish sends records as [events.Publisher] says. Partitions are served side
// by side, one request each at a time. A request that fails for one record's
// sake (too large, invalid) is split until the record is found; the others go on.
func (c *Client) Publish(ctx context.Context, records []events.Record) []error {
	errs := make([]error, len(records))
	counts := map[string]int{}
	groups := map[partition][]int{}
	for i, r := range records {
		if r.Key == "" {
			errs[i] = &events.PublishError{Fault: events.Permanent, Err: errors.New("record without key")}
			continue
		}
		n, seen := counts[r.Topic]
		if !seen {
			var err error
			if n, err = c.count(ctx, r.Topic); err != nil {
				errs[i] = err // and n is 0 for the rest of the topic
			}
			counts[r.Topic] = n
		}
		if n == 0 {
			if errs[i] == nil {
				errs[i] = events.ErrHeldBack
			}
			continue
		}
		p := partition{r.Topic, events.Partition(r.Key, n)}
		groups[p] = append(groups[p], i)
	}
	var wg sync.WaitGroup
	for p, list := range groups {
		wg.Go(func() { c.fill(ctx, p, records, list, errs) })
	}
	wg.Wait()
	return errs
}

// fill publishes the records at list into one partition, in requests of bounded size.
// Each index of errs belongs to one goroutine.
func (c *Client) fill(ctx context.Context, p partition, records []events.Record, list []int, errs []error) {
	unlock, err := c.lock(ctx, p)
	if err != nil {
		fail(list, errs, err)
		return
	}
	defer unlock()
	stopped := map[string]bool{}
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && (n == 0 || size+weigh(records[list[n]]) <= c.cfg.MaxRequest) {
			size += weigh(records[list[n]])
			n++
		}
		if err := c.send(ctx, p, records, list[:n], errs, stopped); err != nil {
			fail(list[n:], errs, nil)
			return
		}
		list = list[n:]
	}
}

// fail gives err to the first of list and says of the rest that they were not sent.
func fail(list []int, errs []error, err error) {
	for i, at := range list {
		errs[at] = events.ErrHeldBack
		if i == 0 && err != nil {
			errs[at] = err
		}
	}
}

// send sends one request, or halves of it when one of its records is refused
// for good. It returns an error when nothing more may be sent to the partition.
func (c *Client) send(ctx context.Context, p partition, records []events.Record, list []int, errs []error, stopped map[string]bool) error {
	live := list[:0:0]
	for _, i := range list {
		if stopped[records[i].Key] {
			errs[i] = events.ErrHeldBack
			continue
		}
		live = append(live, i)
	}
	if len(live) == 0 {
		return nil
	}
	err := c.produce(ctx, p, records, live)
	switch {
	case err == nil:
		return nil
	case events.FaultOf(err) != events.Permanent:
		for _, i := range live {
			errs[i] = err // all of them may be stored, or none
		}
		return err
	case len(live) == 1 || errors.Is(err, kafka.TopicAuthorizationFailed):
		for _, i := range live {
			errs[i] = err
			stopped[records[i].Key] = true
		}
		return nil
	}
	half := len(live) / 2
	if err := c.send(ctx, p, records, live[:half], errs, stopped); err != nil {
		fail(live[half:], errs, nil)
		return err
	}
	return c.send(ctx, p, records, live[half:], errs, stopped)
}

func (c *Client) produce(ctx context.Context, p partition, records []events.Record, list []int) error {
	batch, err := encode(records, list, time.Now(), c.codec)
	if err != nil {
		return &events.PublishError{Fault: events.Permanent, Err: err}
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return &events.PublishError{Err: ctx.Err()}
	}
	res, err := c.api.RawProduce(ctx, &kafka.RawProduceRequest{
		Topic: p.topic, Partition: p.no, RequiredAcks: kafka.RequireAll, RawRecords: protocol.RawRecordSet{Reader: bytes.NewReader(batch)},
	})
	if err == nil && res != nil {
		err = res.Error
	}
	if err != nil {
		return c.classify(p.topic, err)
	}
	return nil
}

// count gives a topic's partition count.
func (c *Client) count(ctx context.Context, topic string) (int, error) {
	c.mu.Lock()
	known, ok := c.parts[topic]
	c.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.n, nil
	}
	meta, err := c.api.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, c.classify(topic, err)
	}
	for _, t := range meta.Topics {
		if t.Name != topic {
			continue
		}
		if t.Error != nil {
			return 0, c.classify(topic, t.Error)
		}
		if len(t.Partitions) == 0 {
			break
		}
		c.mu.Lock()
		c.parts[topic] = partitions{len(t.Partitions), time.Now().Add(partitionsTTL)}
		c.mu.Unlock()
		return len(t.Partitions), nil
	}
	return 0, c.classify(topic, kafka.UnknownTopicOrPartition)
}

func (c *Client) lock(ctx context.Context, p partition) (unlock func(), err error) {
	c.mu.Lock()
	lock, ok := c.locks[p]
	if !ok {
		lock = make(chan struct{}, 1)
		c.locks[p] = lock
	}
	c.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, &events.PublishError{Err: ctx.Err()}
	}
}

// weigh is an upper bound of a record's size in a request, before compression.
func weigh(r events.Record) int {
	n := 32 + len(r.Key) + len(r.Body)
	for _, h := range r.Headers {
		n += 6 + len(h.Name) + len(h.Value)
	}
	return n
}

// classify turns an error of the client or the broker into a publish error.
// What is not known to be for good is taken for temporary.
func (c *Client) classify(topic string, err error) error {
	fault := events.Retriable
	switch {
	case errors.Is(err, kafka.UnknownTopicOrPartition), errors.Is(err, kafka.InvalidTopic), errors.Is(err, errNoTopic):
		c.mu.Lock()
		delete(c.parts, topic)
		c.mu.Unlock()
		err = fmt.Errorf("%w: %w", events.ErrUnknownTopic, err)
	case errors.Is(err, kafka.MessageSizeTooLarge), errors.Is(err, kafka.RecordListTooLarge), errors.Is(err, kafka.InvalidMessageSize),
		errors.Is(err, kafka.InvalidMessage), errors.Is(err, kafka.InvalidRecord), errors.Is(err, kafka.InvalidTimestamp),
		errors.Is(err, kafka.PolicyViolation), errors.Is(err, kafka.TopicAuthorizationFailed):
		fault = events.Permanent
	case unusable(err):
		fault = events.Unusable
	}
	return &events.PublishError{Fault: fault, Err: fmt.Errorf("topic %s: %w", topic, err)}
}
