package outbox

import (
	"slices"
	"testing"
)

// backlog is the rows of a lane's shards by id, as scans and deletes leave them.
type backlog map[int16][]int64

// pass is one scan of list, at most batch rows, of which all are deleted.
func (b backlog) pass(s *shares, list []int16, batch int) (seen map[int16]int) {
	var rows []*staged
	seen = map[int16]int{}
	most := s.rows(list, batch)
	for i, most := range most {
		shard := list[i]
		n := min(most, len(b[shard]), batch-len(rows))
		for _, id := range b[shard][:n] {
			rows = append(rows, &staged{shard: shard, id: id})
		}
		b[shard], seen[shard] = b[shard][n:], n
	}
	cut := int16(-1)
	if len(rows) == batch {
		cut = rows[batch-1].shard
	}
	s.scanned(list, most, inShards(rows), cut)
	return seen
}

// turned is a list of shards as the relay turns it from pass to pass.
func turned(n, turn int) []int16 {
	list := make([]int16, n)
	for i := range list {
		list[i] = int16((i + turn) % n) //nolint:gosec // few
	}
	return list
}

// Shards with eight to thirty keys, rows of all side by side in the table: they stay within some thousand rows of each other, where with
// even shares the largest would be at a third when the smallest is done.
func TestShares_ShardsGoThroughABacklogSideBySide(t *testing.T) {
	t.Parallel()
	const shards, keys, total, batch = 32, 600, 600_000, 1000
	b, of := backlog{}, []int16{}
	for s := range int16(shards) {
		for range 8 + int(s)*22/(shards-1) {
			of = append(of, s)
		}
	}
	for id := range total {
		s := of[id*7919%len(of)]
		b[s] = append(b[s], int64(id))
	}
	s := &shares{}
	for turn := 0; ; turn++ {
		list := turned(shards, turn)
		b.pass(s, list, batch)
		var ids []int64
		for _, shard := range list {
			if len(b[shard]) > 0 {
				ids = append(ids, b[shard][0])
			}
		}
		if len(ids) < shards {
			return // the end
		}
		if spread := slices.Max(ids) - slices.Min(ids); turn > 30 && spread > 40*batch {
			t.Fatalf("after %d passes the shards are %d rows apart, want at most %d", turn, spread, 40*batch)
		}
	}
}

// One shard has a long backlog, all of it older than the few rows of the others: they do not wait for it.
func TestShares_ABacklogDoesNotHoldUpOtherShards(t *testing.T) {
	t.Parallel()
	const shards, batch = 32, 1000
	b, next := backlog{}, int64(0)
	for ; next < 200_000; next++ {
		b[0] = append(b[0], next)
	}
	s := &shares{}
	for turn := range 100 {
		for shard := int16(1); shard < shards; shard++ {
			b[shard] = append(b[shard], next)
			next++
		}
		seen := b.pass(s, turned(shards, turn), batch)
		for shard := int16(1); shard < shards; shard++ {
			if turn > 1 && len(b[shard]) > 1 {
				t.Fatalf("pass %d: %d rows of shard %d wait", turn, len(b[shard]), shard)
			}
		}
		if turn > 10 && seen[0] < batch/4 {
			t.Fatalf("pass %d takes %d rows of the backlog, want at least %d", turn, seen[0], batch/4)
		}
	}
}
