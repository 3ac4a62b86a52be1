package dedup

import "strings"

// queries holds every statement of the package, rendered once for one schema.
type queries struct {
	usedBy                                                    string
	claim, read, readLocked, used                             string
	take, renew, release, called, late, notHappened, lockCall string
	askRefused, lateRefused                                   string
	payload, finish, refuse, rerun, answered, resumed         string
	revoke, revokeRow, found, undone, reopen, orphan          string
	expired, purge, lookup, list, counts                      string
	askDue, asked, asksOver, lead, unlead, progress           string
	dismiss, askFurther                                       string
	keepCheck, readCheck, purgeChecks, lateCounts             string
	beat, bye, openAttempts, alone, closeAttempt, dropAttempt string
	purgeAttempts, purgeProcesses                             string
}

func render(schema string) queries {
	r := func(sql string) string {
		sql = strings.ReplaceAll(sql, "{{columns}}", columns)
		sql = strings.ReplaceAll(sql, "{{job}}", `cluster = $3, job_key = $4, process_instance_key = $5, element_instance_key = $6, element_id = $7`)
		sql = strings.ReplaceAll(sql, "{{physical}}", `pg_catalog.clock_timestamp()`)
		return strings.ReplaceAll(sql, "{{schema}}", schema)
	}
	return queries{
		// Primary key. Waits for a twin's open transaction; no row = somebody else has it.
		claim: r(`INSERT INTO {{schema}}.operation (operation_id, tenant, business_key, job_type, saga_id, fingerprint, fingerprint_fields,
				state, effect, attempts, owner, lease_until, input, meta, cluster, job_key, process_instance_key, element_instance_key, element_id,
				undo_type, policy, called_at, created_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, CASE WHEN $10 = '' THEN NULL ELSE t.now + $11::interval END, $12, $13, $14, $15, $16, $17, $18,
				$19, $20, CASE WHEN $8 = 'calling' THEN t.now END, t.now
			FROM (SELECT {{schema}}.now() AS now) t
			ON CONFLICT (operation_id) DO NOTHING RETURNING fence`),
		// Index operation_instance.
		usedBy: r(`SELECT i.key, u.bytes FROM unnest($2::bigint[]) AS i (key) CROSS JOIN LATERAL (SELECT sum(o.bytes) AS bytes FROM {{schema}}.operation o
			WHERE o.cluster = $1 AND o.process_instance_key = i.key AND o.process_instance_key <> 0) u WHERE u.bytes IS NOT NULL`),
		read:       r(`SELECT {{columns}} FROM {{schema}}.operation o WHERE o.operation_id = $1`),
		readLocked: r(`SELECT {{columns}} FROM {{schema}}.operation o WHERE o.operation_id = $1 FOR UPDATE`),
		// Index operation_instance.
		used: r(`SELECT coalesce(sum(bytes), 0) FROM {{schema}}.operation WHERE cluster = $1 AND process_instance_key = $2 AND process_instance_key <> 0`),

		// Leases. Each is conditional on the state it expects and on the fence.
		take: r(`UPDATE {{schema}}.operation SET fence = fence + 1, owner = $8, lease_until = {{schema}}.now() + $9::interval, attempts = attempts + 1,
				{{job}}, meta = coalesce($10, meta), expires_at = NULL, asks_over_at = NULL,
				state = CASE WHEN state = 'claimed' AND $11 THEN 'calling' ELSE state END,
				effect = CASE WHEN state = 'claimed' AND $11 THEN 'maybe' ELSE effect END,
				called_at = CASE WHEN $11 THEN coalesce(called_at, {{schema}}.now()) ELSE called_at END
			WHERE operation_id = $1 AND fence = $2 AND state IN ('claimed', 'calling', 'called', 'undoing')
				AND (owner = '' OR lease_until IS NULL OR lease_until <= {{schema}}.now())
			RETURNING fence`),
		renew: r(`UPDATE {{schema}}.operation SET lease_until = {{schema}}.now() + $4::interval
			WHERE operation_id = $1 AND fence = $2 AND owner = $3 AND state IN ('calling', 'called', 'undoing')`),
		release: r(`UPDATE {{schema}}.operation SET owner = '', lease_until = {{schema}}.now() + $3::interval, reason = $4, message = $5
			WHERE operation_id = $1 AND fence = $2 AND state IN ('calling', 'called', 'undoing')`),
		progress: r(`UPDATE {{schema}}.operation SET message = $3 WHERE operation_id = $1 AND fence = $2 AND state = 'calling'`),
		called: r(`UPDATE {{schema}}.operation SET state = 'called', effect = 'known', call_result = $3, lease_until = {{schema}}.now() + $4::interval
			WHERE operation_id = $1 AND fence = $2 AND state = 'calling'`),
		// Path rule 11: the call came back after the undo had looked.
		late: r(`UPDATE {{schema}}.operation SET effect = 'known', call_result = $2, undone_at = NULL, ask_at = {{schema}}.now() + $3::interval,
				ask_from = {{schema}}.now(), ask_until = NULL, asks_over_at = NULL
			WHERE operation_id = $1 AND state = 'revoked' AND effect <> 'known'`),
		// The same, after a repeat of the call had been refused: the stored refusal stands. ask_from after settled_at tells it from an effect
		// whose own outcome is the refusal.
		lateRefused: r(`UPDATE {{schema}}.operation SET effect = 'known', call_result = $2, undone_at = NULL, ask_at = {{schema}}.now() + $3::interval,
				ask_from = {{schema}}.now(), ask_until = NULL, asks_over_at = NULL
			WHERE operation_id = $1 AND state = 'done' AND effect = 'none' AND class IN ('BUSINESS_ERROR', 'FATAL_ERROR')`),
		// The call came back after its lease had been taken over: whoever has it now goes on from the result, whatever it was about to find.
		resumed: r(`UPDATE {{schema}}.operation SET state = 'called', effect = 'known', call_result = $2, fence = fence + 1, owner = '', lease_until = {{schema}}.now(),
				expires_at = NULL, ask_at = NULL, asks_over_at = NULL
			WHERE operation_id = $1 AND state IN ('claimed', 'calling')`),
		notHappened: r(`UPDATE {{schema}}.operation SET state = 'claimed', effect = 'none', owner = '', lease_until = NULL, reason = $3, message = $4,
				expires_at = {{schema}}.now() + interval '90 days', ask_at = {{schema}}.now() + $5::interval,
				ask_from = CASE WHEN $5::interval IS NULL THEN ask_from ELSE {{schema}}.now() END, ask_until = NULL, asked = 0
			WHERE operation_id = $1 AND fence = $2 AND state = 'calling'`),
		lockCall: r(`SELECT 1 FROM {{schema}}.operation WHERE operation_id = $1 AND (fence = $2 OR $4) AND state = $3 FOR UPDATE`),

		payload: r(`UPDATE {{schema}}.operation SET payload = $2 WHERE operation_id = $1`),
		finish: r(`UPDATE {{schema}}.operation SET state = 'done', effect = $3, class = $4, reason = $5, code = $6, message = $7, variables = $8,
				result_hash = $9, bytes = $10, owner = '', lease_until = NULL, settled_at = {{schema}}.now(), expires_at = {{schema}}.now() + $11::interval,
				keep = $13::interval, answered_at = NULL, answered_job_key = 0, ask_at = NULL, ask_until = NULL
			WHERE operation_id = $1 AND (fence = $2 OR $12) AND state IN ('claimed', 'calling', 'called', 'undoing')`),
		// After finish, in its transaction: another call of the operation may land yet.
		askRefused: r(`UPDATE {{schema}}.operation SET ask_at = {{schema}}.now() + $2::interval, ask_from = {{schema}}.now(), asked = 0
			WHERE operation_id = $1 AND state = 'done' AND effect = 'none' AND class IN ('BUSINESS_ERROR', 'FATAL_ERROR')`),
		refuse: r(`UPDATE {{schema}}.operation SET state = 'undoing', class = $3, reason = $4, code = $5, message = $6, variables = $7, lease_until = {{schema}}.now() + $8::interval
			WHERE operation_id = $1 AND fence = $2 AND state = 'called'`),
		// Path rule 5: only the row that was seen, only once per acknowledged answer, and not while an effect that landed late is being undone.
		rerun: r(`UPDATE {{schema}}.operation SET fence = fence + 1, attempts = attempts + 1, operator_retries = operator_retries + 1, retried_at = {{schema}}.now(),
				{{job}}, meta = coalesce($8, meta), owner = $9, lease_until = CASE WHEN $9 = '' THEN NULL ELSE {{schema}}.now() + $10::interval END,
				state = CASE WHEN effect = 'known' THEN 'called' WHEN effect = 'maybe' OR $11 THEN 'calling' ELSE 'claimed' END,
				effect = CASE WHEN effect = 'none' AND $11 THEN 'maybe' ELSE effect END,
				called_at = CASE WHEN $11 THEN coalesce(called_at, {{schema}}.now()) ELSE called_at END,
				class = '', reason = '', code = '', message = '', variables = NULL, bytes = 0, answered_at = NULL, answered_job_key = 0,
				ask_at = NULL, ask_until = NULL, asks_over_at = NULL
			WHERE operation_id = $1 AND fence = $2 AND state = 'done' AND class IN ('BUSINESS_ERROR', 'FATAL_ERROR')
				AND NOT (effect = 'known' AND ask_at IS NOT NULL AND ask_from > settled_at)
				AND ($4::bigint = 0 OR answered_at IS NOT NULL AND answered_job_key = $4)
			RETURNING fence`),
		answered: r(`UPDATE {{schema}}.operation o SET answered_at = {{schema}}.now(), answered_job_key = a.job_key
			FROM unnest($1::text[], $2::bigint[]) AS a (operation_id, job_key)
			WHERE o.operation_id = a.operation_id AND o.state = 'done' AND o.class IN ('BUSINESS_ERROR', 'FATAL_ERROR')`),

		// Waits for a transactional twin by its lock, for others by the row.
		revoke: r(`INSERT INTO {{schema}}.operation (operation_id, tenant, business_key, job_type, saga_id, state, reason, created_at, settled_at, expires_at)
			SELECT $1, $2, $3, '', $4, 'revoked', $5, {{schema}}.now(), {{schema}}.now(), {{schema}}.now() + $6::interval
			FROM (SELECT ` + claimLock("", "$1") + ` OFFSET 0) claimed
			ON CONFLICT (operation_id) DO NOTHING RETURNING 1`),
		revokeRow: r(`UPDATE {{schema}}.operation SET state = 'revoked', fence = fence + 1, reason = $3,
				lease_until = CASE WHEN owner = '' AND NOT (effect = 'maybe' AND reason = 'unknown') THEN NULL ELSE lease_until END, owner = '',
				settled_at = coalesce(settled_at, {{schema}}.now()), expires_at = {{schema}}.now() + $4::interval
			WHERE operation_id = $1 AND fence = $2 AND state <> 'revoked'`),
		found: r(`UPDATE {{schema}}.operation SET effect = $3, call_result = coalesce($4, call_result), ask_at = {{schema}}.now() + $5::interval,
				ask_from = {{schema}}.now(), ask_until = NULL, asked = 0
			WHERE operation_id = $1 AND fence = $2 AND state = 'revoked' AND effect = 'maybe'`),
		undone: r(`UPDATE {{schema}}.operation SET undone_at = {{schema}}.now(), ask_at = NULL, orphan = CASE WHEN orphan = '' THEN '' ELSE 'undone' END
			WHERE operation_id = $1 AND undone_at IS NULL`),
		// The undo found nothing, and then the call landed: the same undo has something to do now.
		reopen: r(`DELETE FROM {{schema}}.operation WHERE operation_id = $1 AND state = 'done' AND reason = 'nothing'`),
		orphan: r(`UPDATE {{schema}}.operation SET orphan = $2, orphaned_at = coalesce(orphaned_at, {{schema}}.now())
			WHERE operation_id = $1 AND orphan <> 'undone'`),

		// Index operation_lease. The lease is taken in the same statement (path rule 16). Of a table without statistics a bound on both sides
		// counts as few rows, one on a single side as a third of all: then every sweep would read the whole table.
		expired: r(`WITH due AS (SELECT operation_id FROM {{schema}}.operation WHERE state IN ('calling', 'called', 'undoing') AND lease_until BETWEEN '-infinity' AND (SELECT {{schema}}.now())
				AND job_type = ANY ($1) AND cluster = $2 ORDER BY lease_until LIMIT $3 FOR UPDATE SKIP LOCKED)
			UPDATE {{schema}}.operation o SET fence = o.fence + 1, owner = $4, lease_until = {{schema}}.now() + $5::interval FROM due
			WHERE o.operation_id = due.operation_id RETURNING {{columns}}`),
		// Index operation_ask. Pushing ask_at out is the lease (path rule 11). Of an operation that has ended, refused ones are asked about, and
		// only what landed after the refusal is undone.
		askDue: r(`WITH due AS (SELECT operation_id FROM {{schema}}.operation WHERE ask_at BETWEEN '-infinity' AND (SELECT {{schema}}.now())
				AND (state IN ('revoked', 'claimed') OR (state = 'done' AND class IN ('BUSINESS_ERROR', 'FATAL_ERROR') AND (effect = 'none' OR ask_from > settled_at)))
				AND job_type = ANY ($1) AND cluster = $2 ORDER BY ask_at LIMIT $3 FOR UPDATE SKIP LOCKED)
			UPDATE {{schema}}.operation o SET ask_at = {{schema}}.now() + $4::interval FROM due WHERE o.operation_id = due.operation_id RETURNING {{columns}}`),
		asked: r(`UPDATE {{schema}}.operation SET asked = asked + $2, ask_at = {{schema}}.now() + $3::interval
			WHERE operation_id = $1 AND ask_at IS NOT NULL AND state IN ('revoked', 'claimed', 'done')`),
		asksOver: r(`UPDATE {{schema}}.operation SET asked = asked + $2, ask_at = NULL, ask_until = NULL, asks_over_at = {{schema}}.now(), dismissed_at = NULL,
				expires_at = greatest(expires_at, {{schema}}.now() + $3::interval)
			WHERE operation_id = $1 AND ask_at IS NOT NULL AND state IN ('revoked', 'claimed', 'done') AND effect <> 'known'`),
		// What people do about a call that was never seen: only what was seen of it ($2), once.
		dismiss: r(`UPDATE {{schema}}.operation SET dismissed_at = {{schema}}.now()
			WHERE operation_id = $1 AND asks_over_at = $2 AND dismissed_at IS NULL AND ask_at IS NULL AND state IN ('revoked', 'claimed', 'done') AND effect <> 'known'
			RETURNING dismissed_at`),
		askFurther: r(`UPDATE {{schema}}.operation SET ask_at = t.now, ask_from = t.now, ask_until = t.now + $3::interval, asks_over_at = NULL, dismissed_at = NULL
			FROM (SELECT {{schema}}.now() AS now) t
			WHERE operation_id = $1 AND asks_over_at = $2 AND ask_at IS NULL AND slimmed_at IS NULL AND state IN ('revoked', 'claimed', 'done') AND effect <> 'known'
			RETURNING ask_until`),
		// Indexes operation_ask, operation_odd.
		lateCounts: r(`SELECT (SELECT count(*) FROM {{schema}}.operation WHERE ask_at BETWEEN '-infinity' AND 'infinity'),
				(SELECT count(*) FROM {{schema}}.operation WHERE asks_over_at BETWEEN '-infinity' AND 'infinity' AND dismissed_at IS NULL)`),
		// Index operation_expires, read on from where the pass before ended. Rows that somebody has locked, or that something points
		// to, are left for the next round. A money operation is slimmed first (spec D3).
		purge: r(`WITH c AS MATERIALIZED (SELECT o.operation_id, o.expires_at FROM {{schema}}.operation o
				WHERE o.expires_at <= (SELECT {{schema}}.now()) AND (o.expires_at, o.operation_id) > ($2::timestamptz, $3::text)
				ORDER BY o.expires_at, o.operation_id LIMIT $1),
			v AS MATERIALIZED (SELECT o.operation_id, o.keep IS NOT NULL AND o.slimmed_at IS NULL AS slim FROM {{schema}}.operation o
				WHERE o.operation_id = ANY (ARRAY(SELECT c.operation_id FROM c)) AND o.expires_at <= {{schema}}.now()
				AND o.state IN ('done', 'revoked', 'claimed') AND o.orphan IN ('', 'undone')
				AND (o.ask_at IS NULL OR o.ask_at < {{schema}}.now() - interval '30 days') {{unless}} FOR UPDATE SKIP LOCKED),
			slim AS (UPDATE {{schema}}.operation o SET slimmed_at = {{schema}}.now(), expires_at = greatest(coalesce(o.settled_at, o.created_at) + o.keep, {{schema}}.now() + interval '1 day'),
				input = NULL, meta = NULL, variables = NULL, call_result = NULL, payload = NULL, message = ''
				WHERE o.operation_id = ANY (ARRAY(SELECT v.operation_id FROM v WHERE v.slim)) RETURNING 1),
			gone AS (DELETE FROM {{schema}}.operation o WHERE o.operation_id = ANY (ARRAY(SELECT v.operation_id FROM v WHERE NOT v.slim)) RETURNING 1)
			SELECT (SELECT count(*) FROM c), (SELECT count(*) FROM slim), (SELECT count(*) FROM gone), l.expires_at, l.operation_id
			FROM (SELECT 1) one LEFT JOIN (SELECT c.expires_at, c.operation_id FROM c ORDER BY c.expires_at DESC, c.operation_id DESC LIMIT 1) l ON true`),
		keepCheck: r(`INSERT INTO {{schema}}.claim_check (id, operation_id, sum, body, created_at, expires_at)
			VALUES ($1, $2, $3, $4, {{schema}}.now(), {{schema}}.now() + $5::interval)
			ON CONFLICT (id) DO UPDATE SET expires_at = greatest(claim_check.expires_at, excluded.expires_at) WHERE claim_check.sum = excluded.sum RETURNING 1`),
		readCheck: r(`SELECT c.sum, c.body FROM {{schema}}.claim_check c WHERE c.id = $1`),
		// Index claim_check_expires.
		purgeChecks: r(`DELETE FROM {{schema}}.claim_check WHERE id = ANY (ARRAY(SELECT c.id FROM {{schema}}.claim_check c WHERE c.expires_at <= (SELECT {{schema}}.now())
			ORDER BY c.expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))`),
		lead:   r(`SELECT pg_try_advisory_lock(hashtextextended('journeyman.dedup.purge {{schema}}', 0))`),
		unlead: r(`SELECT pg_advisory_unlock(hashtextextended('journeyman.dedup.purge {{schema}}', 0))`),
		lookup: r(`SELECT {{columns}} FROM {{schema}}.operation o WHERE o.operation_id = $1`),
		list: r(`SELECT {{columns}} FROM {{schema}}.operation o
			WHERE ($1 = '' OR (CASE $1 WHEN 'unknown' THEN o.effect = 'maybe' AND ((o.state = 'calling' AND o.reason = 'unknown') OR o.state = 'done')
					WHEN 'leased' THEN o.state IN ('calling', 'called', 'undoing')
					WHEN 'revoked' THEN o.state = 'revoked'
					WHEN 'orphans' THEN o.orphan <> ''
					WHEN 'asked' THEN o.ask_at IS NOT NULL
					WHEN 'asks-over' THEN o.asks_over_at IS NOT NULL AND o.dismissed_at IS NULL
					WHEN 'undo' THEN o.operation_id LIKE '%:undo' AND o.state <> 'done'
					WHEN 'undo-stuck' THEN o.operation_id LIKE '%:undo' AND (o.class = 'FATAL_ERROR' OR o.attempts > 3) AND NOT (o.state = 'done' AND o.class = 'SUCCESS')
					ELSE false END))
				AND ($2 = '' OR o.saga_id = $2) ORDER BY o.created_at DESC LIMIT $3`),
		counts: r(`SELECT count(*) FILTER (WHERE state IN ('calling', 'called', 'undoing')),
				count(*) FILTER (WHERE (state = 'calling' AND reason = 'unknown') OR (state = 'done' AND effect = 'maybe')),
				count(*) FILTER (WHERE state = 'revoked'), count(*) FILTER (WHERE orphan <> ''), count(*) FILTER (WHERE orphan IN ('open', 'parked')),
				count(*) FILTER (WHERE operation_id LIKE '%:undo' AND state <> 'done'), count(*) FILTER (WHERE operation_id LIKE '%:undo' AND class = 'FATAL_ERROR')
			FROM {{schema}}.operation`),

		beat: r(`INSERT INTO {{schema}}.worker_process AS p (id, name, seen_at) VALUES ($1, $2, {{physical}})
			ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`),
		bye: r(`DELETE FROM {{schema}}.worker_process WHERE id = $1`),
		// One statement per activated batch (path rule 7), which is its transaction. Counts what dead processes left open.
		openAttempts: r(`WITH incoming AS (SELECT * FROM unnest($3::bigint[], $4::text[]) AS i (job_key, operation_id)),
				t AS (SELECT {{schema}}.now() AS now, set_config('synchronous_commit', 'off', true) AS later),
				mine AS (INSERT INTO {{schema}}.operation_attempt AS a (cluster, job_key, process, operation_id, open, opened_at)
					SELECT $1, job_key, $2, operation_id, true, t.now FROM t, incoming
					ON CONFLICT (cluster, job_key, process) DO UPDATE SET open = true, alone = false, runs = a.runs + 1, opened_at = excluded.opened_at)
			SELECT i.job_key, o.runs, o.deaths, o.alone, t.now FROM t, incoming i CROSS JOIN LATERAL (
				SELECT coalesce(sum(a.runs), 0) AS runs, count(*) FILTER (WHERE a.open AND dead.yes) AS deaths, count(*) FILTER (WHERE a.open AND a.alone AND dead.yes) AS alone
				FROM {{schema}}.operation_attempt a CROSS JOIN LATERAL (SELECT a.process <> $2 AND NOT EXISTS (SELECT 1 FROM {{schema}}.worker_process p
					WHERE p.id = a.process AND p.seen_at > {{physical}} - $5::interval) AS yes OFFSET 0) dead
				WHERE a.cluster = $1 AND a.job_key = i.job_key) o`),
		alone:          r(`UPDATE {{schema}}.operation_attempt SET alone = true WHERE cluster = $1 AND job_key = $2 AND process = $3`),
		closeAttempt:   r(`UPDATE {{schema}}.operation_attempt SET open = false, alone = false WHERE cluster = $1 AND job_key = $2 AND process = $3`),
		dropAttempt:    r(`DELETE FROM {{schema}}.operation_attempt WHERE cluster = $1 AND job_key = $2`),
		purgeAttempts:  r(`DELETE FROM {{schema}}.operation_attempt WHERE ctid IN (SELECT ctid FROM {{schema}}.operation_attempt WHERE opened_at < {{schema}}.now() - $1::interval LIMIT $2)`),
		purgeProcesses: r(`DELETE FROM {{schema}}.worker_process WHERE seen_at < {{physical}} - $1::interval`),
	}
}
