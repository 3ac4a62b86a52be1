package inbox

import (
	"context"
	"sync"
	"time"

	"github.com/vitrip/journeyman/events"
)

// consume joins the group again and again until ctx ends.
func (i *Inbox) consume(ctx, work context.Context) {
	for tries := 1; ctx.Err() == nil; tries++ {
		consumer, err := i.sub.Subscribe(ctx, i.cfg.Group, i.topics...)
		if err == nil {
			err = i.session(ctx, work, consumer)
		}
		if ctx.Err() != nil {
			return
		}
		i.pause.begin(i, err)
		rest(ctx, tries)
	}
}

// session serves one membership of the group: one fetcher, workers that each
// own a share of the keys, one committer. It ends when fetching fails or ctx ends.
func (i *Inbox) session(ctx, work context.Context, consumer events.Consumer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := make(chan struct{}, i.cfg.MaxInFlight) // bounds what is fetched and not finished
	done := make(chan events.Delivery, i.cfg.MaxInFlight)
	queues := make([]chan events.Delivery, i.cfg.Concurrency)
	var workers, committer sync.WaitGroup
	for n := range queues {
		queues[n] = make(chan events.Delivery, i.cfg.MaxInFlight)
		workers.Go(func() { i.serve(ctx, work, queues[n], done, slots) })
	}
	committer.Go(func() { i.commit(work, consumer, done) })
	var err error
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		var d events.Delivery
		if d, err = consumer.Fetch(ctx); err != nil {
			break
		}
		queues[events.Murmur2(d.Key)%uint32(len(queues))] <- d //nolint:gosec // a small positive count
	}
	for _, q := range queues {
		close(q)
	}
	cancel()
	workers.Wait()
	close(done)
	committer.Wait()
	if closeErr := consumer.Close(); closeErr != nil {
		i.cfg.Log.Warn().Err(closeErr).Msg("inbox: leave the group")
	}
	return err
}

// commitBatch is how many finished records are committed at the latest.
const commitBatch = 500

// commit tells the transport what is finished, some at a time: one commit per record is slow.
func (i *Inbox) commit(ctx context.Context, consumer events.Consumer, done <-chan events.Delivery) {
	tick := time.NewTicker(i.cfg.CommitEvery)
	defer tick.Stop()
	var batch []events.Delivery
	flush := func() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := consumer.Commit(ctx, batch...); err != nil {
			// Not lost: the transport still owes it and the next commit brings it. At worst records come again.
			i.cfg.Log.Warn().Err(err).Msg("inbox: commit offsets")
		}
		batch = batch[:0]
	}
	for {
		select {
		case d, open := <-done:
			if !open {
				flush()
				return
			}
			if batch = append(batch, d); len(batch) >= commitBatch {
				flush()
			}
		case <-tick.C:
			if len(batch) > 0 {
				flush()
			}
		}
	}
}

// rest waits before another try, at most five seconds.
func rest(ctx context.Context, tries int) {
	t := time.NewTimer(min(5*time.Second, 50*time.Millisecond<<min(tries, 10)))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// pause notices that the inbox cannot go on, tells it once, and tells the end of it.
type pause struct {
	mu    sync.Mutex
	since time.Time
}

func (p *pause) begin(i *Inbox, err error) {
	p.mu.Lock()
	first := p.since.IsZero()
	if first {
		p.since = time.Now()
	}
	p.mu.Unlock()
	if !first {
		return
	}
	i.cfg.Log.Error().Err(err).Str("group", i.cfg.Group).Msg("inbox: paused; tries go on")
	if i.cfg.Hooks.Paused != nil {
		i.cfg.Hooks.Paused(err)
	}
}

func (p *pause) end(i *Inbox) {
	p.mu.Lock()
	since := p.since
	p.since = time.Time{}
	p.mu.Unlock()
	if since.IsZero() {
		return
	}
	i.cfg.Log.Info().Dur("after", time.Since(since)).Str("group", i.cfg.Group).Msg("inbox: resumed")
	if i.cfg.Hooks.Resumed != nil {
		i.cfg.Hooks.Resumed(time.Since(since))
	}
}
