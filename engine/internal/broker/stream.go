package broker

import (
	"slices"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// streamBuffer is how many jobs wait for one stream's connection before the
// stream counts as not ready and jobs go elsewhere.
const streamBuffer = 16

// Stream receives jobs of one type as they become activatable.
type Stream struct {
	req  core.Activation
	jobs chan *core.Activated
}

// Jobs delivers the pushed jobs.
func (s *Stream) Jobs() <-chan *core.Activated { return s.jobs }

type streamGroup struct {
	list []*Stream
	next int // round robin
}

// OpenStream registers a stream; the backlog stays for polls.
func (b *Broker) OpenStream(req core.Activation) *Stream {
	s := &Stream{req: req, jobs: make(chan *core.Activated, streamBuffer)}
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.streams[req.Type]
	if g == nil {
		g = &streamGroup{}
		b.streams[req.Type] = g
	}
	g.list = append(g.list, s)
	return s
}

// CloseStream ends a stream and yields what it had not sent.
func (b *Broker) CloseStream(s *Stream) {
	b.mu.Lock()
	if g := b.streams[s.req.Type]; g != nil {
		if i := slices.Index(g.list, s); i >= 0 {
			g.list = slices.Delete(g.list, i, i+1)
		}
		if len(g.list) == 0 {
			delete(b.streams, s.req.Type)
		}
	}
	b.mu.Unlock()
	var rest []*core.Activated
	for {
		select {
		case j := <-s.jobs:
			rest = append(rest, j)
			continue
		default:
		}
		break
	}
	b.GiveBack(rest)
}

// push offers a fresh job to the streams of its type; false when none is ready.
func (b *Broker) push(j *core.Job) bool {
	g := b.streams[j.Type]
	if g == nil {
		return false
	}
	for range g.list {
		s := g.list[g.next%len(g.list)]
		g.next++
		if len(s.jobs) == cap(s.jobs) {
			continue
		}
		a := b.core.ActivateOne(j, s.req)
		if a == nil {
			return false
		}
		s.jobs <- a // has room: only this goroutine fills it, under the lock
		return true
	}
	return false
}

// deliver pushes fresh jobs to streams and polls and answers those who wait for results.
func (b *Broker) deliver() {
	for fresh := b.core.TakeFresh(); len(fresh) > 0; fresh = b.core.TakeFresh() {
		for _, j := range fresh {
			if j.State == core.JobActivatable && !b.push(j) {
				b.servePolls(j.Type)
			}
		}
	}
	for _, inst := range b.core.TakeFinished() {
		b.answer(inst)
	}
}
