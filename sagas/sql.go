package sagas

import (
	"fmt"
	"strings"
)

// statements of the domain database, rendered once with its schema.
type domainSQL struct {
	// Gate: advisory locks of the transaction, so that a step writes nothing to take them. The state is read by
	// a statement of its own: it must see what the holder of the lock committed while we waited.
	lockShared, lockExclusive, readGate string

	insertSaga, readSaga, begin, decide, setState, closeSaga, now                     string
	insertStep, stepUndone, setUndo, steps, openSteps, failure                        string
	parkStep, parked, pivot, remediate, inFlight, orphan, orphans                     string
	list, stuck, stuckUntold, tellStuck, risk, abandoned, overdue, timeline, keepOpen string
	breaches, tellBreach, countOpen, countStuck                                       string
}

const sagaColumns = `s.id, s.tenant, s.type, s.key, s.attempt, s.business_key, s.correlation_id, s.traceparent, s.actor, s.variables,
	coalesce(s.cluster, ''), coalesce(s.process_instance_key, 0), coalesce(s.decision, ''), s.reason, s.state,
	s.started_at, s.deadline, s.begun_at, s.decided_at, s.closed_at`

const stepColumns = `t.operation_id, t.saga_id, t.name, t.job_type, t.element_id, t.class, t.code, t.undo_type, t.policy, t.pivot, t.amount,
	t.commit_order, t.committed_at, t.undo_state, t.undo_attempts, t.undo_error, t.undo_at`

// stuckWhy is the reason why a saga counts as stuck, NULL for none.
const stuckWhy = `CASE WHEN s.begun_at IS NULL AND s.started_at < {{schema}}.now() - $1::interval THEN 'not begun'
					WHEN EXISTS (SELECT 1 FROM {{schema}}.saga_step t WHERE t.saga_id = s.id AND t.undo_state = 'stuck') THEN 'undo stuck'
					WHEN s.decision IS NULL AND s.deadline < {{schema}}.now() - $1::interval THEN 'past its deadline without a decision'
					WHEN s.decision = 'completed' AND s.deadline < {{schema}}.now() - $1::interval THEN 'past its deadline, completed but not closed'
					WHEN s.state = 'compensating' AND s.decided_at < {{schema}}.now() - $2::interval THEN 'undo takes too long' END`

