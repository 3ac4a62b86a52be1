package deadletter

import "strings"

// statements holds every statement of the package, rendered once for a schema.
type statements struct {
	list, lock, older, summary, story                string
	act, remove, giveBack, enqueue, offset, queueKey string
	forwardLock, unforwarded, forwarded, depth       string
}

// letter are the columns of inbox_dead that a message takes with it.
const letter = `consumer, state, business_key, message_id, type, topic, partition, "offset", headers, body, sent_at, attempts, class, %s, error, first_at, died_at`

func render(schema string) statements {
	dead, kept := strings.ReplaceAll(letter, "%s", "reason"), strings.ReplaceAll(letter, "%s", "dead_reason")
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{dead}}", dead, "{{kept}}", kept).Replace(sql)
	}
	return statements{
		list: r(`
			SELECT id, {{dead}} FROM {{schema}}.inbox_dead
			WHERE ($1 = '' OR consumer = $1) AND ($2 = '' OR type = $2) AND ($3 = '' OR reason = $3) AND ($4 = '' OR business_key = $4) AND ($5 = '' OR state = $5)
			ORDER BY id LIMIT $6`),
		// Ours until the transaction ends. By primary key.
		lock: r(`SELECT id, {{dead}} FROM {{schema}}.inbox_dead WHERE id = $1 FOR UPDATE`),
		// The oldest message of the key that is set aside before $3.
		older: r(`SELECT coalesce(min(id), 0) FROM {{schema}}.inbox_dead WHERE consumer = $1 AND business_key = $2 AND id < $3`),
		summary: r(`
			SELECT consumer, state, type, reason, count(*), min(died_at), max(died_at), (array_agg(error ORDER BY id DESC))[1]
			FROM {{schema}}.inbox_dead WHERE $1 = '' OR consumer = $1 GROUP BY consumer, state, type, reason ORDER BY count(*) DESC, consumer, type LIMIT 1000`),
		// All acts on a message and on those it was edited from and into.
		story: r(`
			WITH RECURSIVE ids AS (
				SELECT $1::text AS id
				UNION
				SELECT CASE WHEN a.message_id = i.id THEN a.new_message_id ELSE a.message_id END
				FROM ids i JOIN {{schema}}.dead_letter_act a ON (a.message_id = i.id OR a.new_message_id = i.id) AND a.new_message_id <> '')
			SELECT id, at, actor, action, reason, root_cause, target, redrive_id, new_message_id, letter, {{kept}}
			FROM {{schema}}.dead_letter_act WHERE message_id IN (SELECT id FROM ids) ORDER BY id`),

		act: r(`
			INSERT INTO {{schema}}.dead_letter_act (at, actor, action, reason, root_cause, target, redrive_id, new_message_id, new_body, letter, {{kept}})
			SELECT {{schema}}.now(), $2, $3, $4, $5, $6, $7, $8, $9, id, {{dead}} FROM {{schema}}.inbox_dead WHERE id = $1 RETURNING id`),
		remove: r(`DELETE FROM {{schema}}.inbox_dead WHERE id = $1`),
		// Keeps its position, so that its body can be opened and a repeat is known. $2 are its headers then.
		giveBack: r(`
			WITH d AS (DELETE FROM {{schema}}.inbox_dead WHERE id = $1 RETURNING *)
			INSERT INTO {{schema}}.inbox_retry (consumer, business_key, message_id, type, ordered, topic, partition, "offset", headers, body, sent_at, attempts, last_error, first_at, next_at)
			SELECT consumer, business_key, message_id, type, $3, topic, partition, "offset", $2::text[], body, sent_at, 0, error, first_at, {{schema}}.now() FROM d`),
		offset:   r(`SELECT nextval('{{schema}}.dead_letter_offset')`),
		queueKey: r(`SELECT pg_advisory_xact_lock(hashtextextended('journeyman.inbox.' || $1 || '/' || $2, 0))`),
		enqueue: r(`
			INSERT INTO {{schema}}.inbox_retry (consumer, business_key, message_id, type, ordered, topic, partition, "offset", headers, body, sent_at, attempts, last_error, first_at, next_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, t.at, t.at FROM (SELECT {{schema}}.now() AS at OFFSET 0) t`),

		forwardLock: r(`SELECT pg_try_advisory_xact_lock(hashtextextended('journeyman.deadletter.{{schema}}', 0))`),
		// By the partial index inbox_dead_unforwarded. A row that an operator holds comes next time.
		unforwarded: r(`SELECT id, {{dead}} FROM {{schema}}.inbox_dead WHERE forwarded_at IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED`),
		forwarded: r(`
			UPDATE {{schema}}.inbox_dead d SET forwarded_at = {{schema}}.now(), forward_error = nullif(u.error, '')
			FROM unnest($1::bigint[], $2::text[]) u(id, error) WHERE d.id = u.id`),
		depth: r(`
			SELECT count(*) FILTER (WHERE state = 'dead'), count(*) FILTER (WHERE state = 'parked'), count(*) FILTER (WHERE forwarded_at IS NULL), count(*) FILTER (WHERE forward_error IS NOT NULL)
			FROM {{schema}}.inbox_dead`),
	}
}
