package inbox

import "strings"

// groupStatements are those of groups of messages, and of groups that are paused.
type groupStatements struct {
	behindAll, insertAll, forget string
	join, gate, beat, leave      string
	pause, resume, groups        string
}

func renderGroup(schema string) groupStatements {
	r := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	const columns = `g.consumer, g.topics, g.paused_at, g.paused_by, g.reason,
				coalesce(m.members, 0), coalesce(m.busy, 0), g.paused_at IS NOT NULL AND coalesce(m.still, true)`
	return groupStatements{
		// Of which of the keys is a message waiting? By index inbox_retry_key.
		behindAll: r(`
			SELECT DISTINCT r.business_key FROM unnest($2::text[]) k(key)
			JOIN {{schema}}.inbox_retry r ON r.consumer = $1 AND r.business_key = k.key AND r.ordered`),
		// Sorted, so that two members with the same messages do not deadlock. Waits for twins on the primary key.
		insertAll: r(`
			INSERT INTO {{schema}}.inbox (consumer, message_id, fingerprint, processed_at)
			SELECT $1, u.id, u.print, t.at FROM unnest($2::text[], $3::bytea[]) u(id, print), (SELECT {{schema}}.now() AS at OFFSET 0) t ORDER BY u.id
			ON CONFLICT (consumer, message_id) DO NOTHING RETURNING message_id`),
		// Rows that this transaction wrote for messages that it then left out.
		forget: r(`DELETE FROM {{schema}}.inbox WHERE consumer = $1 AND message_id = ANY ($2::text[])`),

		join: r(`
			INSERT INTO {{schema}}.inbox_group AS g (consumer, topics) VALUES ($1, $2)
			ON CONFLICT (consumer) DO UPDATE SET topics = excluded.topics WHERE g.topics <> excluded.topics`),
		gate: r(`SELECT paused_at IS NOT NULL, paused_by, reason FROM {{schema}}.inbox_group WHERE consumer = $1`),
		beat: r(`
			WITH old AS (DELETE FROM {{schema}}.inbox_member WHERE consumer = $1 AND member <> $2 AND seen_at < {{schema}}.now() - interval '1 hour')
			INSERT INTO {{schema}}.inbox_member (consumer, member, seen_at, busy, still) VALUES ($1, $2, {{schema}}.now(), $3, $4)
			ON CONFLICT (consumer, member) DO UPDATE SET seen_at = excluded.seen_at, busy = excluded.busy, still = excluded.still`),
		leave: r(`DELETE FROM {{schema}}.inbox_member WHERE consumer = $1 AND member = $2`),

		// For operators.
		pause: r(`
			INSERT INTO {{schema}}.inbox_group AS g (consumer, topics, paused_at, paused_by, reason) VALUES ($1, '{}', {{schema}}.now(), $2, $3)
			ON CONFLICT (consumer) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, reason = excluded.reason WHERE g.paused_at IS NULL`),
		resume: r(`UPDATE {{schema}}.inbox_group SET paused_at = NULL, paused_by = '', reason = '' WHERE consumer = $1 AND paused_at IS NOT NULL`),
		groups: r(`
			SELECT ` + columns + `,
				(SELECT count(*) FROM {{schema}}.inbox_retry r WHERE r.consumer = g.consumer),
				(SELECT count(*) FROM {{schema}}.inbox_dead d WHERE d.consumer = g.consumer AND d.state = 'dead'),
				(SELECT count(*) FROM {{schema}}.inbox_dead d WHERE d.consumer = g.consumer AND d.state = 'parked'),
				coalesce((SELECT extract(epoch FROM {{schema}}.now() - min(r.first_at)) FROM {{schema}}.inbox_retry r WHERE r.consumer = g.consumer), 0)::float8
			FROM {{schema}}.inbox_group g LEFT JOIN LATERAL (
				SELECT count(*) AS members, sum(x.busy) AS busy, bool_and(x.still) AS still FROM {{schema}}.inbox_member x
				WHERE x.consumer = g.consumer AND x.seen_at > {{schema}}.now() - $2::interval) m ON true
			WHERE $1 = '' OR g.consumer = $1 ORDER BY g.consumer`),
	}
}
