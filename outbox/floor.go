package outbox

import (
	"context"
	"time"
)

// floors lets scans start behind the dead entries of deleted rows. A floor is
// an id at and below which no row of the shard can appear any more; it is an
// optimisation and never decides what is published.
//
// How an id is known to be decided, whatever commits late:
//
//  1. a scan saw ids up to top;
//  2. after it, a transaction of our own draws xid h. Every id up to top was
//     drawn before, and its transaction had drawn its xid before the id (path
//     rule 21), so all of these xids are below h. The snapshot's xmax would not
//     do: it is bounded by finished transactions, and a running one can be above it;
//  3. once a snapshot's xmin has reached h, all of them have ended. In any later
//     scan a row up to top is either visible or will never be, so the floor is
//     top or just below the smallest id seen.
//
// Floors are forgotten every minute and when a shard changes hands.
type floors struct {
	known   map[int16]floor
	top     int64 // highest id seen; asked is the value step 2 was done for
	asked   int64
	horizon int64
	decided int64
	next    time.Time
	since   int // rows seen since the horizon was last asked for
	forget  time.Time
}

type floor struct{ fence, id int64 }

const (
	floorEvery  = time.Second
	floorRows   = 2000 // a backlog leaves dead entries faster than a second goes by
	floorForget = time.Minute
)

func (f *floors) of(list []int16, leases map[int16]lease) []int64 {
	now := time.Now()
	if now.After(f.forget) {
		f.known, f.forget = map[int16]floor{}, now.Add(floorForget)
	}
	ids := make([]int64, len(list))
	for i, s := range list {
		if l := f.known[s]; l.fence == leases[s].fence {
			ids[i] = l.id
		} else {
			f.known[s] = floor{fence: leases[s].fence}
		}
	}
	return ids
}

// learn takes what a scan has seen. complete means that no limit cut it off, so that shards without rows are empty.
func (f *floors) learn(ctx context.Context, r *Relay, list []int16, rows []staged, complete bool) error {
	if f.decided > 0 {
		lowest := map[int16]int64{}
		for _, row := range rows {
			if _, seen := lowest[row.shard]; !seen {
				lowest[row.shard] = row.id
			}
		}
		for _, s := range list {
			low, seen := lowest[s]
			l := f.known[s]
			switch {
			case seen:
				l.id = max(l.id, min(f.decided, low-1))
			case complete:
				l.id = max(l.id, f.decided)
			}
			f.known[s] = l
		}
		f.decided = 0
	}
	for _, row := range rows {
		f.top = max(f.top, row.id)
	}
	f.since += len(rows)
	if now := time.Now(); now.Before(f.next) && f.since < floorRows || f.top == f.asked && f.horizon == 0 {
		return nil
	}
	f.next, f.since = time.Now().Add(floorEvery), 0
	var xid, xmin int64
	if err := r.db.QueryRow(ctx, r.sql.horizon).Scan(&xid, &xmin); err != nil {
		return err
	}
	if f.horizon > 0 && xmin >= f.horizon {
		f.decided, f.horizon = f.asked, 0
	}
	if f.horizon == 0 && f.top > f.asked {
		f.asked, f.horizon = f.top, xid
	}
	return nil
}

// skipTo makes the floor an id cursor, which loses rows: only for the test that switches rule 24 off.
func (f *floors) skipTo(rows []staged) {
	for _, r := range rows {
		l := f.known[r.shard]
		l.id = max(l.id, r.id)
		f.known[r.shard] = l
	}
}
