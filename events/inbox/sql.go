package inbox

import (
	"strings"

	"github.com/vitrip/journeyman/internal/rule"
)

// statements holds every statement of the package, rendered once for a schema.
type statements struct {
	behind, insert, print                string
	schedule, lockKey                    string
	bury, due, take, again, done, next   string
	rest                                 string
	unstick, purge, purgeLock            string
	waiting, dead, redrive, drop, counts string
}

const place = `topic, partition, "offset", headers, body, sent_at`

func render(schema string) statements {
	id := "$2"
	if rule.Off(25) { // as if the table were partitioned by day: the same id gets in again tomorrow
		id = "($2 || '@' || ({{schema}}.now()::date)::text)"
	}
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{place}}", place, "{{id}}", strings.ReplaceAll(id, "{{schema}}", schema)).Replace(sql)
	}
	return statements{
		// Is an older message of the key waiting? By index inbox_retry_key.
		behind: r(`SELECT EXISTS (SELECT 1 FROM {{schema}}.inbox_retry WHERE consumer = $1 AND business_key = $2 AND ordered)`),
		// Waits for a twin's transaction on the primary key.
		insert: r(`
			INSERT INTO {{schema}}.inbox (consumer, message_id, fingerprint, processed_at) VALUES ($1, {{id}}, $3, {{schema}}.now())
			ON CONFLICT (consumer, message_id) DO NOTHING`),
		print: r(`SELECT fingerprint FROM {{schema}}.inbox WHERE consumer = $1 AND message_id = {{id}}`),

		// $15 is the wait; NULL means until the message before it is done.
		schedule: r(`
			INSERT INTO {{schema}}.inbox_retry (consumer, business_key, message_id, type, ordered, {{place}}, attempts, last_error, first_at, next_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, coalesce($14::timestamptz, t.at), coalesce(t.at + $15::interval, 'infinity')
			FROM (SELECT {{schema}}.now() AS at OFFSET 0) t
			ON CONFLICT (consumer, topic, partition, "offset") DO NOTHING`),
		// Guards the queue behind a key against its own end, until the transaction ends.
		lockKey: r(`SELECT pg_advisory_xact_lock(hashtextextended('journeyman.inbox.' || $1 || '/' || $2, 0))`),
		bury: r(`
			INSERT INTO {{schema}}.inbox_dead (consumer, state, business_key, message_id, type, {{place}}, attempts, class, reason, error, first_at, died_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, coalesce($16::timestamptz, t.at), t.at
			FROM (SELECT {{schema}}.now() AS at OFFSET 0) t
			ON CONFLICT (consumer, topic, partition, "offset") DO NOTHING`),

		// Candidates only, no locks: take decides. By indexes inbox_retry_due and inbox_retry_key.
		due: r(`
			SELECT r.id FROM {{schema}}.inbox_retry r, (SELECT {{schema}}.now() AS at OFFSET 0) t
			WHERE r.consumer = $1 AND r.next_at <= t.at AND NOT (r.ordered AND EXISTS (
				SELECT 1 FROM {{schema}}.inbox_retry b WHERE b.consumer = r.consumer AND b.business_key = r.business_key AND b.ordered AND b.id < r.id))
			ORDER BY r.next_at, r.id LIMIT $2`),
		// Ours until the transaction ends, if it is still due and first of its key.
		take: r(`
			SELECT r.business_key, r.headers, r.body, r.topic, r.partition, r."offset", r.sent_at, r.attempts, r.first_at, r.scope IS NOT NULL FROM {{schema}}.inbox_retry r
			WHERE r.consumer = $1 AND r.id = $2 AND r.next_at <= {{schema}}.now() AND NOT (r.ordered AND EXISTS (
				SELECT 1 FROM {{schema}}.inbox_retry b WHERE b.consumer = r.consumer AND b.business_key = r.business_key AND b.ordered AND b.id < r.id))
			FOR UPDATE SKIP LOCKED`),
		again: r(`
			UPDATE {{schema}}.inbox_retry SET attempts = $3, last_error = $4, next_at = {{schema}}.now() + $5::interval
			WHERE consumer = $1 AND id = $2 AND attempts = $3 - 1`),
		// An attempt that does not count.
		rest: r(`
			UPDATE {{schema}}.inbox_retry SET last_error = $4, next_at = {{schema}}.now() + $5::interval
			WHERE consumer = $1 AND id = $2 AND attempts = $3`),
		done: r(`DELETE FROM {{schema}}.inbox_retry WHERE consumer = $1 AND id = $2`),
		next: r(`
			UPDATE {{schema}}.inbox_retry SET next_at = least(next_at, {{schema}}.now())
			WHERE consumer = $1 AND next_at = 'infinity' AND id = (
				SELECT min(id) FROM {{schema}}.inbox_retry WHERE consumer = $1 AND business_key = $2 AND ordered)`),
		// Should a message ever wait for nobody, it goes on within a minute.
		unstick: r(`
			UPDATE {{schema}}.inbox_retry r SET next_at = {{schema}}.now() WHERE r.consumer = $1 AND r.next_at = 'infinity' AND NOT EXISTS (
				SELECT 1 FROM {{schema}}.inbox_retry b WHERE b.consumer = r.consumer AND b.business_key = r.business_key AND b.ordered AND b.id < r.id)`),

		// At most $3 rows at a time, found by the BRIN index on processed_at (path rule 25).
		purge: r(`
			DELETE FROM {{schema}}.inbox WHERE ctid IN (
				SELECT ctid FROM {{schema}}.inbox WHERE consumer = $1 AND processed_at < {{schema}}.now() - $2::interval LIMIT $3)`),
		purgeLock: r(`SELECT pg_try_advisory_xact_lock(hashtextextended('journeyman.inbox.purge.{{schema}}.' || $1, 0))`),

		// For operators.
		waiting: r(`
			SELECT consumer, id, business_key, message_id, type, topic, partition, "offset", attempts, last_error, first_at, CASE WHEN next_at = 'infinity' THEN NULL ELSE next_at END
			FROM {{schema}}.inbox_retry WHERE $1 = '' OR consumer = $1 ORDER BY consumer, business_key, id LIMIT $2`),
		dead: r(`
			SELECT id, consumer, state, business_key, message_id, type, topic, partition, "offset", headers, body, attempts, class, reason, error, sent_at, first_at, died_at
			FROM {{schema}}.inbox_dead WHERE ($1 = '' OR consumer = $1) AND ($2 = 0 OR id = $2) ORDER BY id DESC LIMIT $3`),
		redrive: r(`
			WITH d AS (DELETE FROM {{schema}}.inbox_dead WHERE id = $1 RETURNING *)
			INSERT INTO {{schema}}.inbox_retry (consumer, business_key, message_id, type, ordered, {{place}}, attempts, last_error, first_at, next_at)
			SELECT consumer, business_key, message_id, type, true, {{place}}, 0, error, first_at, {{schema}}.now() FROM d`),
		drop: r(`DELETE FROM {{schema}}.inbox_dead WHERE id = $1`),
		counts: r(`
			SELECT (SELECT count(*) FROM {{schema}}.inbox_retry WHERE $1 = '' OR consumer = $1),
				(SELECT count(*) FROM {{schema}}.inbox_dead WHERE state = 'dead' AND ($1 = '' OR consumer = $1)),
				(SELECT count(*) FROM {{schema}}.inbox_dead WHERE state = 'parked' AND ($1 = '' OR consumer = $1))`),
	}
}
