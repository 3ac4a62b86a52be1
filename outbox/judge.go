package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/vitrip/journeyman/events"
)

// judge looks at what was not acknowledged: keys with a permanent fault are
// parked, shards with another fault wait, and a pass in which nothing at all
// got through counts towards the pause. It gives the number of rows it moved away.
func (l *lane) judge(ctx context.Context, rows, acked []*staged, failed map[string]failure, leases map[int16]lease) (moved int, err error) {
	now := time.Now()
	for _, r := range acked {
		delete(l.absent, r.topic)
		delete(l.slow, r.shard)
	}
	var worst error
	unusable := false
	for key, f := range failed {
		l.stats.failures.Add(1)
		if errors.Is(f.err, events.ErrHeldBack) {
			continue // its partition's first failure speaks for it
		}
		if l.permanent(f, now) {
			n, err := l.park(ctx, key, f, rows, leases)
			if err != nil {
				return moved, err
			}
			moved += n
			continue
		}
		worst = f.err
		unusable = unusable || events.FaultOf(f.err) == events.Unusable
		if s := l.slow[f.row.shard]; !now.Before(s.until) {
			s.tries++
			s.until = now.Add(backoff(s.tries, l.cfg.MaxBackoff))
			l.slow[f.row.shard] = s
		}
		if l.cfg.Hooks.Failed != nil {
			l.cfg.Hooks.Failed(f.row.topic, 1, f.err)
		}
	}
	switch {
	case len(acked) > 0 || moved > 0:
		l.outage.over(l.Relay)
	case worst != nil:
		l.outage.failed(l.Relay, worst, unusable)
	}
	return moved, nil
}

// permanent says whether a key must be parked: the broker will never take the
// row, or has not known its topic for the time of grace.
func (l *lane) permanent(f failure, now time.Time) bool {
	if errors.Is(f.err, events.ErrUnknownTopic) {
		since, seen := l.absent[f.row.topic]
		if !seen {
			l.absent[f.row.topic] = now
			return false
		}
		return now.Sub(since) >= l.cfg.TopicGrace
	}
	return events.FaultOf(f.err) == events.Permanent
}

// backoff doubles from 20 ms up to limit, with half of it at random.
func backoff(tries int, limit time.Duration) time.Duration {
	d := limit
	if tries < 20 {
		d = min(limit, 10*time.Millisecond<<tries)
	}
	return d/2 + rand.N(d/2+1) //nolint:gosec // jitter needs no secrecy
}
