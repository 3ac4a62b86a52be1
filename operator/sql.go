package operator

import "strings"

// queries holds every statement of the package, rendered once for one schema. Reads join the tables of zeebe, dedup,
// outbox and sagas; writes go to this package's own.
type queries struct {
	listSagas, oneSaga, sagaTypes, sagaSteps                                     string
	sagaOperations, sagaEvents, sagaCommands, sagaAudit                          string
	incidentContext, operationsByID                                              string
	countEffects, listCommands, unknown, orphans, revoked, listEffectSteps, risk string
	asked, asksOver                                                              string
	lockAudit, insertAudit, moveHead, listAudit, oneAudit, readHead, allAudit    string
	insertRetry, readRetry, retries, resolvePending                              string
}

// $1 = begin within, $2 = undo within: when a saga counts as stuck.
const sagaColumns = `s.id, s.tenant, s.type, s.key, s.attempt, s.business_key, s.state, coalesce(s.decision, ''), s.reason, s.stuck,
	(SELECT count(*) FROM {{schema}}.saga_step t WHERE t.saga_id = s.id AND t.class = 'SUCCESS'),
	coalesce((SELECT t.name FROM {{schema}}.saga_step t WHERE t.saga_id = s.id ORDER BY t.commit_order DESC, t.committed_at DESC LIMIT 1), ''),
	CASE WHEN s.decision = 'completed' THEN 0 ELSE (SELECT count(*) FROM {{schema}}.saga_step t
		WHERE t.saga_id = s.id AND t.class = 'SUCCESS' AND t.undo_state IN ('open', 'running', 'stuck', 'parked')) END,
	coalesce(s.cluster, ''), coalesce(s.process_instance_key, 0), s.started_at, s.deadline, s.begun_at, s.decided_at, s.closed_at`

const sagaSource = `(SELECT s.*, CASE WHEN s.closed_at IS NOT NULL THEN ''
		WHEN s.begun_at IS NULL AND s.started_at < {{schema}}.now() - $1::interval THEN 'not begun'
		WHEN EXISTS (SELECT 1 FROM {{schema}}.saga_step t WHERE t.saga_id = s.id AND t.undo_state = 'stuck') THEN 'undo stuck'
		WHEN s.decision IS NULL AND s.deadline < {{schema}}.now() - $1::interval THEN 'past its deadline without a decision'
		WHEN s.state = 'compensating' AND s.decided_at < {{schema}}.now() - $2::interval THEN 'undo takes too long'
		ELSE '' END AS stuck FROM {{schema}}.saga s) s`

// The ledger says done, parked, stuck of undos that it ran itself. Of one that the model drew it learns at the end: until
// then its operation (<forward>:undo) tells how it stands.
const undoState = `CASE WHEN t.undo_state IN ('open', 'running') AND u.class = 'FATAL_ERROR' THEN 'stuck'
		WHEN t.undo_state = 'open' AND u.operation_id IS NOT NULL AND u.class = '' THEN 'running' ELSE t.undo_state END`

const stepColumns = `t.operation_id, t.saga_id, t.name, t.job_type, t.element_id, t.class, t.code, t.undo_type, t.policy, t.pivot, t.amount,
	t.commit_order, t.committed_at, ` + undoState + `, greatest(t.undo_attempts, coalesce(u.attempts, 0)),
	coalesce(nullif(t.undo_error, ''), CASE WHEN t.undo_state IN ('open', 'running', 'stuck') THEN u.message END, ''), t.undo_at`

const stepSource = `{{schema}}.saga_step t LEFT JOIN {{schema}}.operation u ON u.operation_id = t.operation_id || ':undo'`

const operationColumns = `o.operation_id, o.tenant, o.business_key, o.job_type, o.saga_id, o.state, o.effect, o.class, o.reason, o.code, o.message,
	o.attempts, o.policy, o.orphan, o.cluster, o.job_key, o.process_instance_key, o.element_instance_key, o.element_id,
	o.created_at, o.called_at, o.settled_at, o.answered_at, o.retried_at, o.undone_at, o.orphaned_at, o.lease_until, o.asked, o.ask_at, o.asks_over_at,
	o.ask_until, o.dismissed_at, o.slimmed_at`

// As dedup counts them: the other system may have acted, and nobody can say. Or it stayed unknown past its SLA. Index operation_odd.
const isUnknown = `(o.effect = 'maybe' AND ((o.state = 'calling' AND o.reason = 'unknown') OR o.state = 'done'))`

