package inbox

import "strings"

// orderStatements are those of strict order, see order.go.
type orderStatements struct {
	lock, advance, wake, unpark   string
	hold, holdRetry, park, accept string
}

func renderOrder(schema string) orderStatements {
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{place}}", place).Replace(sql)
	}
	return orderStatements{
		// Gives how far the group is, and keeps others from the key until the transaction ends.
		lock: r(`
			INSERT INTO {{schema}}.inbox_order AS o (consumer, scope, business_key, seq) VALUES ($1, $2, $3, 0)
			ON CONFLICT (consumer, scope, business_key) DO UPDATE SET seq = o.seq RETURNING o.seq`),
		advance: r(`UPDATE {{schema}}.inbox_order SET seq = greatest(seq, $4) WHERE consumer = $1 AND scope = $2 AND business_key = $3`),
		// A row that is locked is being looked at: it will wait for our lock and see how far we are.
		wake: r(`
			UPDATE {{schema}}.inbox_retry r SET next_at = {{schema}}.now(), scope = NULL, previous = NULL
			FROM (SELECT h.id FROM {{schema}}.inbox_retry h
				WHERE h.consumer = $1 AND h.scope = $2 AND h.business_key = $3 AND h.previous <= $4 FOR UPDATE SKIP LOCKED) w
			WHERE r.consumer = $1 AND r.id = w.id`),
		unpark: r(`
			WITH d AS (DELETE FROM {{schema}}.inbox_dead WHERE consumer = $1 AND scope = $2 AND business_key = $3 AND previous <= $4 RETURNING *)
			INSERT INTO {{schema}}.inbox_retry (consumer, business_key, message_id, type, ordered, {{place}}, attempts, last_error, first_at, next_at)
			SELECT consumer, business_key, message_id, type, false, {{place}}, 0, error, first_at, {{schema}}.now() FROM d`),
		// $1 to $15 as in schedule, $16 scope, $17 previous.
		hold: r(`
			INSERT INTO {{schema}}.inbox_retry (consumer, business_key, message_id, type, ordered, {{place}}, attempts, last_error, first_at, next_at, scope, previous)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, coalesce($14::timestamptz, t.at), t.at + $15::interval, $16, $17
			FROM (SELECT {{schema}}.now() AS at OFFSET 0) t
			ON CONFLICT (consumer, topic, partition, "offset") DO NOTHING`),
		holdRetry: r(`
			UPDATE {{schema}}.inbox_retry SET ordered = false, last_error = $3, next_at = {{schema}}.now() + $4::interval, scope = $5, previous = $6
			WHERE consumer = $1 AND id = $2`),
		park: r(`
			WITH d AS (DELETE FROM {{schema}}.inbox_retry WHERE consumer = $1 AND id = $2 RETURNING *)
			INSERT INTO {{schema}}.inbox_dead (consumer, state, business_key, message_id, type, {{place}}, attempts, class, reason, error, first_at, died_at, scope, previous)
			SELECT consumer, 'parked', business_key, message_id, type, {{place}}, attempts, $3, $4, $5, first_at, {{schema}}.now(), scope, previous FROM d
			ON CONFLICT (consumer, topic, partition, "offset") DO NOTHING`),

		// For operators: goes on behind the gap before the first message of each scope that is held or parked.
		accept: r(`
			WITH held AS (
				SELECT scope, previous FROM {{schema}}.inbox_retry WHERE consumer = $1 AND business_key = $2 AND scope IS NOT NULL
				UNION ALL
				SELECT scope, previous FROM {{schema}}.inbox_dead WHERE consumer = $1 AND business_key = $2 AND scope IS NOT NULL),
			f AS (SELECT scope, min(previous) AS previous FROM held GROUP BY scope),
			w AS (
				UPDATE {{schema}}.inbox_retry r SET next_at = {{schema}}.now(), scope = NULL, previous = NULL FROM f
				WHERE r.consumer = $1 AND r.business_key = $2 AND r.scope = f.scope AND r.previous <= f.previous),
			d AS (
				DELETE FROM {{schema}}.inbox_dead x USING f
				WHERE x.consumer = $1 AND x.business_key = $2 AND x.scope = f.scope AND x.previous <= f.previous RETURNING x.*),
			i AS (
				INSERT INTO {{schema}}.inbox_retry (consumer, business_key, message_id, type, ordered, {{place}}, attempts, last_error, first_at, next_at)
				SELECT consumer, business_key, message_id, type, false, {{place}}, 0, error, first_at, {{schema}}.now() FROM d)
			UPDATE {{schema}}.inbox_order o SET seq = greatest(o.seq, f.previous) FROM f
			WHERE o.consumer = $1 AND o.scope = f.scope AND o.business_key = $2`),
	}
}
