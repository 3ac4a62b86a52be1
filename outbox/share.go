package outbox

import "slices"

// shares says how many rows a scan takes of each shard with a backlog, so that no shard's backlog holds up another's. One whose first
// row is older than most gets up to four times as much as others, and one that is ahead as little as a quarter: so shards of many and of
// few keys go through a backlog side by side. In the table rows lie in the order of their ids, those of all shards together; a scan of
// shards that are far apart finds no two rows in one page, nor any page in memory.
type shares struct {
	of   map[int16]int // in hundredths; 0, or not there: the last scan left none of its rows
	rest int           // rows that the last scan found in shards without a share
}

const (
	evenShare             = 100
	leastShare, mostShare = evenShare / 4, evenShare * 4
	fewestRows            = 16 // of a shard without a share
)

// rows gives the numbers for the shards in list, which together may have batch.
func (s *shares) rows(list []int16, batch int) []int {
	all := 0
	for _, shard := range list {
		all += s.of[shard]
	}
	room := max(batch-2*s.rest, batch/4) // the others may have more than before
	most := make([]int, len(list))
	for i, shard := range list {
		most[i] = max(fewestRows, room*s.of[shard]/max(all, 1))
	}
	return most
}

// scanned takes the rows of a scan of the shards in list, which are in the order of that list, and within a shard in that of their ids,
// with the numbers they were to have at most. complete means that the limit of all together cut nothing off.
func (s *shares) scanned(list []int16, most []int, rows []*staged, complete bool) {
	type found struct {
		rows  int
		first int64
	}
	of := map[int16]found{}
	var ids []int64
	for i, r := range rows {
		f := of[r.shard]
		if i == 0 || r.shard != rows[i-1].shard {
			f.first = r.id
			ids = append(ids, r.id)
		}
		f.rows++
		of[r.shard] = f
	}
	slices.Sort(ids)
	if s.rest = 0; s.of == nil {
		s.of = map[int16]int{}
	}
	for i, shard := range list {
		f, share := of[shard], s.of[shard]
		switch cut := !complete && (f.rows == 0 || shard == rows[len(rows)-1].shard); {
		case f.rows < most[i] && !cut:
			delete(s.of, shard)
			s.rest += f.rows
			continue
		case f.rows < most[i]:
			continue
		case share == 0:
			share = evenShare
		case f.first < ids[len(ids)/2]:
			share += share / 8
		case f.first > ids[len(ids)/2]:
			share -= share / 8
		}
		s.of[shard] = min(max(share, leastShare), mostShare)
	}
}