// Effects that stand although nobody wants them, or whose undo runs: by index saga_step_undo what has a state of its own, by
// saga_open what still waits in sagas that gave up. (A completed saga's effects stay open for good and are not looked at.)
const unwanted = `(SELECT t.* FROM {{schema}}.saga_step t WHERE t.undo_state IN ('running', 'parked', 'stuck')
		UNION ALL SELECT t.* FROM {{schema}}.saga s JOIN {{schema}}.saga_step t ON t.saga_id = s.id
			WHERE s.closed_at IS NULL AND s.decision IN ('failed', 'expired', 'cancelled') AND t.undo_state = 'open') t
		LEFT JOIN {{schema}}.operation u ON u.operation_id = t.operation_id || ':undo'`

// Undo came before anything had happened, so nothing was undone and nothing will happen. (Index operation_odd.) An
// operation that had succeeded is revoked too when it is undone; that is counted as undone.
const isRevoked = `(o.state = 'revoked' AND o.undone_at IS NULL AND o.class <> 'SUCCESS')`

// Calls that the other system had not seen when their undo asked: it is asked again whether they landed late, or it is asked no more and
// nobody has dismissed them.
// Bounds on both sides, as a table without statistics is read through otherwise. Indexes operation_ask, operation_odd.
const (
	isAsked    = `o.ask_at BETWEEN '-infinity' AND 'infinity'`
	isAsksOver = `o.asks_over_at BETWEEN '-infinity' AND 'infinity' AND o.dismissed_at IS NULL`
)

const isAnswer = `c.kind IN ('complete', 'fail', 'throw')`

const commandColumns = `c.id, c.kind, c.state, c.reason, c.job_key, c.incident_key, c.process_instance_key, c.operation_id, c.attempts,
	c.last_code, c.last_error, c.next_at, c.created_at, coalesce(o.saga_id, ''), coalesce(o.job_type, '')`

const auditColumns = `a.seq, a.at, a.actor, a.action, a.target, a.reason, a.before::text, a.after::text, a.prev_hash, a.hash`

