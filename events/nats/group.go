package nats

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
)

// view is what a member knows of its group.
type view struct {
	seen   map[string]time.Time // other members, and when their heartbeat last changed
	places map[string]placed
}

type placed struct {
	place
	revision uint64
}

func (m *consumer) member(id string) string { return m.group + ".member." + id }

func (m *consumer) key(p partition) string {
	return m.group + ".at." + escape(p.topic) + "." + strconv.Itoa(p.no)
}

// govern takes and gives partitions until ctx ends. No clocks are compared: a
// member is dead when its heartbeat did not change here for the session timeout.
func (m *consumer) govern(ctx context.Context, watch jetstream.KeyWatcher) {
	defer watch.Stop() //nolint:errcheck // the context ends it too
	tick := time.NewTicker(m.c.cfg.Heartbeat)
	defer tick.Stop()
	v := view{seen: map[string]time.Time{}, places: map[string]placed{}}
	complete := false
	for {
		balance := false
		select {
		case <-ctx.Done():
			return
		case e, ok := <-watch.Updates():
			switch {
			case !ok:
				return
			case e == nil: // all that was there is known
				complete, balance = true, true
				m.beat(ctx)
			default:
				balance = m.learn(v, e)
			}
		case <-tick.C:
			m.beat(ctx)
			balance = true
		}
		if balance && complete {
			m.balance(ctx, v)
		}
	}
}

func (m *consumer) beat(ctx context.Context) {
	// A heartbeat that fails is made again with the next tick; partitions are lost by their records only.
	_, _ = m.kv.Put(ctx, m.member(m.id), nil)
}

// learn takes one change in and reports whether partitions may move.
func (m *consumer) learn(v view, e jetstream.KeyValueEntry) bool {
	gone := e.Operation() != jetstream.KeyValuePut
	if id, ok := strings.CutPrefix(e.Key(), m.member("")); ok {
		_, known := v.seen[id]
		switch {
		case id == m.id:
			return false
		case gone:
			delete(v.seen, id)
			return true
		}
		v.seen[id] = time.Now()
		return !known
	}
	var is place
	if gone || json.Unmarshal(e.Value(), &is) != nil {
		delete(v.places, e.Key())
		return true
	}
	v.places[e.Key()] = placed{is, e.Revision()}
	if is.Owner != m.id {
		m.overtaken(e)
	}
	return is.Owner == ""
}

// overtaken stops reading a partition that another member has taken since.
func (m *consumer) overtaken(e jetstream.KeyValueEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, p := range m.parts {
		if m.key(at) == e.Key() && p.revision < e.Revision() {
			p.stop()
			delete(m.parts, at)
		}
	}
}

// balance claims free partitions up to this member's share and gives back what is above it.
func (m *consumer) balance(ctx context.Context, v view) {
	for id, at := range v.seen {
		if time.Since(at) > m.c.cfg.SessionTimeout {
			delete(v.seen, id)
		}
	}
	share := (len(m.all) + len(v.seen)) / (len(v.seen) + 1)
	m.commit.Lock()
	defer m.commit.Unlock()
	m.mu.Lock()
	mine := len(m.parts)
	m.mu.Unlock()
	for _, at := range m.all {
		m.mu.Lock()
		_, owned := m.parts[at]
		m.mu.Unlock()
		is, known := v.places[m.key(at)]
		switch {
		case owned && mine > share:
			if m.release(ctx, at) == nil {
				mine--
			}
		case !owned && mine < share && (!known || m.free(v, is.Owner)):
			if m.claim(ctx, at, is, known) {
				mine++
			}
		}
	}
}

func (m *consumer) free(v view, owner string) bool {
	_, alive := v.seen[owner]
	return owner == "" || !alive
}

// claim takes a partition over, conditional on its record being as it was seen.
func (m *consumer) claim(ctx context.Context, at partition, is placed, known bool) bool {
	text, err := json.Marshal(place{m.id, is.Seq})
	if err != nil {
		return false
	}
	var revision uint64
	if known {
		revision, err = m.kv.Update(ctx, m.key(at), text, is.revision)
	} else {
		revision, err = m.kv.Create(ctx, m.key(at), text)
	}
	if err != nil {
		return false // somebody was faster, or the next heartbeat tries again
	}
	read, stop := context.WithCancel(ctx)
	p := &part{stop: stop, revision: revision, committed: is.Seq, last: is.Seq, done: map[uint64]bool{}}
	m.mu.Lock()
	m.parts[at] = p
	m.mu.Unlock()
	m.wg.Go(func() { m.follow(read, at, p, is.Seq+1) })
	return true
}

// follow hands out a partition's records in order until ctx ends. Trouble with
// the server starts it over behind the last record it handed out.
func (m *consumer) follow(ctx context.Context, at partition, p *part, next uint64) {
	for ctx.Err() == nil {
		m.pass(ctx, at, p, &next)
		pause := time.NewTimer(m.c.cfg.Heartbeat / 2)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

func (m *consumer) pass(ctx context.Context, at partition, p *part, next *uint64) {
	c, err := m.c.js.OrderedConsumer(ctx, m.c.stream(at.topic), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{ofPartition(at)}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: *next, InactiveThreshold: time.Minute,
		MaxResetAttempts: 1, // it would try for ever, and not hear of ctx: follow starts over
	})
	if err != nil {
		return
	}
	msgs, err := c.Messages(jetstream.PullMaxMessages(128))
	if err != nil {
		return
	}
	defer msgs.Stop()
	for {
		msg, err := msgs.Next(jetstream.NextContext(ctx))
		if err != nil {
			if errors.Is(err, jetstream.ErrNoHeartbeat) {
				continue // it recovers by itself
			}
			return
		}
		d, err := delivery(msg, at)
		if err != nil {
			return
		}
		seq := uint64(d.Position.Offset) //nolint:gosec // was one
		m.mu.Lock()
		p.open = append(p.open, seq)
		m.mu.Unlock()
		select {
		case m.out <- d:
			*next = seq + 1
		case <-ctx.Done():
			return
		}
	}
}

func delivery(msg jetstream.Msg, at partition) (events.Delivery, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return events.Delivery{}, err
	}
	key, err := keyOf(msg.Subject())
	if err != nil {
		return events.Delivery{}, err
	}
	d := events.Delivery{
		Record:   events.Record{Topic: at.topic, Key: key, Body: msg.Data()},
		Position: events.Position{Topic: at.topic, Partition: at.no, Offset: int64(meta.Sequence.Stream)}, //nolint:gosec // far below
		Time:     meta.Timestamp,
	}
	var pairs [][2]string
	if all := msg.Headers().Get(headerAll); all != "" && json.Unmarshal([]byte(all), &pairs) == nil {
		for _, p := range pairs {
			d.Headers = append(d.Headers, events.Header{Name: p[0], Value: p[1]})
		}
		return d, nil
	}
	for name, values := range msg.Headers() { // sent by somebody else
		for _, v := range values {
			d.Headers = append(d.Headers, events.Header{Name: name, Value: v})
		}
	}
	return d, nil
}
