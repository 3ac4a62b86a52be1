package replay

import "strings"

// statements holds every statement of the package but the group target's, rendered once for a schema.
type statements struct {
	insert, resume, own, move, end, get, list, cancel, now string
}

const columns = `id::text, actor, reason, source, target, mode, filter::text, rate, state, place, delivered, suppressed, error, started_at, updated_at, ended_at`

func render(schema string) statements {
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{columns}}", columns).Replace(sql)
	}
	return statements{
		insert: r(`
			INSERT INTO {{schema}}.replay (id, actor, reason, source, target, mode, filter, rate, state, place, fence, started_at, updated_at)
			SELECT $1::text::uuid, $2, $3, $4, $5, $6, $7::text::jsonb, $8, 'running', $9, 1, t.at, t.at FROM (SELECT {{schema}}.now() AS at OFFSET 0) t`),
		// Takes the replay over from whoever ran it.
		resume: r(`
			UPDATE {{schema}}.replay SET state = 'running', fence = fence + 1, error = '', updated_at = {{schema}}.now(), rate = coalesce($2, rate)
			WHERE id = $1::text::uuid AND state IN ('running', 'paused', 'failed') RETURNING fence`),
		// Ours, and kept so until the transaction ends.
		own: r(`SELECT told FROM {{schema}}.replay WHERE id = $1::text::uuid AND fence = $2 AND state = 'running' FOR UPDATE`),
		move: r(`
			UPDATE {{schema}}.replay SET place = $3, delivered = delivered + $4, suppressed = suppressed + $5, updated_at = {{schema}}.now(),
				told = CASE WHEN $6 THEN delivered + $4 ELSE told END
			WHERE id = $1::text::uuid AND fence = $2 RETURNING {{columns}}`),
		end: r(`
			UPDATE {{schema}}.replay SET state = $3, error = $4, updated_at = {{schema}}.now(), ended_at = CASE WHEN $3 IN ('completed', 'cancelled') THEN {{schema}}.now() END
			WHERE id = $1::text::uuid AND fence = $2 AND state = 'running' RETURNING {{columns}}`),
		cancel: r(`
			UPDATE {{schema}}.replay SET state = 'cancelled', error = $2, fence = fence + 1, updated_at = {{schema}}.now(), ended_at = {{schema}}.now()
			WHERE id = $1::text::uuid AND state IN ('running', 'paused', 'failed') RETURNING {{columns}}`),
		get:  r(`SELECT {{columns}} FROM {{schema}}.replay WHERE id = $1::text::uuid`),
		list: r(`SELECT {{columns}} FROM {{schema}}.replay ORDER BY started_at DESC, id LIMIT $1`),
		now:  r(`SELECT {{schema}}.now()`),
	}
}

// groupStatements are those on the tables of a consumer group, which may be in another schema than the replay's.
type groupStatements struct{ lock, offsets, enqueue, waiting string }

func renderGroup(schema, inboxSchema string) groupStatements {
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{inbox}}", inboxSchema).Replace(sql)
	}
	return groupStatements{
		// The inbox's own lock of the queue behind a key, taken in sorted order.
		lock:    r(`SELECT pg_advisory_xact_lock(hashtextextended('journeyman.inbox.' || $1 || '/' || k, 0)) FROM unnest($2::text[]) k`),
		offsets: r(`SELECT array_agg(nextval('{{schema}}.replay_offset') ORDER BY n) FROM generate_series(1, $1::int) n`),
		// Only the first of a key is due; the inbox lets the next go when it is done. By index inbox_retry_key.
		enqueue: r(`
			INSERT INTO {{inbox}}.inbox_retry (consumer, business_key, message_id, type, ordered, topic, partition, "offset", headers, body, sent_at, attempts, last_error, first_at, next_at)
			SELECT $1, u.key, u.id, u.type, u.ordered, u.topic, -1, u.at, u.headers::text[], u.body, u.sent, 0, $9, t.at,
				CASE WHEN NOT u.ordered THEN t.at
					WHEN EXISTS (SELECT 1 FROM {{inbox}}.inbox_retry b WHERE b.consumer = $1 AND b.business_key = u.key AND b.ordered) THEN 'infinity'
					WHEN u.n > min(u.n) FILTER (WHERE u.ordered) OVER (PARTITION BY u.key) THEN 'infinity'
					ELSE t.at END
			FROM unnest($2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::bytea[], $8::timestamptz[], $10::text[], $11::bigint[]) WITH ORDINALITY
				AS u(key, id, type, ordered, topic, body, sent, headers, at, n), (SELECT {{inbox}}.now() AS at OFFSET 0) t
			ORDER BY u.n`),
		// Counts to a limit. By index inbox_retry_key.
		waiting: r(`SELECT count(*) FROM (SELECT 1 FROM {{inbox}}.inbox_retry WHERE consumer = $1 LIMIT $2) w`),
	}
}
