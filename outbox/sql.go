package outbox

import "strings"

// statements holds every statement of the package, rendered once for a schema.
type statements struct {
	xid, lockKeys, insert, seq string
}

const columns = `shard, id, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at`

func render(schema string) statements {
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{columns}}", columns).Replace(sql)
	}
	return statements{
		// Draws the transaction's xid before any id is drawn (path rule 21).
		xid: `SELECT pg_current_xact_id()`,
		// Locks the key rows in the order given, which is sorted, until the transaction ends. Uses the primary key.
		lockKeys: r(`
			INSERT INTO {{schema}}.outbox_key AS k (business_key, seq, turn)
			SELECT u.key, u.n, 1 FROM unnest($1::text[], $2::bigint[]) u(key, n)
			ON CONFLICT (business_key) DO UPDATE SET seq = k.seq + excluded.seq, turn = k.turn + 1`),
		// $11 counts back from the key's new sequence to this row's own.
		insert: r(`
			INSERT INTO {{schema}}.outbox (shard, event_id, type, version, class, topic, business_key, operation_id, headers, body, seq, occurred_at, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
				coalesce((SELECT seq FROM {{schema}}.outbox_key WHERE business_key = $7), 0) - $11,
				coalesce($12, {{schema}}.now()), {{schema}}.now())`),
		seq: r(`(SELECT turn FROM {{schema}}.outbox_key WHERE business_key = $%d)`),
	}
}
