package outbox

import "time"

// floors lets scans start behind the dead entries of deleted rows. A floor is
// an id at and below which no row of the shard can appear any more; it is an
// optimisation and never decides what is published.
//
// How an id is known to be decided, whatever commits late:
//
//  1. with a scan the last id drawn is read, top, each hundred rows or second;
//  2. the delete that follows draws an xid of its own, h. Every id up to top was
//     drawn before, and its transaction had drawn its xid before the id (path
//     rule 21), so all of these xids are below h. The snapshot's xmax would not
//     do: it is bounded by finished transactions, and a running one can be above it;
//  3. once the xmin of a scan's snapshot has reached h, all of them have ended,
//     and that scan and later ones see every row up to top there will ever be.
//
// So behind a scan a shard's floor is just below the first row seen, and behind
// the delete of the shard's first rows it is the last of them: the next scan
// crosses no entry of a row that the relay deleted.
//
// Floors are forgotten every minute, when a shard changes hands, after a failed
// pass and when ids go back: a server that crashed or was restored may show rows
// again whose delete was not on its disk, and draw ids again.
type floors struct {
	known   map[int16]floor
	top     int64 // last id drawn before the last look
	asked   int64 // what step 2 was done for, with horizon; 0 means that none is open
	horizon int64
	decided int64 // every id up to it is decided as of the last look
	until   time.Time
	since   int // rows scanned since step 1 was done
	next    time.Time
}

type floor struct{ fence, id int64 }

const (
	floorForget = time.Minute
	floorRows   = 100 // single messages that come by leave little to cross, and are in a hurry
	floorEvery  = time.Second
)

// due reports whether the next scan is to look at ids and xids.
func (f *floors) due() bool { return f.since >= floorRows || time.Now().After(f.next) }

// looked takes the last id drawn and the xmin of the snapshot, from just before a scan.
func (f *floors) looked(top, xmin int64) {
	if top < f.top {
		f.forget() // the shards learn their fence anew at the next scan
		return
	}
	f.top, f.since, f.next = top, 0, time.Now().Add(floorEvery)
	if f.horizon > 0 && xmin >= f.horizon {
		f.decided, f.horizon = f.asked, 0
	}
}

// forget starts from nothing.
func (f *floors) forget() {
	*f = floors{known: map[int16]floor{}, until: time.Now().Add(floorForget)}
}

// of gives where to start in each shard of list.
func (f *floors) of(list []int16, leases map[int16]lease) []int64 {
	if time.Now().After(f.until) {
		f.forget()
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

// scanned takes the rows of a scan of the shards in list. complete means that no limit cut it off, so that shards without rows are empty.
func (f *floors) scanned(list []int16, rows []*staged, complete bool) {
	f.since += len(rows)
	seen := map[int16]bool{}
	for i, row := range rows { // those of a shard come together
		if i == 0 || row.shard != rows[i-1].shard {
			seen[row.shard] = true
			f.raise(row.shard, row.id-1)
		}
	}
	for _, s := range list {
		if complete && !seen[s] {
			f.raise(s, f.decided)
		}
	}
}

// deleted takes the rows of the last scan, of which those acknowledged are deleted, and the xid of the delete.
func (f *floors) deleted(xid int64, rows []*staged) {
	if f.horizon == 0 && f.top > f.decided {
		f.asked, f.horizon = f.top, xid
	}
	shard, stopped := int16(-1), false // the shard, and whether a row of it stays, which the floor must be below
	for i, r := range rows {
		if r.shard != shard {
			shard, stopped = r.shard, false
		}
		stopped = stopped || !r.acked
		if last := i+1 == len(rows) || rows[i+1].shard != r.shard || !rows[i+1].acked; !stopped && last {
			f.raise(r.shard, r.id)
		}
	}
}

// raise lifts a shard's floor to id, as far as ids are decided.
func (f *floors) raise(shard int16, id int64) {
	l, ok := f.known[shard]
	if ok && min(id, f.decided) > l.id {
		l.id = min(id, f.decided)
		f.known[shard] = l
	}
}

// skipTo makes the floor an id cursor, which loses rows: only for the test that switches rule 24 off.
func (f *floors) skipTo(rows []*staged) {
	for _, r := range rows {
		l := f.known[r.shard]
		l.id = max(l.id, r.id)
		f.known[r.shard] = l
	}
}
