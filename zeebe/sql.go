package zeebe

import "strings"

// queries holds every statement of the package, rendered once for one schema.
type queries struct {
	insertAll                                                                     string
	insert, counts, list, release, park, drop, claimGone, claimDue, acked, failed string
}

const columns = `c.id, c.rev, c.cluster, c.kind, c.state, c.reason, c.next_at, c.attempts, c.last_code, c.last_error, c.created_at,
	c.changed_at, c.job_key, c.element_instance_key, c.process_instance_key, c.incident_key, c.operation_id, c.retries,
	c.code, c.message, c.name, c.correlation_key, c.message_id, c.ttl_ms, c.local, c.variables`

func render(schema string) queries {
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{columns}}", columns).Replace(sql)
	}
	return queries{
		// Index zeebe_command_answer for answers. Locks one row.
		insert: r(`INSERT INTO {{schema}}.zeebe_command AS c (cluster, kind, job_key, element_instance_key, process_instance_key, incident_key,
				operation_id, retries, code, message, name, correlation_key, message_id, ttl_ms, local, variables, next_at, created_at, changed_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, t.now + $17::interval, t.now, t.now
			FROM (SELECT {{schema}}.now() AS now) t
			ON CONFLICT (cluster, job_key) WHERE kind IN ('complete', 'fail', 'throw') DO UPDATE SET
				rev = c.rev + 1, kind = excluded.kind, state = 'pending', reason = '', next_at = excluded.next_at, attempts = 0, last_code = '', last_error = '',
				operation_id = excluded.operation_id, retries = excluded.retries, code = excluded.code, message = excluded.message,
				variables = excluded.variables, changed_at = excluded.changed_at
			RETURNING id, rev`),
		// The same for answers of several jobs, each job once.
		insertAll: r(`WITH t AS MATERIALIZED (SELECT {{schema}}.now() AS now)
			INSERT INTO {{schema}}.zeebe_command AS c (cluster, kind, job_key, element_instance_key, process_instance_key, incident_key,
				operation_id, retries, code, message, name, correlation_key, message_id, ttl_ms, local, variables, next_at, created_at, changed_at)
			SELECT a.cluster, a.kind, a.job_key, a.element_instance_key, a.process_instance_key, 0, a.operation_id, a.retries, a.code, a.message, '', '', '', 0, false,
				a.variables, t.now + $11::interval, t.now, t.now
			FROM t, unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::int[], $8::text[], $9::text[], $10::text[])
				AS a (cluster, kind, job_key, element_instance_key, process_instance_key, operation_id, retries, code, message, variables)
			ON CONFLICT (cluster, job_key) WHERE kind IN ('complete', 'fail', 'throw') DO UPDATE SET
				rev = c.rev + 1, kind = excluded.kind, state = 'pending', reason = '', next_at = excluded.next_at, attempts = 0, last_code = '', last_error = '',
				operation_id = excluded.operation_id, retries = excluded.retries, code = excluded.code, message = excluded.message,
				variables = excluded.variables, changed_at = excluded.changed_at
			RETURNING id, rev, job_key`),
		counts: r(`SELECT count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'gone'), count(*) FILTER (WHERE state = 'parked'),
				coalesce(extract(epoch FROM {{schema}}.now() - min(created_at) FILTER (WHERE state = 'pending')), 0)::float8
			FROM {{schema}}.zeebe_command WHERE cluster = $1`),
		list: r(`SELECT {{columns}} FROM {{schema}}.zeebe_command c
			WHERE cluster = $1 AND ($2 = '' OR state = $2) AND ($3 = '' OR operation_id = $3) AND ($4 = 0 OR job_key = $4) ORDER BY id LIMIT $5`),
		release: r(`UPDATE {{schema}}.zeebe_command SET state = 'pending', reason = '', next_at = {{schema}}.now(), changed_at = {{schema}}.now()
			WHERE id = $1 AND state IN ('gone', 'parked')`),
		park: r(`UPDATE {{schema}}.zeebe_command SET state = 'parked', reason = $2, changed_at = {{schema}}.now()
			WHERE id = $1 AND state IN ('pending', 'gone')`),
		drop: r(`DELETE FROM {{schema}}.zeebe_command WHERE id = $1 AND state IN ('gone', 'parked')`),
		// Index zeebe_command_state.
		claimGone: r(`WITH due AS (SELECT id FROM {{schema}}.zeebe_command WHERE cluster = $1 AND state = 'gone' AND next_at <= (SELECT {{schema}}.now())
				ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED)
			UPDATE {{schema}}.zeebe_command c SET next_at = {{schema}}.now() + $3::interval FROM due WHERE c.id = due.id
			RETURNING {{columns}}`),
		// Index zeebe_command_state. Claiming pushes next_at out: jittered, doubling, at most about a minute.
		claimDue: r(`WITH due AS (SELECT id FROM {{schema}}.zeebe_command WHERE (cluster = $1 OR $3) AND state = 'pending' AND next_at <= (SELECT {{schema}}.now())
				AND ($4 OR kind NOT IN ('fail', 'throw')) ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED)
			UPDATE {{schema}}.zeebe_command c SET attempts = c.attempts + 1, changed_at = {{schema}}.now(),
				next_at = {{schema}}.now() + make_interval(secs => (2 + least(60, power(2, least(c.attempts, 6)))) * (0.5 + random() / 2))
			FROM due WHERE c.id = due.id RETURNING {{columns}}`),
		// Primary key; the table is short and full of dead rows, which a join would read.
		acked: r(`DELETE FROM {{schema}}.zeebe_command c WHERE c.id = ANY ($1) AND c.rev = $2`),
		failed: r(`UPDATE {{schema}}.zeebe_command SET state = $3, reason = $4, last_code = $5, last_error = left($6, 2000), changed_at = {{schema}}.now(),
				next_at = CASE WHEN $3 = 'gone' THEN {{schema}}.now() ELSE next_at END
			WHERE id = $1 AND rev = $2 AND state = 'pending'`),
	}
}
