package outbox

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
)

// lease is the right to relay a shard. until is on our monotonic clock, counted
// from before the statement that got it, so it is never later than the database's.
type lease struct {
	fence int64
	until time.Time
}

// shards is what a relay owns. The keeper changes it, lanes read it.
type shards struct {
	mu   sync.Mutex
	held map[int16]lease
}

// of gives the shards of a lane whose lease outlives now by margin, in ascending order.
func (s *shards) of(laneNo, lanes int, now time.Time, margin time.Duration) ([]int16, map[int16]lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := map[int16]lease{}
	for shard, l := range s.held {
		if int(shard)%lanes == laneNo && l.until.Sub(now) > margin {
			mine[shard] = l
		}
	}
	return slices.Sorted(maps.Keys(mine)), mine
}

func (s *shards) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

func (s *shards) drop(list []int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, shard := range list {
		delete(s.held, shard)
	}
}

// set replaces what is held by what a renewal confirmed, or adds what a claim got.
func (s *shards) set(got map[int16]lease, replace bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replace {
		s.held = map[int16]lease{}
	}
	maps.Copy(s.held, got)
}

// keep renews the leases every third of their time, takes over shards whose
// lease ended, and gives the surplus to relays that came later.
func (r *Relay) keep(ctx context.Context) {
	tick := time.NewTicker(min(r.cfg.Lease/3, time.Second))
	defer tick.Stop()
	for {
		if err := r.tend(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn().Err(err).Msg("outbox relay: tend shards")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tend does one round of [Relay.keep].
func (r *Relay) tend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Lease/3)
	defer cancel()
	start := time.Now()
	b := &pgx.Batch{}
	b.Queue(r.sql.beat, r.cfg.Owner, r.cfg.Lease)
	held := map[int16]lease{}
	b.Queue(r.sql.renew, r.cfg.Owner, r.cfg.Lease).Query(r.collect(held, start))
	var live int
	b.Queue(r.sql.live).QueryRow(func(row pgx.Row) error { return row.Scan(&live) })
	if err := r.db.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	r.own.set(held, true)
	target := (events.Shards + live - 1) / max(live, 1)
	switch surplus := len(held) - target; {
	case surplus > 0:
		list := slices.Sorted(maps.Keys(held))
		return r.giveBack(ctx, list[len(list)-surplus:])
	case surplus < 0:
		start = time.Now()
		rows, err := r.db.Query(ctx, r.sql.claim, r.cfg.Owner, r.cfg.Lease, -surplus)
		if err != nil {
			return err
		}
		got := map[int16]lease{}
		if err := r.collect(got, start)(rows); err != nil {
			return err
		}
		r.own.set(got, false)
		if len(got) > 0 {
			r.wakeAll()
		}
	}
	return nil
}

func (r *Relay) collect(into map[int16]lease, start time.Time) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var shard int16
		var fence int64
		_, err := pgx.ForEachRow(rows, []any{&shard, &fence}, func() error {
			into[shard] = lease{fence: fence, until: start.Add(r.cfg.Lease)}
			return nil
		})
		return err
	}
}

// giveBack waits until no lane works on the shards, then frees them for others.
func (r *Relay) giveBack(ctx context.Context, list []int16) error {
	r.own.drop(list)
	for _, l := range r.lanes {
		l.busy.Lock()   // a lane that took its shards before the drop is done now
		l.busy.Unlock() //nolint:staticcheck // the lock is the wait
	}
	_, err := r.db.Exec(ctx, r.sql.release, r.cfg.Owner, list)
	return err
}

// leave frees everything at the end of Run.
func (r *Relay) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.ProduceTimeout)
	defer cancel()
	all := make([]int16, events.Shards)
	for i := range all {
		all[i] = int16(i) //nolint:gosec // below 64
	}
	b := &pgx.Batch{}
	b.Queue(r.sql.release, r.cfg.Owner, all)
	b.Queue(r.sql.leave, r.cfg.Owner)
	return r.db.SendBatch(ctx, b).Close()
}
