package outbox

import (
	"github.com/jackc/pgx/v5"
)

// collect reads rows of the columns in wire, and closes them.
func collect(rows pgx.Rows) ([]staged, error) {
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (staged, error) {
		var s staged
		err := row.Scan(&s.shard, &s.id, &s.eventID, &s.topic, &s.key, &s.seq, &s.headers, &s.body, &s.occurred, &s.at, &s.parked)
		return s, err
	})
}
