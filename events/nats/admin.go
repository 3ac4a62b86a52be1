package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
)

// metadata of a stream: the partition count of each of its topics.
const topicPrefix = "journeyman.topic."

// EnsureTopics creates the topics that are missing and checks the others as
// [events.Admin] says, one stream for each domain. A stream keeps records as
// long as the longest retention among its topics; replication is 1, 3 or 5.
// Processes that do this at once wait for each other.
func (c *Client) EnsureTopics(ctx context.Context, replication int, topics ...events.TopicSpec) error {
	if replication < 1 {
		return fmt.Errorf("nats: replication %d, want 1 or more", replication)
	}
	kv, err := c.groups(ctx, replication)
	if err != nil {
		return fmt.Errorf("nats: bucket of groups: %w", err)
	}
	bucket, err := kv.Status(ctx)
	if err != nil {
		return fmt.Errorf("nats: bucket of groups: %w", err)
	}
	byStream := map[string][]events.TopicSpec{}
	for _, t := range topics {
		byStream[c.stream(t.Name)] = append(byStream[c.stream(t.Name)], t)
	}
	at := bucket.Config() // positions are lost as easily as the records they are in
	errs := []error{fits(jetstream.StreamConfig{Name: "KV_" + at.Bucket, Replicas: at.Replicas, Storage: at.Storage}, replication, nil)}
	for name, list := range byStream {
		errs = append(errs, c.ensure(ctx, kv, name, replication, list))
	}
	return errors.Join(errs...)
}

// ensure brings one stream up to what its topics ask for. A stream's
// configuration is replaced as a whole, so a lock keeps others from undoing the change.
func (c *Client) ensure(ctx context.Context, kv jetstream.KeyValue, name string, replication int, topics []events.TopicSpec) error {
	unlock, err := lock(ctx, kv, "lock."+name)
	if err != nil {
		return fmt.Errorf("nats: stream %s: %w", name, err)
	}
	defer unlock()
	s, err := c.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		cfg := jetstream.StreamConfig{
			Name: name, Description: "messages of a domain", Storage: jetstream.FileStorage, Replicas: replication, Retention: jetstream.LimitsPolicy,
			Discard: jetstream.DiscardOld, Duplicates: DuplicateWindow, DenyDelete: true, Metadata: map[string]string{},
		}
		extend(&cfg, topics)
		if _, err = c.js.CreateStream(ctx, cfg); err != nil {
			return fmt.Errorf("nats: create stream %s: %w", name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("nats: stream %s: %w", name, err)
	}
	cfg := s.CachedInfo().Config
	if err := fits(cfg, replication, topics); err != nil {
		return err
	}
	if extend(&cfg, topics) {
		if _, err := c.js.UpdateStream(ctx, cfg); err != nil {
			return fmt.Errorf("nats: extend stream %s: %w", name, err)
		}
	}
	return nil
}

// fits names all that a stream differs in from what its topics ask for.
func fits(cfg jetstream.StreamConfig, replication int, topics []events.TopicSpec) error {
	var errs []error
	if cfg.Replicas < replication {
		errs = append(errs, fmt.Errorf("nats: stream %s has %d copies, want at least %d", cfg.Name, cfg.Replicas, replication))
	}
	if cfg.Storage != jetstream.FileStorage {
		errs = append(errs, fmt.Errorf("nats: stream %s is kept in %v, want files", cfg.Name, cfg.Storage))
	}
	for _, t := range topics {
		switch n, ok := cfg.Metadata[topicPrefix+t.Name]; {
		case !ok && slices.Contains(cfg.Subjects, subjects(t.Name)): // made by somebody else
			errs = append(errs, fmt.Errorf("nats: stream %s has topic %s without %s in its metadata, want it to say %d partitions", cfg.Name, t.Name, topicPrefix+t.Name, t.Partitions))
		case ok && n != strconv.Itoa(t.Partitions):
			errs = append(errs, fmt.Errorf("nats: stream %s: topic %s has %s partitions, want %d: keys would move to other partitions and lose their order",
				cfg.Name, t.Name, n, t.Partitions))
		}
	}
	return errors.Join(errs...)
}

// extend adds topics to a stream's configuration and reports whether anything changed.
func extend(cfg *jetstream.StreamConfig, topics []events.TopicSpec) (changed bool) {
	fresh := len(cfg.Subjects) == 0
	for _, t := range topics {
		if !slices.Contains(cfg.Subjects, subjects(t.Name)) {
			cfg.Subjects = append(cfg.Subjects, subjects(t.Name))
			if cfg.Metadata == nil {
				cfg.Metadata = map[string]string{}
			}
			cfg.Metadata[topicPrefix+t.Name] = strconv.Itoa(t.Partitions)
			changed = true
		}
		if t.Retention > 0 && (fresh || cfg.MaxAge > 0) && t.Retention > cfg.MaxAge {
			cfg.MaxAge, changed = t.Retention, true
		}
		if size := int32(min(t.MaxBytes, 64<<20)); size > 0 && (fresh || cfg.MaxMsgSize > 0) && size > cfg.MaxMsgSize { //nolint:gosec // bounded
			cfg.MaxMsgSize, changed = size, true
		}
	}
	return changed
}

// lockTTL frees the lock of a process that died with it.
const lockTTL = 30 * time.Second

func lock(ctx context.Context, kv jetstream.KeyValue, key string) (unlock func(), err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		rev, err := kv.Create(ctx, key, nil, jetstream.KeyTTL(lockTTL))
		if err == nil {
			return func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
				defer cancel()
				_ = kv.Delete(ctx, key, jetstream.LastRevision(rev)) // it ends by itself otherwise
			}, nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process changes it: %w", ctx.Err())
		case <-tick.C:
		}
	}
}
