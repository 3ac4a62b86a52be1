package broker

import (
	"context"
	"slices"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// poll is an activation that waits for jobs.
type poll struct {
	req core.Activation
	got chan []*core.Activated // capacity 1; closed never
}

// Activate takes jobs, waiting up to wait for the first one; wait <= 0 answers
// at once. No job is an empty result. When ctx ends first, jobs that were
// already taken are given back.
func (b *Broker) Activate(ctx context.Context, req core.Activation, wait time.Duration) ([]*core.Activated, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	var (
		jobs []*core.Activated
		p    *poll
	)
	b.mu.Lock()
	if err := b.broken(); err != nil {
		b.mu.Unlock()
		return nil, err
	}
	b.catchUp(b.now())
	if len(b.polls[req.Type]) == 0 || wait <= 0 {
		jobs = b.core.Activate(req)
		b.settle()
	}
	if len(jobs) == 0 && wait > 0 && !b.closed {
		p = &poll{req: req, got: make(chan []*core.Activated, 1)}
		b.polls[req.Type] = append(b.polls[req.Type], p)
		b.servePolls(req.Type)
	}
	if err := b.unlock(); err != nil {
		return nil, err
	}
	if p == nil {
		return jobs, nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case jobs = <-p.got:
		if ctx.Err() == nil {
			return jobs, b.Settled()
		}
		b.GiveBack(jobs)
		return nil, ctx.Err()
	case <-t.C:
	case <-ctx.Done():
	case <-b.done:
	}
	b.mu.Lock()
	l := b.polls[req.Type]
	if i := slices.Index(l, p); i >= 0 {
		if l = slices.Delete(l, i, i+1); len(l) > 0 {
			b.polls[req.Type] = l
		} else {
			delete(b.polls, req.Type)
		}
	}
	b.mu.Unlock()
	select {
	case jobs = <-p.got: // served just before it gave up
	default:
	}
	if ctx.Err() != nil {
		b.GiveBack(jobs)
		return nil, ctx.Err()
	}
	return jobs, b.Settled()
}

// GiveBack returns jobs that could not be delivered; polls and streams may take them.
func (b *Broker) GiveBack(jobs []*core.Activated) {
	if len(jobs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken() != nil {
		return // nothing is given out any more either
	}
	b.catchUp(b.now())
	for _, j := range jobs {
		if j.Job.Deadline.Equal(j.Deadline) { // nobody else has it by now
			b.core.Return(j.Job, false)
		}
	}
	b.settle()
}

// servePolls gives waiting polls of a type what is activatable, first come first served.
func (b *Broker) servePolls(jobType string) {
	for len(b.polls[jobType]) > 0 && b.core.HasReady(jobType) {
		p := b.polls[jobType][0]
		jobs := b.core.Activate(p.req)
		if len(jobs) == 0 {
			return
		}
		p.got <- jobs
		if l := b.polls[jobType][1:]; len(l) > 0 {
			b.polls[jobType] = l
		} else {
			delete(b.polls, jobType)
		}
	}
}