// seq is outbox.Stager.SeqSQL: the turn of a business key that the transaction holds locked.
func renderDomain(schema, seq string) domainSQL {
	r := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return domainSQL{
		lockShared:    r(`SELECT pg_advisory_xact_lock_shared(hashtextextended('{{schema}}.saga.' || $1, 0))`),
		lockExclusive: r(`SELECT pg_advisory_xact_lock(hashtextextended('{{schema}}.saga.' || $1, 0))`),
		readGate: r(`SELECT coalesce(decision, ''), closed_at IS NOT NULL, coalesce(cluster, ''), coalesce(process_instance_key, 0), business_key
			FROM {{schema}}.saga WHERE id = $1`),
		// Primary key; waits for a twin that starts the same attempt.
		insertSaga: r(`INSERT INTO {{schema}}.saga AS s (id, tenant, type, key, attempt, business_key, correlation_id, traceparent, actor, variables, state, started_at, deadline)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'starting', coalesce($11, {{schema}}.now()), coalesce($11, {{schema}}.now()) + $12::interval)
			ON CONFLICT (id) DO NOTHING RETURNING ` + sagaColumns + `, {{schema}}.now()`),
		readSaga: r(`SELECT ` + sagaColumns + ` FROM {{schema}}.saga s WHERE s.id = $1`),
		// Binds once: another instance finds the row bound and updates nothing.
		begin: r(`UPDATE {{schema}}.saga SET cluster = $2, process_instance_key = $3, begun_at = coalesce(begun_at, {{schema}}.now()),
				state = CASE WHEN state = 'starting' THEN 'running' ELSE state END
			WHERE id = $1 AND closed_at IS NULL AND ($4 OR process_instance_key IS NULL OR (process_instance_key = $3 AND cluster = $2))`),
		// From NULL only: exactly one of completion, expiry, cancel and failure wins (path rule 10). $4 is false in real builds.
		decide: r(`UPDATE {{schema}}.saga SET decision = $2, reason = $3, decided_at = {{schema}}.now(),
				state = CASE WHEN $2 = 'completed' THEN state ELSE 'compensating' END
			WHERE id = $1 AND (decision IS NULL OR $4) AND closed_at IS NULL`),
		setState:  r(`UPDATE {{schema}}.saga SET state = $2 WHERE id = $1 AND closed_at IS NULL AND decision IS NOT NULL`),
		closeSaga: r(`UPDATE {{schema}}.saga SET state = $2, reason = $3, closed_at = $4 WHERE id = $1 AND closed_at IS NULL`),
		now:       r(`SELECT {{schema}}.now()`),

		// A refusal that an operator had run afresh (path rule 5) is replaced; a success never is.
		insertStep: r(`INSERT INTO {{schema}}.saga_step AS t (operation_id, saga_id, name, job_type, element_id, class, code, undo_type, policy, pivot, amount,
				commit_order, committed_at, undo_state)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, coalesce(` + fmt.Sprintf(seq, 12) + `, 0), {{schema}}.now(), $13)
			ON CONFLICT (operation_id) DO UPDATE SET class = EXCLUDED.class, code = EXCLUDED.code, undo_type = EXCLUDED.undo_type, policy = EXCLUDED.policy,
				pivot = EXCLUDED.pivot, amount = EXCLUDED.amount, commit_order = EXCLUDED.commit_order, committed_at = EXCLUDED.committed_at, undo_state = EXCLUDED.undo_state
			WHERE t.class <> 'SUCCESS'`),
		// Inserts when the effect was found by asking the other system: its step never committed.
		stepUndone: r(`INSERT INTO {{schema}}.saga_step AS t (operation_id, saga_id, name, job_type, element_id, class, commit_order, committed_at, undo_state, undo_at)
			VALUES ($1, $2, $3, '', $4, 'SUCCESS', 0, {{schema}}.now(), 'done', {{schema}}.now())
			ON CONFLICT (operation_id) DO UPDATE SET undo_state = 'done', undo_error = '', undo_at = {{schema}}.now() WHERE t.undo_state <> 'done'`),
		setUndo: r(`UPDATE {{schema}}.saga_step SET undo_state = $2, undo_error = $3, undo_attempts = undo_attempts + $4, undo_at = {{schema}}.now()
			WHERE operation_id = $1 AND undo_state NOT IN ('done', 'none')`),
		parkStep: r(`INSERT INTO {{schema}}.saga_step AS t (operation_id, saga_id, name, job_type, element_id, class, commit_order, committed_at, undo_state, undo_error, undo_at)
			VALUES ($1, $2, $3, '', $3, 'SUCCESS', 0, {{schema}}.now(), 'parked', $4, {{schema}}.now())
			ON CONFLICT (operation_id) DO UPDATE SET undo_state = 'parked', undo_error = $4, undo_at = {{schema}}.now() WHERE t.undo_state <> 'done'`),
		parked:    r(`SELECT count(*) FROM {{schema}}.saga_step WHERE saga_id = $1 AND undo_state = 'parked'`),
		pivot:     r(`SELECT coalesce(max(name), '') FROM {{schema}}.saga_step WHERE saga_id = $1 AND pivot AND class = 'SUCCESS'`),
		remediate: r(`UPDATE {{schema}}.saga_step SET undo_state = 'remediated', undo_at = {{schema}}.now() WHERE saga_id = $1 AND undo_state = 'parked'`),
		keepOpen:  r(`EXISTS (SELECT 1 FROM {{schema}}.saga s WHERE s.id = o.saga_id AND s.closed_at IS NULL)`), // a condition on operation o, for package dedup
		orphan:    r(`UPDATE {{schema}}.saga_step SET orphan = true WHERE operation_id = $1 AND undo_state = 'open'`),
		// Index saga_step_undo.
		orphans: r(`SELECT ` + stepColumns + ` FROM {{schema}}.saga_step t WHERE t.orphan AND t.undo_state IN ('open', 'running')
				AND (t.undo_at IS NULL OR t.undo_at < {{schema}}.now() - interval '10 s') ORDER BY t.committed_at LIMIT $1`),
		// Index operation_saga of package dedup, whose condition is repeated: of a parameter alone the planner does not know that it holds.
		// What may have an effect that no ledger row shows: calls that were not settled, refusals and
		// revocations behind which an effect may stand. Undo operations are covered by their forward one; the machinery has no effect.
		inFlight: r(`SELECT operation_id, job_type FROM {{schema}}.operation WHERE saga_id = $1 AND saga_id <> '' AND job_type NOT LIKE 'saga.%' AND operation_id NOT LIKE '%:undo' AND undone_at IS NULL
				AND (state IN ('claimed', 'calling', 'called', 'undoing') OR (effect <> 'none' AND (state = 'revoked' OR (state = 'done' AND class <> 'SUCCESS'))))
			ORDER BY created_at DESC, operation_id DESC`),
		steps: r(`SELECT ` + stepColumns + ` FROM {{schema}}.saga_step t WHERE t.saga_id = $1 ORDER BY t.commit_order, t.committed_at`),
		openSteps: r(`SELECT ` + stepColumns + ` FROM {{schema}}.saga_step t WHERE t.saga_id = $1 AND t.class = 'SUCCESS' AND t.undo_state IN ('open', 'running', 'stuck')
			ORDER BY t.commit_order DESC`),
		failure: r(`SELECT t.code FROM {{schema}}.saga_step t WHERE t.saga_id = $1 AND t.class = 'BUSINESS_ERROR' ORDER BY t.commit_order DESC LIMIT 1`),

		list: r(`SELECT ` + sagaColumns + `, (SELECT count(*) FROM {{schema}}.saga_step t WHERE t.saga_id = s.id AND t.class = 'SUCCESS'),
				(SELECT coalesce(max(t.name), '') FROM {{schema}}.saga_step t WHERE t.saga_id = s.id AND t.commit_order = (SELECT max(u.commit_order) FROM {{schema}}.saga_step u WHERE u.saga_id = s.id))
			FROM {{schema}}.saga s
			WHERE ($1 = '' OR s.tenant = $1) AND ($2 = '' OR s.type = $2) AND ($3 = '' OR s.state = $3) AND ($4 = '' OR s.business_key = $4)
				AND (NOT $5 OR s.closed_at IS NULL) AND ($6 = '' OR (s.started_at, s.id) < (SELECT b.started_at, b.id FROM {{schema}}.saga b WHERE b.id = $6))
			ORDER BY s.started_at DESC, s.id DESC LIMIT $7`),
		// Index saga_open: only what is not closed is looked at.
		stuck: r(`SELECT ` + sagaColumns + `,
				` + stuckWhy + ` AS why
			FROM {{schema}}.saga s WHERE s.closed_at IS NULL AND (
				(s.begun_at IS NULL AND s.started_at < {{schema}}.now() - $1::interval)
				OR EXISTS (SELECT 1 FROM {{schema}}.saga_step t WHERE t.saga_id = s.id AND t.undo_state = 'stuck')
				OR (coalesce(s.decision, 'completed') = 'completed' AND s.deadline < {{schema}}.now() - $1::interval)
				OR (s.state = 'compensating' AND s.decided_at < {{schema}}.now() - $2::interval))
			ORDER BY s.started_at LIMIT $3`),
		// Index saga_open.
		stuckUntold: r(`SELECT id, why FROM (SELECT s.id, s.started_at, s.stuck_told, ` + stuckWhy + ` AS why FROM {{schema}}.saga s WHERE s.closed_at IS NULL) q
			WHERE why IS NOT NULL AND why <> stuck_told ORDER BY started_at LIMIT $3`),
		tellStuck: r(`UPDATE {{schema}}.saga SET stuck_told = $2 WHERE id = $1 AND closed_at IS NULL AND stuck_told <> $2`),
		// Indexes saga_open, and operation_saga of package dedup: only what has not ended is looked at. $1: only what was not told.
		breaches: r(`WITH t AS (SELECT {{schema}}.now() AS now), o AS (SELECT s.* FROM {{schema}}.saga s WHERE s.closed_at IS NULL)
			SELECT id, type, tenant, what, operation_id, job_type, due FROM (
				SELECT o.id, o.type, o.tenant, 'operation' AS what, '' AS operation_id, '' AS job_type, o.started_at + l.sla AS due, 'operation' AS told, o.sla_told
					FROM o JOIN unnest($2::text[], $3::interval[]) AS l (type, sla) ON l.type = o.type
				UNION ALL SELECT o.id, o.type, o.tenant, 'deadline', '', '', o.deadline, 'deadline', o.sla_told FROM o
				UNION ALL SELECT o.id, o.type, o.tenant, 'manual', '', '', o.decided_at + $7::interval, 'manual', o.sla_told FROM o WHERE o.state = 'manual'
				UNION ALL SELECT o.id, o.type, o.tenant, 'step', p.operation_id, p.job_type, p.created_at + l.sla, 'step:' || p.operation_id, o.sla_told
					FROM o JOIN {{schema}}.operation p ON p.saga_id = o.id AND p.saga_id <> '' AND p.state IN ('claimed', 'calling', 'called')
					JOIN unnest($4::text[], $5::text[], $6::interval[]) AS l (type, job_type, sla) ON l.type = o.type AND l.job_type = p.job_type) q, t
			WHERE q.due < t.now AND NOT ($1 AND q.told = ANY (q.sla_told)) ORDER BY q.due LIMIT $8`),
		tellBreach: r(`UPDATE {{schema}}.saga SET sla_told = sla_told || $2::text WHERE id = $1 AND closed_at IS NULL AND NOT ($2 = ANY (sla_told))`),
		countOpen:  r(`SELECT type, state, count(*) FROM {{schema}}.saga WHERE closed_at IS NULL GROUP BY type, state`),
		countStuck: r(`SELECT type, why, count(*) FROM (SELECT s.type, ` + stuckWhy + ` AS why FROM {{schema}}.saga s WHERE s.closed_at IS NULL) q WHERE why IS NOT NULL GROUP BY type, why`),
		// Index saga_step_undo.
		risk: r(`SELECT ` + stepColumns + ` FROM {{schema}}.saga_step t WHERE t.undo_state IN ('running', 'parked', 'stuck') ORDER BY t.committed_at LIMIT $1`),
		// Index saga_open: begun and not closed; the sweep asks the engine about their instances, each every half minute by one process.
		overdue: r(`WITH d AS (SELECT o.id FROM {{schema}}.saga o WHERE o.closed_at IS NULL AND o.begun_at < {{schema}}.now() - $1::interval
				AND coalesce(o.checked_at, o.begun_at) <= {{schema}}.now() - least($1::interval, interval '30 s') ORDER BY o.checked_at NULLS FIRST LIMIT $2 FOR UPDATE SKIP LOCKED)
			UPDATE {{schema}}.saga s SET checked_at = {{schema}}.now() FROM d WHERE s.id = d.id RETURNING ` + sagaColumns),
		// Of bodies that are encrypted or in another format only what is in the row is shown. By business key: the log by the index of each day that is over and by time of today, the outbox by shard.
		timeline: r(`SELECT e.event_id::text, e.type, e.occurred_at, e.seq, e.operation_id, CASE WHEN substring(e.body FROM 1 FOR 1) = '{' THEN convert_from(e.body, 'UTF8')::jsonb -> 'data' END, e.published FROM (
				SELECT event_id, type, occurred_at, seq, operation_id, body, true AS published FROM {{schema}}.event_log WHERE business_key = $1 AND logged_at >= $2
				UNION ALL SELECT event_id, type, occurred_at, seq, operation_id, body, false FROM {{schema}}.outbox WHERE business_key = $1 AND shard = $4
				UNION ALL SELECT event_id, type, occurred_at, seq, operation_id, body, false FROM {{schema}}.outbox_parked WHERE business_key = $1) e
			WHERE e.operation_id = $3 OR starts_with(e.operation_id, $3 || ':') ORDER BY e.seq`),
		// Index saga_open: not begun and past the deadline; nobody but us will end them.
		abandoned: r(`SELECT s.id FROM {{schema}}.saga s WHERE s.closed_at IS NULL AND s.begun_at IS NULL AND s.deadline < (SELECT {{schema}}.now()) ORDER BY s.deadline LIMIT $1`),
	}
}

