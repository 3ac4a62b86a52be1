package outbox

// floors lets scans start behind the dead entries of deleted rows. A floor is
// an id at and below which no row of the shard can appear any more; it is an
// optimisation and never decides what is published.
//
// How an id is known to be decided, whatever commits late:
//
//  1. with each scan the last id drawn is read, top;
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
// A server that crashed, or another one in its place, may show rows again whose
// delete was not on its disk, and draw ids again. So each scan comes with the
// [incarnation] it saw, and floors learned from another one are forgotten before
// a row is published. They are also forgotten when a shard changes hands and
// when ids go back.
type floors struct {
	known   map[int16]floor
	server  incarnation // that the rest was learned from, the zero value when nothing was
	top     int64       // last id drawn before the last look
	asked   int64       // what step 2 was done for, with horizon; 0 means that none is open
	horizon int64
	decided int64 // every id up to it is decided as of the last look
}

type floor struct{ fence, id int64 }

// incarnation is a server from one recovery to the next. It differs after all that can undo a commit: a crash of the server or of one of
// its backends, a standby's promotion, a restore.
type incarnation struct {
	started int64    // microseconds since 1970
	token   [16]byte // of the unlogged table outbox_recovery, which recoveries empty
}

// looked takes what came with a scan: its server, the last id drawn and the xmin of a snapshot that is no newer than the scan's. It
// reports whether the scan may be used: not when it began above floors that are none any more.
func (f *floors) looked(server incarnation, top, xmin int64) bool {
	if learned := f.server != (incarnation{}); learned && (server != f.server || top < f.top) {
		*f = floors{}
		return false
	}
	f.server, f.top = server, top
	if f.horizon > 0 && xmin >= f.horizon {
		f.decided, f.horizon = f.asked, 0
	}
	return true
}

// of gives where to start in each shard of list.
func (f *floors) of(list []int16, leases map[int16]lease) []int64 {
	if f.known == nil {
		f.known = map[int16]floor{}
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

// scanned takes what a scan found in the shards of list. complete means that no limit cut it off, so that shards without rows are empty.
func (f *floors) scanned(list []int16, in map[int16]found, complete bool) {
	for _, s := range list {
		if at := in[s]; at.rows > 0 {
			f.raise(s, at.first-1)
		} else if complete {
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
