package dedup

import (
	"encoding/json"

	"github.com/jackc/pgx/v5"
)

// QueueUsedBy is [Store.QueueUsed] for several process instances; one that used nothing is not in the map.
func (s *Store) QueueUsedBy(b *pgx.Batch, cluster string, processInstanceKeys []int64, to map[int64]int64) {
	b.Queue(s.q.usedBy, cluster, processInstanceKeys).Query(func(rows pgx.Rows) error {
		var key, used int64
		_, err := pgx.ForEachRow(rows, []any{&key, &used}, func() error {
			to[key] = used
			return nil
		})
		return err
	})
}

func docText(d json.RawMessage) *string {
	if d == nil {
		return nil
	}
	t := string(d)
	return &t
}
