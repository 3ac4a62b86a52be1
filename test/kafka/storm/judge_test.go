//go:build kafka || soak

package storm_test

import (
	"context"
	"strconv"
	"time"

	"github.com/vitrip/journeyman/events"
)

func (s *storm) count(sql string) (n int64) {
	s.Helper()
	if err := s.pool.QueryRow(s.ctx, sql).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// eventually waits until nothing is left, as long as it grows less: how fast that goes is the machine's matter.
func (s *storm) eventually(what string, left func() int64) {
	s.Helper()
	patience := time.NewTimer(2 * time.Minute)
	defer patience.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for least := left(); least > 0; {
		select {
		case <-tick.C:
			if n := left(); n < least {
				least = n
				patience.Reset(2 * time.Minute)
			}
			continue
		case <-patience.C:
		case <-s.ctx.Done():
		}
		for _, p := range s.processes {
			p.mu.Lock()
			s.Logf("%s: killed %d times, ended by itself %d times, last words: %s", p.role, p.killed, p.ended, p.output)
			p.mu.Unlock()
		}
		s.Errorf("waited in vain for %s: %d left, of %d committed", what, least, s.committed.Load())
		return
	}
}

// toll is what the storm cost while it raged.
type toll struct {
	committed int64          // messages
	killed    map[string]int // processes by role
	ended     int            // processes that ended in another way
	restarts  int            // of brokers
}

// toll is asked before the processes that are to kill themselves are killed, which is no part of the storm. A storm that killed
// none of a role, no broker, or had nothing to lose proves nothing.
func (s *storm) toll() toll {
	t := toll{committed: s.committed.Load(), killed: map[string]int{}, restarts: s.restarts}
	for _, p := range s.processes {
		p.mu.Lock()
		t.killed[p.role] += p.killed
		t.ended += p.ended
		p.mu.Unlock()
	}
	if t.committed == 0 || t.killed["relay"] == 0 || t.killed["consumer"] == 0 || t.restarts == 0 {
		s.Errorf("committed %d messages, killed %d relays and %d consumers, restarted %d brokers, want some of each", t.committed, t.killed["relay"], t.killed["consumer"], t.restarts)
	}
	return t
}

// judge waits for the end of all work and counts.
func (s *storm) judge(t toll) {
	committed := t.committed
	s.eventually("an empty outbox", func() int64 { return s.count(`SELECT count(*) FROM journeyman.outbox`) })
	s.eventually("all messages to be applied", func() int64 { return committed - s.count(`SELECT count(DISTINCT id) FROM applied`) })
	lost := committed - s.count(`SELECT count(DISTINCT id) FROM applied`)
	repeated := s.count(`SELECT count(*) - count(DISTINCT id) FROM applied`)
	disorder := s.count(`
		SELECT count(*) FROM (SELECT seq < lag(seq) OVER (PARTITION BY topic, key ORDER BY n) AS back FROM applied) o WHERE back`)
	dead := s.count(`SELECT count(*) FROM journeyman.inbox_dead`)
	logged := s.count(`SELECT count(DISTINCT event_id) FROM journeyman.event_log`)
	distinct, records, inversions := s.readTopics(committed)
	if lost != 0 || repeated != 0 || disorder != 0 || dead != 0 || logged != committed || distinct != committed || inversions != 0 {
		s.Errorf("lost %d, effects repeated %d, order violations %d at the consumer and %d in the topics, %d dead letters, %d of %d in the event log, %d in the topics",
			lost, repeated, disorder, inversions, dead, logged, committed, distinct)
	}
	s.Logf("committed %d; killed %d relays, %d consumers, %d brokers, and %d processes ended by themselves; lost %d, effects repeated %d, order violations %d, duplicates in the topics %d",
		committed, t.killed["relay"], t.killed["consumer"], t.restarts, t.ended, lost, repeated, disorder+inversions, records-distinct)
}

// readTopics reads the topics to their end and counts distinct messages, records, and first deliveries of a key that come
// after one with a higher sequence.
func (s *storm) readTopics(committed int64) (distinct, records, inversions int64) {
	k, err := dial(s.cluster.Addrs())
	if err != nil {
		s.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // reading is the test
	var topics []string
	for _, t := range s.catalog.Topics() {
		topics = append(topics, t.Name)
	}
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	c, err := k.Subscribe(ctx, "judge", topics...)
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // reading is the test
	seen := map[string]bool{}
	last := map[[2]string]int64{}
	for {
		// Once all are seen, what comes within three seconds are the duplicates behind them.
		fetch, done := ctx, context.CancelFunc(func() {})
		if int64(len(seen)) >= committed {
			fetch, done = context.WithTimeout(ctx, 3*time.Second)
		}
		d, err := c.Fetch(fetch)
		done()
		if err != nil {
			return int64(len(seen)), records, inversions
		}
		records++
		id := d.Header(events.HeaderEventID)
		if seen[id] {
			continue
		}
		seen[id] = true
		seq, _ := strconv.ParseInt(d.Header(events.HeaderSequence), 10, 64)
		at := [2]string{d.Topic, d.Key}
		if seq <= last[at] {
			inversions++
		}
		last[at] = max(last[at], seq)
	}
}
