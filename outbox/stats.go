package outbox

import (
	"sync/atomic"
	"time"
)

type counters struct {
	published, failures, parked, lost, errors, shed atomic.Int64
	lastAck                                         atomic.Int64 // Unix nanoseconds
}

// Stats is what a relay did since it was made, and how it is now.
type Stats struct {
	Published int64     // rows published and deleted
	Failures  int64     // keys that failed in a publish, each time counted
	Parked    int64     // keys parked
	Lost      int64     // shards taken over by another relay while publishing
	Errors    int64     // passes that failed, mostly because of the database
	Shed      int64     // dropped analytical messages that this relay told of
	Shards    int       // owned now
	LastAck   time.Time // zero before the first
	Paused    bool      // nothing got through for a while
	Reason    string    // of the pause, or of the failures leading to it
	Since     time.Time // of the first failure without success since, zero when healthy
}

// Stats gives the relay's figures. It does not block.
func (r *Relay) Stats() Stats {
	s := Stats{
		Published: r.stats.published.Load(), Failures: r.stats.failures.Load(), Parked: r.stats.parked.Load(),
		Lost: r.stats.lost.Load(), Errors: r.stats.errors.Load(), Shed: r.stats.shed.Load(), Shards: r.own.count(),
	}
	if n := r.stats.lastAck.Load(); n > 0 {
		s.LastAck = time.Unix(0, n)
	}
	s.Paused, s.Reason, s.Since = r.outage.now()
	return s
}

func (l *lane) published(rows []*staged) {
	l.stats.published.Add(int64(len(rows)))
	l.stats.lastAck.Store(time.Now().UnixNano())
	if l.cfg.Hooks.Published == nil {
		return
	}
	type sum struct {
		n      int
		oldest time.Time
	}
	byTopic := map[string]sum{}
	for _, r := range rows {
		s, seen := byTopic[r.topic]
		if s.n++; !seen || r.at.Before(s.oldest) {
			s.oldest = r.at
		}
		byTopic[r.topic] = s
	}
	for topic, s := range byTopic {
		l.cfg.Hooks.Published(topic, s.n, time.Since(s.oldest))
	}
}