// statements of the record store, rendered once with its schema.
type recordSQL struct {
	claim, read, readByID, retry string
	due, started, startFailed    string
	insertKey, insertRecord      string
	progress, polls              string
	poll, look                   string
	pollForget, pollPurge        string

	// Retention. The statements with a {{partition}} are rendered once more for each.
	lead, unlead, now, tombstone, tombstoneByID  string
	archivable, archived, remove, removeMoney    string
	partitionThere, oldPartitions, makePartition string
	lockPartition, partitionEmpty, dropPartition string
}

const recordColumns = `r.operation_id, r.tenant, r.type, r.key, r.internal_key, r.attempt, coalesce(r.previous, ''), coalesce(r.next, ''), r.business_key, r.plan, r.origin,
	r.state, r.started_at, r.timeout_at, r.estimated_at, r.finished_at, coalesce(r.expires_at < {{schema}}.now(), false), r.last_progress_event_id, r.sequence,
	r.phase, r.steps, r.completed, r.partial, r.final, r.polls, r.start_state, {{schema}}.now()`

// pollAgain is for an operation that was polled before. $3 is the cadence, $4 the gap.
const pollAgain = `ON CONFLICT (operation_id) DO UPDATE SET answered = p.answered + 1, last_at = EXCLUDED.last_at, early = EXCLUDED.last_at < p.not_before,
			not_before = EXCLUDED.last_at + ($3::interval[])[least(p.answered + 2, cardinality($3::interval[]))]
		WHERE p.last_at <= EXCLUDED.last_at - $4::interval RETURNING p.operation_id, p.answered, p.early`

