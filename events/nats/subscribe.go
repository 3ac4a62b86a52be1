package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
)

// Subscribe joins a consumer group as [events.Subscriber] says. The topics
// must exist. Members of a group share the partitions evenly; one that joins or
// leaves moves partitions within a heartbeat, one that died after the session timeout.
func (c *Client) Subscribe(ctx context.Context, group string, topics ...string) (events.Consumer, error) {
	if group == "" || len(topics) == 0 {
		return nil, fmt.Errorf("nats: subscribe group %q to %d topics, want a name and at least one", group, len(topics))
	}
	kv, err := c.groups(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("nats: subscribe: bucket of groups: %w", err)
	}
	m := &consumer{c: c, kv: kv, group: escape(group), id: events.NewID(), out: make(chan events.Delivery), parts: map[partition]*part{}, ended: make(chan struct{})}
	for _, t := range topics {
		n, err := c.count(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("nats: subscribe to topic %s: %w", t, err)
		}
		for no := range n {
			m.all = append(m.all, partition{t, no})
		}
	}
	work, stop := context.WithCancel(context.Background())
	m.work, m.stop = work, stop
	watch, err := kv.Watch(work, m.group+".>")
	if err != nil {
		stop()
		return nil, fmt.Errorf("nats: subscribe: %w", err)
	}
	m.wg.Go(func() { m.govern(work, watch) })
	return m, nil
}

// consumer is one group member.
type consumer struct {
	c         *Client
	kv        jetstream.KeyValue
	group, id string
	all       []partition // of the topics
	out       chan events.Delivery
	work      context.Context //nolint:containedctx // ends with Close
	stop      context.CancelFunc
	wg        sync.WaitGroup
	once      sync.Once
	ended     chan struct{}

	commit sync.Mutex // held while records of the bucket are written
	mu     sync.Mutex
	parts  map[partition]*part // that this member owns
}

// part is a partition that this member owns.
type part struct {
	stop      context.CancelFunc
	revision  uint64 // of its record in the bucket
	committed uint64 // sequence in the stream
	last      uint64 // of the finished front
	open      []uint64
	done      map[uint64]bool
}

// place is a partition's record in the bucket.
type place struct {
	Owner string `json:"owner"` // member, "" when free
	Seq   uint64 `json:"seq"`   // of the last finished record
}

// Fetch waits for the next record as [events.Consumer] says.
func (m *consumer) Fetch(ctx context.Context) (events.Delivery, error) {
	select {
	case d := <-m.out:
		return d, nil
	case <-m.ended:
		return events.Delivery{}, errors.New("nats: fetch: consumer is closed")
	case <-ctx.Done():
		return events.Delivery{}, fmt.Errorf("nats: fetch: %w", ctx.Err())
	}
}

// Commit marks the records and writes, per partition, the last before the first
// that is open. Records of a partition that another member has taken over are passed over: they are its own now.
func (m *consumer) Commit(ctx context.Context, done ...events.Delivery) error {
	m.commit.Lock()
	defer m.commit.Unlock()
	owed := map[partition]uint64{}
	m.mu.Lock()
	for _, d := range done {
		if p := m.parts[partition{d.Position.Topic, d.Position.Partition}]; p != nil {
			p.finish(uint64(d.Position.Offset)) //nolint:gosec // never negative
		}
	}
	for at, p := range m.parts {
		if p.last > p.committed {
			owed[at] = p.last
		}
	}
	m.mu.Unlock()
	var errs []error
	for at, seq := range owed {
		errs = append(errs, m.write(ctx, at, place{m.id, seq}))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("nats: commit: %w", err) // still owed: the next commit brings it
	}
	return nil
}

// write replaces the record of an owned partition unless another member has; then the partition is lost.
// m.commit is held.
func (m *consumer) write(ctx context.Context, at partition, to place) error {
	m.mu.Lock()
	p := m.parts[at]
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.c.cfg.AckTimeout) // the answer of a server that died never comes
	defer cancel()
	revision, err := m.kv.Update(ctx, m.key(at), text, p.revision)
	if raced(err) { // or an earlier write of ours was made and its answer lost
		is, at2, gerr := m.read(ctx, at)
		if gerr != nil {
			return gerr
		}
		if is.Owner != m.id {
			m.lose(at)
			return nil
		}
		revision, err = m.kv.Update(ctx, m.key(at), text, at2)
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	p.revision, p.committed = revision, to.Seq
	m.mu.Unlock()
	return nil
}

func (m *consumer) read(ctx context.Context, at partition) (place, uint64, error) {
	e, err := m.kv.Get(ctx, m.key(at))
	if err != nil {
		return place{}, 0, err
	}
	var is place
	return is, e.Revision(), json.Unmarshal(e.Value(), &is)
}

// raced reports whether a conditional write met another one.
func raced(err error) bool {
	api, _ := errors.AsType[*jetstream.APIError](err)
	return errors.Is(err, jetstream.ErrKeyExists) || api != nil && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// lose stops reading a partition.
func (m *consumer) lose(at partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.parts[at]; p != nil {
		p.stop()
		delete(m.parts, at)
	}
}

// finish marks a record and moves the front.
func (p *part) finish(seq uint64) {
	if _, ours := slices.BinarySearch(p.open, seq); !ours {
		return
	}
	p.done[seq] = true
	n := 0
	for n < len(p.open) && p.done[p.open[n]] {
		p.last = p.open[n]
		delete(p.done, p.last)
		n++
	}
	p.open = p.open[n:]
}

// closeAfter bounds Close.
const closeAfter = 5 * time.Second

// Close leaves the group and frees the partitions, at most five seconds long, or ten when the servers do not answer.
func (m *consumer) Close() error {
	var err error
	m.once.Do(func() {
		m.stop()
		close(m.ended)
		m.settle()
		ctx, cancel := context.WithTimeout(context.Background(), closeAfter)
		defer cancel()
		m.commit.Lock()
		defer m.commit.Unlock()
		var errs []error
		for _, at := range m.all {
			errs = append(errs, m.release(ctx, at))
		}
		errs = append(errs, m.kv.Delete(ctx, m.member(m.id)))
		if err = errors.Join(errs...); err != nil {
			err = fmt.Errorf("nats: close: %w; the partitions are free after the session timeout", err)
		}
	})
	return err
}

// settle waits for the goroutines of a consumer that was stopped. One that waits for a server's answer may take longer, and hands nothing out any more.
func (m *consumer) settle() {
	done := make(chan struct{})
	go func() { m.wg.Wait(); close(done) }()
	late := time.NewTimer(closeAfter)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// release gives a partition back, if this member owns it. m.commit is held.
func (m *consumer) release(ctx context.Context, at partition) error {
	m.mu.Lock()
	p := m.parts[at]
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	p.stop()
	err := m.write(ctx, at, place{Seq: p.last})
	m.lose(at)
	return err
}
