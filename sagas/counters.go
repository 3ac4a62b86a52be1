package sagas

import (
	"maps"
	"sync"
)

// Metrics are counts since the process started (spec I10 are made of them).
type Metrics struct {
	Started           int64            // first requests that made a record
	Repeats           int64            // requests for a key that was there, and status reads
	RepeatsAnswered   int64            // of these, answered with the state or the final answer
	Polls             int64            // repeats while in progress
	PollingViolations int64            // polls earlier than Retry-After said
	TooManyRequests   int64            // polls refused with 429
	Mismatches        int64            // 422: same key, other payload
	ForceRetries      int64            // new attempts by force retry
	Refused           int64            // 4xx other than 422 and 429
	Ended             map[string]int64 // records that reached completed, failed, expired
}

type counters struct {
	mu sync.Mutex
	m  Metrics
}

func (c *counters) add(f func(m *Metrics)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.m)
}

func (c *counters) ended(state string) {
	c.add(func(m *Metrics) {
		if m.Ended == nil {
			m.Ended = map[string]int64{}
		}
		m.Ended[state]++
	})
}

// Metrics gives a copy of the counts.
func (s *Sagas) Metrics() Metrics {
	s.count.mu.Lock()
	defer s.count.mu.Unlock()
	m := s.count.m
	m.Ended = maps.Clone(m.Ended)
	return m
}
