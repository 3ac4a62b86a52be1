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

// found is what a scan found in one shard.
type found struct {
	rows  int
	first int64 // id of the first of them
}

// inShards counts rows by shard; they are in the order of their ids within each.
func inShards(rows []*staged) map[int16]found {
	in := map[int16]found{}
	for _, r := range rows {
		at := in[r.shard]
		if at.rows == 0 {
			at.first = r.id
		}
		at.rows++
		in[r.shard] = at
	}
	return in
}

// scanned takes what a scan found in the shards of list, with the numbers they were to have at most. cut is the last shard that rows came
// from when the limit of all together cut it and those behind it off, else -1.
func (s *shares) scanned(list []int16, most []int, in map[int16]found, cut int16) {
	ids := make([]int64, 0, len(in))
	for _, at := range in {
		ids = append(ids, at.first)
	}
	slices.Sort(ids)
	if s.rest = 0; s.of == nil {
		s.of = map[int16]int{}
	}
	for i, shard := range list {
		at, share := in[shard], s.of[shard]
		switch {
		case at.rows < most[i] && cut >= 0 && (at.rows == 0 || shard == cut):
			continue
		case at.rows < most[i]:
			delete(s.of, shard)
			s.rest += at.rows
			continue
		case share == 0:
			share = evenShare
		case at.first < ids[len(ids)/2]:
			share += share / 8
		case at.first > ids[len(ids)/2]:
			share -= share / 8
		}
		s.of[shard] = min(max(share, leastShare), mostShare)
	}
}
