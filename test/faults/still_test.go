package faults

import "time"

// stillness tells when nothing moves any more: no call between worker and engine, no effect, no lease, nothing to send or publish.
type stillness struct {
	s           *stage
	last, begin int64
	since       time.Time
}

const (
	quietFor = 200 * time.Millisecond
	quietMax = 4 * time.Second // leases and commands that wait for a clock hold nobody up for longer
)

func (s *stage) stillness() *stillness {
	q := &stillness{s: s}
	q.reset()
	return q
}

func (q *stillness) count() int64 { return q.s.traffic.moved.Load() + int64(len(q.s.world.Ledger())) }

func (q *stillness) reset() { q.last = q.count(); q.begin = q.last; q.since = time.Now() }

// moved reports whether anything moved since the last reset.
func (q *stillness) moved() bool { return q.count() != q.begin }

func (q *stillness) quiet() bool {
	if n := q.count(); n != q.last {
		q.last, q.since = n, time.Now()
		return false
	}
	if q.s.ready != nil && !q.s.ready() {
		q.since = time.Now()
		return false
	}
	if time.Since(q.since) < quietFor {
		return false
	}
	if time.Since(q.since) > quietMax {
		return true
	}
	var busy int
	q.s.must(q.s.pool.QueryRow(q.s.ctx, `SELECT (SELECT count(*) FROM journeyman.operation WHERE state IN ('calling', 'called', 'undoing') AND owner <> '' AND lease_until > journeyman.now())
		+ (SELECT count(*) FROM journeyman.zeebe_command WHERE state = 'pending' AND next_at <= journeyman.now())
		+ (SELECT count(*) FROM journeyman.outbox)
		+ (SELECT count(*) FROM journeyman.saga s JOIN journeyman_records.record r ON r.operation_id = s.id WHERE s.closed_at IS NOT NULL AND r.final IS NULL)`).Scan(&busy))
	return busy == 0
}