const newRecord = `INSERT INTO {{schema}}.record (operation_id, started_on, tenant, type, key, internal_key, attempt, previous, business_key, plan, origin,
		state, started_at, timeout_at, estimated_at, steps, partial, start_state, start_next_at)`

func renderRecords(schema string) recordSQL {
	r := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return recordSQL{
		// Key and record in one statement: there is no state between "no such key" and "in progress" (no 409 for ever).
		// Waits for a twin on the primary key of record_key.
		claim: r(`WITH t AS MATERIALIZED (SELECT {{schema}}.now() AS now),
			k AS (INSERT INTO {{schema}}.record_key (tenant, type, key, fingerprint, attempt, operation_id) VALUES ($2, $3, $4, $5, 1, $1) ON CONFLICT DO NOTHING RETURNING 1)
			` + newRecord + ` SELECT $1, (t.now AT TIME ZONE 'UTC')::date, $2, $3, $4, $4, 1, NULL, $6, $7, $8, 'in_progress', t.now, t.now + $9::interval, t.now + $10::interval, $11, $12, 'pending', t.now + $13::interval
			FROM t, k`),
		read: r(`SELECT ` + recordColumns + `, k.fingerprint FROM {{schema}}.record_key k JOIN {{schema}}.record r ON r.operation_id = k.operation_id
			WHERE k.tenant = $1 AND k.type = $2 AND k.key = $3`),
		readByID: r(`SELECT ` + recordColumns + `, ''::bytea FROM {{schema}}.record r WHERE r.operation_id = $1`),
		// Moves the key to the next attempt only from the attempt the caller saw, and only when that one ended undone and is within its retention.
		retry: r(`WITH t AS MATERIALIZED (SELECT {{schema}}.now() AS now),
			k AS (UPDATE {{schema}}.record_key k SET attempt = k.attempt + 1, operation_id = $1 WHERE k.tenant = $2 AND k.type = $3 AND k.key = $4 AND k.operation_id = $14 AND k.deleted_at IS NULL
				AND EXISTS (SELECT 1 FROM {{schema}}.record o WHERE o.operation_id = $14 AND o.state IN ('failed', 'expired') AND o.archived_at IS NULL AND o.expires_at >= {{schema}}.now()) RETURNING k.attempt),
			o AS (UPDATE {{schema}}.record o SET next = $1 FROM k WHERE o.operation_id = $14 RETURNING 1)
			` + newRecord + ` SELECT $1, (t.now AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, k.attempt, $14, $6, $7, $8, 'in_progress', t.now, t.now + $9::interval, t.now + $10::interval, $11, $12, 'pending', t.now + $13::interval
			FROM t, k`),
		// Index record_start. The lease is start_next_at itself; another sweep skips what is locked.
		due: r(`WITH d AS (SELECT r.operation_id, r.started_on FROM {{schema}}.record r WHERE r.start_state = 'pending' AND r.start_next_at <= (SELECT {{schema}}.now())
				ORDER BY r.start_next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
			UPDATE {{schema}}.record r SET start_attempts = r.start_attempts + 1, start_next_at = {{schema}}.now() + least(interval '5 s' * (r.start_attempts + 1), interval '1 min')
			FROM d WHERE r.operation_id = d.operation_id AND r.started_on = d.started_on AND r.start_state = 'pending' RETURNING ` + recordColumns + `, ''::bytea`),
		started:     r(`UPDATE {{schema}}.record SET start_state = 'started', start_error = '' WHERE operation_id = $1 AND start_state = 'pending'`),
		startFailed: r(`UPDATE {{schema}}.record SET start_error = $2 WHERE operation_id = $1 AND start_state = 'pending'`),
		// For operations that another saga started: their record comes with the event.
		insertKey: r(`INSERT INTO {{schema}}.record_key (tenant, type, key, fingerprint, attempt, operation_id) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`),
		insertRecord: r(newRecord + ` SELECT $1, ($12::timestamptz AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, $6, NULL, $7, $8, $9, 'in_progress', $12, $13, $14, $10, $11, 'started', $12
			WHERE EXISTS (SELECT 1 FROM {{schema}}.record_key k WHERE k.operation_id = $1 AND k.deleted_at IS NULL) ON CONFLICT DO NOTHING`),
		// Only forward in sequence and never out of a final state. The digest is that of the clear answer, however it rests.
		progress: r(`UPDATE {{schema}}.record SET last_progress_event_id = $2, sequence = $3, start_state = 'started',
				phase = CASE WHEN $4 = '' THEN phase WHEN $4 = 'failed' THEN CASE WHEN phase = 'forward' THEN 'manual' ELSE phase END ELSE $4 END,
				completed = CASE WHEN $5 = '' OR $5 = ANY (completed) THEN completed ELSE completed || $5::text END,
				partial = CASE WHEN $6 = '' THEN partial ELSE partial || jsonb_build_object($6::text, $7::jsonb) END,
				state = CASE WHEN $8 = '' THEN state ELSE $8 END, final = coalesce(final, $9), finished_at = coalesce(finished_at, $10), expires_at = coalesce(expires_at, $10 + $11::interval),
				result_sha256 = coalesce(result_sha256, $12)
			WHERE operation_id = $1 AND state = 'in_progress' AND $3 > sequence RETURNING polls, started_at, key`),
		polls: r(`UPDATE {{schema}}.record r SET polls = r.polls + p.polls, polling_violations = r.polling_violations + p.violations
			FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS p (operation_id, polls, violations) WHERE r.operation_id = p.operation_id`),

		// Whoever is second within the gap updates nothing, in whichever process it runs. In the order of the ids: two that poll the same
		// operations wait for each other, and never crosswise. Unlogged, so no disk.
		poll: r(`INSERT INTO {{schema}}.record_poll AS p (operation_id, answered, last_at, not_before, early)
			SELECT q.id, 1, t.now, t.now + ($3::interval[])[2], t.now < q.started_at + ($3::interval[])[1]
				FROM unnest($1::text[], $2::timestamptz[]) AS q (id, started_at), (SELECT {{schema}}.now() AS now OFFSET 0) t ORDER BY q.id ` + pollAgain),
		// Reads running operations of their tenants without plan and origin, and polls them.
		look: r(`WITH t AS MATERIALIZED (SELECT {{schema}}.now() AS now),
			r AS MATERIALIZED (SELECT r.* FROM unnest($1::text[], $2::text[]) AS q (id, tenant) JOIN {{schema}}.record r ON r.operation_id = q.id AND r.tenant = q.tenant),
			p AS (INSERT INTO {{schema}}.record_poll AS p (operation_id, answered, last_at, not_before, early)
				SELECT r.operation_id, 1, t.now, t.now + ($3::interval[])[2], t.now < r.started_at + ($3::interval[])[1] FROM r, t WHERE r.state = 'in_progress' ORDER BY r.operation_id ` + pollAgain + `)
			SELECT ` + strings.Replace(recordColumns, "r.plan, r.origin", "'{}'::jsonb, '{}'::jsonb", 1) + `, ''::bytea, coalesce(p.answered, 0), coalesce(p.early, true)
			FROM r LEFT JOIN p ON p.operation_id = r.operation_id`),
		pollForget: r(`DELETE FROM {{schema}}.record_poll WHERE operation_id = $1`),
		// A poll that raced with the end may have left its row.
		pollPurge: r(`DELETE FROM {{schema}}.record_poll WHERE operation_id IN (SELECT operation_id FROM {{schema}}.record_poll WHERE last_at < {{schema}}.now() - interval '1 day' LIMIT $1)`),

		lead:   r(`SELECT pg_try_advisory_lock(hashtextextended('{{schema}}.retention', 0))`),
		unlead: r(`SELECT pg_advisory_unlock(hashtextextended('{{schema}}.retention', 0))`),
		now:    r(`SELECT {{schema}}.now()`),
		// What is left of a record that was deleted. Primary key; index record_key_operation.
		tombstone:     r(`SELECT operation_id, fingerprint, deleted_at IS NOT NULL, tenant, type, key FROM {{schema}}.record_key WHERE tenant = $1 AND type = $2 AND key = $3`),
		tombstoneByID: r(`SELECT operation_id, fingerprint, true, tenant, type, key FROM {{schema}}.record_key WHERE operation_id = $1 AND deleted_at IS NOT NULL`),
		// Index record_expiry. Contents go as they rest.
		archivable: r(`SELECT r.operation_id, to_char(r.expires_at AT TIME ZONE 'UTC', 'YYYY/MM'), ((to_jsonb(r) - 'final') || jsonb_build_object('final', encode(r.final, 'base64')))::text
			FROM {{schema}}.record r WHERE r.archived_at IS NULL AND r.expires_at < (SELECT {{schema}}.now()) ORDER BY r.expires_at, r.operation_id LIMIT $1 FOR UPDATE SKIP LOCKED`),
		// Answers that came before their digest was taken with them are clear.
		archived: r(`UPDATE {{schema}}.record SET archived_at = {{schema}}.now(), archive = $2, result_sha256 = coalesce(result_sha256, sha256(final)), final = NULL, plan = '{}', origin = '{}', partial = '{}'
			WHERE operation_id = ANY ($1) AND archived_at IS NULL AND state <> 'in_progress'`),
		// Index record_archived. The key stays as a tombstone, of money operations the hash and the business key too.
		remove: r(`WITH d AS (SELECT r.operation_id, r.started_on FROM {{schema}}.record r WHERE r.archived_at IS NOT NULL AND r.finished_at < (SELECT {{schema}}.now()) - $1::interval
				ORDER BY r.finished_at LIMIT $2 FOR UPDATE SKIP LOCKED),
			x AS (DELETE FROM {{schema}}.record r USING d WHERE r.operation_id = d.operation_id AND r.started_on = d.started_on RETURNING r.*),
			m AS (INSERT INTO {{schema}}.record_money (operation_id, tenant, type, business_key, state, result_sha256, archive, finished_at, keep_until)
				SELECT x.operation_id, x.tenant, x.type, x.business_key, x.state, x.result_sha256, x.archive, x.finished_at, x.finished_at + $4::interval
				FROM x WHERE x.type <> ALL ($3::text[]) ON CONFLICT DO NOTHING),
			k AS (UPDATE {{schema}}.record_key k SET deleted_at = {{schema}}.now() FROM x WHERE k.operation_id = x.operation_id)
			SELECT count(*) FROM x`),
		removeMoney: r(`DELETE FROM {{schema}}.record_money WHERE operation_id IN (SELECT operation_id FROM {{schema}}.record_money WHERE keep_until < (SELECT {{schema}}.now()) ORDER BY keep_until LIMIT $1)`),

		partitionThere: r(`SELECT to_regclass('{{schema}}.' || $1::text) IS NOT NULL`),
		oldPartitions: r(`SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = '{{schema}}.record'::regclass AND c.relname ~ '^record_[0-9]{6}$'
			AND to_date(substr(c.relname, 8), 'YYYYMM') + interval '1 month' <= {{schema}}.now() - $1::interval ORDER BY c.relname`),
		makePartition: r(`SET LOCAL lock_timeout = '2s';
			CREATE TABLE {{schema}}.{{partition}} (LIKE {{schema}}.record INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
			LOCK TABLE ONLY {{schema}}.record IN ACCESS EXCLUSIVE MODE;
			LOCK TABLE {{schema}}.record_rest IN ACCESS EXCLUSIVE MODE;
			WITH moved AS (DELETE FROM {{schema}}.record_rest WHERE started_on >= '{{from}}' AND started_on < '{{to}}' RETURNING *) INSERT INTO {{schema}}.{{partition}} SELECT * FROM moved;
			ALTER TABLE {{schema}}.record ATTACH PARTITION {{schema}}.{{partition}} FOR VALUES FROM ('{{from}}') TO ('{{to}}')`),
		lockPartition: r(`SET LOCAL lock_timeout = '2s';
			LOCK TABLE ONLY {{schema}}.record IN ACCESS EXCLUSIVE MODE;
			LOCK TABLE {{schema}}.{{partition}} IN ACCESS EXCLUSIVE MODE`),
		partitionEmpty: r(`SELECT NOT EXISTS (SELECT 1 FROM {{schema}}.{{partition}})`),
		dropPartition:  r(`DROP TABLE {{schema}}.{{partition}}`),
	}
}