func render(schema string) queries {
	r := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return queries{
		// Index saga_recent; saga_open for $7 (stuck). $8 = the last id of the page before.
		listSagas: r(`SELECT ` + sagaColumns + ` FROM ` + sagaSource + `
			WHERE ($3 = '' OR s.tenant = $3) AND ($4 = '' OR s.type = $4) AND ($5 = '' OR s.state = $5) AND ($6 = '' OR s.business_key = $6)
				AND (NOT $7 OR (s.closed_at IS NULL AND s.stuck <> ''))
				AND ($8 = '' OR (s.started_at, s.id) < (SELECT b.started_at, b.id FROM {{schema}}.saga b WHERE b.id = $8))
			ORDER BY s.started_at DESC, s.id DESC LIMIT $9`),
		oneSaga: r(`SELECT ` + sagaColumns + `, s.correlation_id, s.traceparent, s.actor,
				coalesce((SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(s.variables) k), '{}')
			FROM ` + sagaSource + ` WHERE s.id = $3`),
		sagaTypes: r(`SELECT DISTINCT type FROM {{schema}}.saga ORDER BY type`),
		// Index saga_step_saga.
		sagaSteps: r(`SELECT ` + stepColumns + ` FROM ` + stepSource + ` WHERE t.saga_id = $1 ORDER BY t.commit_order, t.committed_at, t.operation_id`),

		// Index operation_saga. Its condition is repeated, here and below: of a parameter alone the planner does not know that it holds.
		sagaOperations: r(`SELECT ` + operationColumns + ` FROM {{schema}}.operation o WHERE o.saga_id = $1 AND o.saga_id <> '' ORDER BY o.created_at`),
		// The log has no index by key: the days of the saga's life bound what is read. The outbox is read by shard (primary key).
		sagaEvents: r(`SELECT e.logged_at, e.type, e.version, e.seq, e.operation_id, e.event_id::text, 'published'
				FROM {{schema}}.event_log e WHERE e.logged_at BETWEEN $4 AND coalesce($5::timestamptz, {{schema}}.now()) + interval '1 hour'
					AND e.shard = $2 AND e.business_key = $1 AND (e.operation_id = $3 OR starts_with(e.operation_id, $3 || ':'))
			UNION ALL SELECT e.created_at, e.type, e.version, e.seq, e.operation_id, e.event_id::text, 'waits in the outbox'
				FROM {{schema}}.outbox e WHERE e.shard = $2 AND e.business_key = $1 AND (e.operation_id = $3 OR starts_with(e.operation_id, $3 || ':'))
			UNION ALL SELECT e.created_at, e.type, e.version, e.seq, e.operation_id, e.event_id::text, 'parked'
				FROM {{schema}}.outbox_parked e WHERE e.business_key = $1 AND (e.operation_id = $3 OR starts_with(e.operation_id, $3 || ':'))`),
		// Index zeebe_command_operation, by the operations of the saga.
		sagaCommands: r(`SELECT ` + commandColumns + ` FROM {{schema}}.zeebe_command c LEFT JOIN {{schema}}.operation o ON o.operation_id = c.operation_id
			WHERE c.cluster = $1 AND (c.operation_id = $2 OR c.operation_id IN (SELECT p.operation_id FROM {{schema}}.operation p WHERE p.saga_id = $2 AND p.saga_id <> '')) ORDER BY c.id`),
		// Acts of people are few: on incidents of the process instance, on the saga and on its operations. Index operation_saga.
		sagaAudit: r(`SELECT ` + auditColumns + ` FROM {{schema}}.operator_audit a
			WHERE a.before ->> 'cluster' = $1 AND a.before ->> 'process_instance_key' = $2 OR a.target = 'saga:' || $3
				OR a.target IN (SELECT 'operation:' || o.operation_id FROM {{schema}}.operation o WHERE o.saga_id = $3 AND o.saga_id <> '') ORDER BY a.seq`),

		// Which operation and saga stand behind an incident: by element instance, else by job, and the saga by its process instance.
		// Indexes operation_instance, saga_instance.
		incidentContext: r(`SELECT i.n, coalesce(o.operation_id, ''), coalesce(s.id, ''), coalesce(s.type, ''), coalesce(s.business_key, ''), coalesce(s.state, '')
			FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[]) i (n, process_instance_key, element_instance_key, job_key)
			LEFT JOIN LATERAL (SELECT x.operation_id, x.saga_id FROM {{schema}}.operation x WHERE x.cluster = $1 AND x.process_instance_key = i.process_instance_key AND x.process_instance_key <> 0
				AND (x.element_instance_key = i.element_instance_key OR (x.job_key = i.job_key AND i.job_key <> 0))
				ORDER BY x.created_at DESC LIMIT 1) o ON true
			LEFT JOIN LATERAL (SELECT y.saga_id FROM {{schema}}.operation y WHERE y.cluster = $1 AND y.process_instance_key = i.process_instance_key AND y.process_instance_key <> 0
				AND y.saga_id <> '' LIMIT 1) p ON true
			LEFT JOIN {{schema}}.saga g ON g.closed_at IS NULL AND g.cluster = $1 AND g.process_instance_key = i.process_instance_key
			LEFT JOIN {{schema}}.saga s ON s.id = coalesce(nullif(o.saga_id, ''), p.saga_id, g.id)`),

		operationsByID: r(`SELECT ` + operationColumns + ` FROM {{schema}}.operation o WHERE o.operation_id = ANY ($1)`),

		countEffects: r(`SELECT {{schema}}.now(), c.*, o.*, t.* FROM
			(SELECT count(*) FILTER (WHERE ` + isAnswer + ` AND c.state = 'pending'),
				coalesce(extract(epoch FROM {{schema}}.now() - min(c.created_at) FILTER (WHERE ` + isAnswer + ` AND c.state = 'pending')), 0)::float8,
				count(*) FILTER (WHERE ` + isAnswer + ` AND c.state = 'gone'), count(*) FILTER (WHERE ` + isAnswer + ` AND c.state = 'parked'),
				count(*) FILTER (WHERE NOT ` + isAnswer + `), count(*) FILTER (WHERE NOT ` + isAnswer + ` AND c.state = 'parked')
				FROM {{schema}}.zeebe_command c WHERE c.cluster = $1) c,
			(SELECT (SELECT count(*) FROM {{schema}}.operation o WHERE ` + isUnknown + `),
				count(*) FILTER (WHERE o.orphan = 'open'), count(*) FILTER (WHERE o.orphan = 'undone'), count(*) FILTER (WHERE o.orphan = 'parked'),
				(SELECT count(*) FROM {{schema}}.operation o WHERE ` + isRevoked + `), (SELECT count(*) FROM {{schema}}.operation o WHERE o.state = 'revoked' AND o.undone_at IS NOT NULL),
				(SELECT count(*) FROM {{schema}}.operation o WHERE ` + isAsked + `), (SELECT count(*) FROM {{schema}}.operation o WHERE ` + isAsksOver + `)
				FROM {{schema}}.operation o WHERE o.orphan <> '') o,
			(SELECT count(*) FILTER (WHERE s.stands = 'running'), count(*) FILTER (WHERE s.stands = 'stuck'), count(*) FILTER (WHERE s.stands = 'parked')
				FROM (SELECT ` + undoState + ` AS stands FROM ` + unwanted + `) s) t`),
		listCommands: r(`SELECT ` + commandColumns + ` FROM {{schema}}.zeebe_command c LEFT JOIN {{schema}}.operation o ON o.operation_id = c.operation_id
			WHERE c.cluster = $1 AND ` + isAnswer + ` = $2 AND ($3 = '' OR c.state = $3) ORDER BY c.id LIMIT $4`),
		unknown:  r(`SELECT ` + operationColumns + ` FROM {{schema}}.operation o WHERE ` + isUnknown + ` ORDER BY o.created_at LIMIT $1`),
		orphans:  r(`SELECT ` + operationColumns + ` FROM {{schema}}.operation o WHERE o.orphan IN ('open', 'parked') ORDER BY o.orphaned_at LIMIT $1`),
		revoked:  r(`SELECT ` + operationColumns + ` FROM {{schema}}.operation o WHERE ` + isRevoked + ` ORDER BY o.created_at DESC LIMIT $1`),
		asked:    r(`SELECT ` + operationColumns + ` FROM {{schema}}.operation o WHERE ` + isAsked + ` ORDER BY o.ask_at LIMIT $1`),
		asksOver: r(`SELECT ` + operationColumns + ` FROM {{schema}}.operation o WHERE ` + isAsksOver + ` ORDER BY o.asks_over_at LIMIT $1`),
		listEffectSteps: r(`SELECT ` + stepColumns + ` FROM ` + unwanted + `
			WHERE ` + undoState + ` = $1 ORDER BY t.committed_at LIMIT $2`),
		// Effects that stand although their saga gave up, whatever waits to undo them.
		risk: r(`SELECT coalesce(t.amount ->> 'currency', ''), coalesce(sum((t.amount ->> 'minor')::bigint), 0)::bigint, count(*)
			FROM ` + unwanted + ` JOIN {{schema}}.saga s ON s.id = t.saga_id
			WHERE t.class = 'SUCCESS' AND s.decision IN ('failed', 'expired', 'cancelled') GROUP BY 1 ORDER BY 1`),

		lockAudit:   r(`SELECT seq, hash, {{schema}}.now() FROM {{schema}}.operator_audit_head FOR UPDATE`),
		insertAudit: r(`INSERT INTO {{schema}}.operator_audit (seq, at, actor, action, target, reason, before, after, prev_hash, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`),
		moveHead:    r(`UPDATE {{schema}}.operator_audit_head SET seq = $1, hash = $2 WHERE seq = $1 - 1`),
		listAudit: r(`SELECT ` + auditColumns + ` FROM {{schema}}.operator_audit a
			WHERE ($1 = '' OR a.target = $1) AND ($2 = 0 OR a.seq < $2) ORDER BY a.seq DESC LIMIT $3`),
		oneAudit: r(`SELECT ` + auditColumns + ` FROM {{schema}}.operator_audit a WHERE a.seq = $1`),
		readHead: r(`SELECT seq, hash FROM {{schema}}.operator_audit_head`),
		allAudit: r(`SELECT ` + auditColumns + ` FROM {{schema}}.operator_audit a ORDER BY a.seq`),

		// The first retry of an incident gets the row. A later one only in place of a parked command, which it has just dropped ($7).
		insertRetry: r(`INSERT INTO {{schema}}.operator_retry AS r (cluster, incident_key, audit_seq, command_id, actor, at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (cluster, incident_key) DO UPDATE SET audit_seq = excluded.audit_seq, command_id = excluded.command_id, actor = excluded.actor, at = excluded.at
			WHERE r.command_id = $7`),
		readRetry: r(`SELECT r.audit_seq, r.actor, r.at, r.command_id, coalesce(c.state, ''), coalesce(c.last_error, '')
			FROM {{schema}}.operator_retry r LEFT JOIN {{schema}}.zeebe_command c ON c.id = r.command_id WHERE r.cluster = $1 AND r.incident_key = $2`),
		retries: r(`SELECT r.incident_key, r.audit_seq, r.actor, r.at, coalesce(c.state, ''), coalesce(c.last_error, '')
			FROM {{schema}}.operator_retry r LEFT JOIN {{schema}}.zeebe_command c ON c.id = r.command_id WHERE r.cluster = $1 AND r.incident_key = ANY ($2)`),
		// Index zeebe_command_state: resolve commands are few.
		resolvePending: r(`SELECT count(*) FROM {{schema}}.zeebe_command WHERE cluster = $1 AND kind = 'resolve' AND incident_key = $2 AND state = 'pending'`),
	}
}
