package work

import "strings"

// statements holds every statement of the package, rendered once for a schema.
type statements struct {
	put, stored, cancel                  string
	claim, own, lockKey, done, again     string
	release, bury                        string
	list, quarantined, retry, drop, stat string
}

const lostLimit = 20 // claims that ended in nothing

func render(schema string) statements {
	r := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return statements{
		// $7 is the time, NULL means now; $8 a wait on top of it.
		put: r(`
			INSERT INTO {{schema}}.work_item (queue, item_id, key, priority, body, print, origin, not_before, next_at, attempts, last_error, created_at)
			SELECT $1, $2, $3, $4, $5, $6, $9, due.at, due.at, 0, '', t.at
			FROM (SELECT {{schema}}.now() AS at OFFSET 0) t, LATERAL (SELECT coalesce($7::timestamptz, t.at) + $8::interval AS at) due
			ON CONFLICT (queue, item_id) DO NOTHING`),
		stored: r(`SELECT print FROM {{schema}}.work_item WHERE queue = $1 AND item_id = $2`),
		// Waits for a handler that is at it: then the item is gone, and that is the answer.
		cancel: r(`DELETE FROM {{schema}}.work_item WHERE queue = $1 AND item_id = $2`),

		// The due items of the highest priority whose key is free. SKIP LOCKED is about claims: whoever is second takes
		// other items. A key's order does not depend on it: an item is free only when no older one of its key is there.
		claim: r(`
			WITH t AS MATERIALIZED (SELECT {{schema}}.now() AS at),
			c AS MATERIALIZED (
				SELECT x.id FROM t, (VALUES (2), (1), (0)) p(level) CROSS JOIN LATERAL (
					SELECT r.id FROM {{schema}}.work_item r
					WHERE r.queue = $1 AND r.priority = p.level AND r.next_at <= (SELECT at FROM t) AND r.lease_until <= (SELECT at FROM t)
					AND NOT (r.key <> '' AND EXISTS (
						SELECT 1 FROM {{schema}}.work_item b WHERE b.queue = r.queue AND b.key = r.key AND b.key <> '' AND b.id <> r.id
						AND (b.lease_until > (SELECT at FROM t) OR b.id < r.id AND (b.attempts > 0 OR b.next_at <= (SELECT at FROM t)))))
					ORDER BY r.next_at, r.id LIMIT $4 FOR UPDATE SKIP LOCKED) x LIMIT $4)
			UPDATE {{schema}}.work_item w SET owner = $2, fence = w.fence + 1, lease_until = t.at + $3::interval, first_at = coalesce(w.first_at, t.at)
			FROM t, c WHERE w.id = c.id
			RETURNING w.id, w.fence, w.item_id, w.key, w.body, w.origin, w.attempts, w.not_before, w.created_at`),
		// Holds the item until the transaction ends: it cannot be claimed nor cancelled meanwhile.
		own: r(`SELECT 1 FROM {{schema}}.work_item WHERE id = $1 AND fence = $2 FOR UPDATE`),
		// Items of one key that were claimed by turns of the clock still take turns.
		lockKey: r(`SELECT pg_advisory_xact_lock(hashtextextended('journeyman.work.{{schema}}.' || $1 || '/' || $2, 0))`),
		done:    r(`DELETE FROM {{schema}}.work_item WHERE id = $1`),
		again: r(`
			UPDATE {{schema}}.work_item SET attempts = attempts + 1, last_error = $3, next_at = {{schema}}.now() + $4::interval, owner = '', lease_until = '-infinity'
			WHERE id = $1 AND fence = $2`),
		release: r(`UPDATE {{schema}}.work_item SET owner = '', lease_until = '-infinity' WHERE id = $1 AND fence = $2`),
		bury: r(`
			WITH d AS (DELETE FROM {{schema}}.work_item WHERE id = $1 AND fence = $2 RETURNING *)
			INSERT INTO {{schema}}.work_quarantine (state, queue, item_id, key, priority, body, print, origin, not_before, attempts, class, reason, error, created_at, first_at, died_at)
			SELECT $3, queue, item_id, key, priority, body, print, origin, not_before, attempts + 1, $4, $5, $6, created_at, first_at, {{schema}}.now() FROM d`),

		// For operators.
		list: r(`
			SELECT id, queue, item_id, key, priority, attempts, last_error, created_at, not_before, next_at, owner,
				CASE WHEN lease_until > {{schema}}.now() THEN lease_until END
			FROM {{schema}}.work_item WHERE $1 = '' OR queue = $1 ORDER BY queue, next_at, id LIMIT $2`),
		quarantined: r(`
			SELECT id, state, queue, item_id, key, priority, attempts, class, reason, error, created_at, not_before, coalesce(first_at, died_at), died_at, body
			FROM {{schema}}.work_quarantine WHERE ($1 = '' OR queue = $1) AND ($2 = 0 OR id = $2) ORDER BY id LIMIT $3`),
		retry: r(`
			WITH d AS (DELETE FROM {{schema}}.work_quarantine WHERE id = $1 RETURNING *)
			INSERT INTO {{schema}}.work_item (queue, item_id, key, priority, body, print, origin, not_before, next_at, attempts, last_error, created_at)
			SELECT queue, item_id, key, priority, body, print, origin, not_before, {{schema}}.now(), 0, error, created_at FROM d`),
		drop: r(`DELETE FROM {{schema}}.work_quarantine WHERE id = $1`),
		stat: r(`
			WITH t AS MATERIALIZED (SELECT {{schema}}.now() AS at),
			i AS (
				SELECT w.queue, count(*) FILTER (WHERE w.next_at <= t.at) AS due, count(*) FILTER (WHERE w.next_at > t.at AND w.attempts = 0) AS scheduled,
					count(*) FILTER (WHERE w.next_at > t.at AND w.attempts > 0) AS retrying, count(*) FILTER (WHERE w.lease_until > t.at) AS running,
					coalesce(max(extract(epoch FROM t.at - w.next_at)) FILTER (WHERE w.next_at <= t.at), 0)::float8 AS oldest
				FROM {{schema}}.work_item w, t GROUP BY w.queue),
			q AS (
				SELECT x.queue, count(*) FILTER (WHERE x.state = 'dead') AS dead, count(*) FILTER (WHERE x.state = 'parked') AS parked,
					coalesce(max(extract(epoch FROM t.at - x.died_at)), 0)::float8 AS oldest
				FROM {{schema}}.work_quarantine x, t GROUP BY x.queue)
			SELECT queue, coalesce(i.due, 0), coalesce(i.scheduled, 0), coalesce(i.retrying, 0), coalesce(i.running, 0), coalesce(i.oldest, 0),
				coalesce(q.dead, 0), coalesce(q.parked, 0), coalesce(q.oldest, 0)
			FROM i FULL JOIN q USING (queue) WHERE $1 = '' OR queue = $1 ORDER BY queue`),
	}
}
