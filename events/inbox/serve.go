package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/rule"
)

const (
	slowGroup  = 50 * time.Millisecond // a group that took longer is followed by one of half the size
	singlyFor  = time.Minute
	startGroup = 16
)

// size is how many messages a worker of the session may take at once.
type size struct{ now, most int }

func (s *size) learn(n int, took time.Duration) {
	switch {
	case took > slowGroup:
		s.now = max(1, min(s.now, n)/2)
	case n >= s.now:
		s.now = min(s.most, 2*s.now)
	}
}

// serve handles what comes for one share of the keys, several messages at a time.
func (i *Inbox) serve(ctx, work context.Context, queue <-chan events.Delivery, done chan<- events.Delivery, slots <-chan struct{}) {
	limit := size{now: min(startGroup, i.cfg.Batch), most: i.cfg.Batch}
	for d := range queue {
		batch := []events.Delivery{d}
		for more := true; more && len(batch) < limit.now; {
			select {
			case next, open := <-queue:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		// What is still queued when ctx ends is left for the next member.
		if i.gate.enter(ctx, len(batch)) {
			start := time.Now()
			i.deliverAll(ctx, work, batch, func(d events.Delivery) { done <- d })
			limit.learn(len(batch), time.Since(start))
			i.gate.leave(len(batch))
		}
		for range batch {
			<-slots
		}
	}
}

func (i *Inbox) deliverAll(ctx, work context.Context, batch []events.Delivery, done func(events.Delivery)) {
	rest := batch
	if len(batch) > 1 && time.Now().UnixNano() > i.singly.Load() && !rule.Off(25) {
		g := i.group(work, batch)
		ended, left, err := g.run(ctx, work)
		if err != nil && work.Err() == nil && !errors.Is(err, errTwin) {
			i.cfg.Log.Warn().Err(err).Int("messages", len(g.plain)).Msg("inbox: a group of messages failed, each is delivered alone")
			i.singly.Store(time.Now().Add(singlyFor).UnixNano())
		}
		for _, d := range ended {
			done(d)
		}
		if rest = left; len(ended) > 0 {
			i.pause.end(i)
		}
	}
	for _, d := range rest {
		if ctx.Err() != nil {
			return
		}
		if i.deliver(ctx, work, d) {
			done(d)
		}
	}
}
