package webhook

import "strings"

// statements, rendered once for a schema.
type statements struct {
	stage, due, take                         string
	delivered, again, dead, attempted        string
	gone, goneAll, pause, failing, well      string
	list, show, attempts, lock               string
	resend, isGone, reopen, endpoints, purge string
}

const columns = `d.id, d.endpoint, d.tenant, d.type, d.operation_id, d.state, d.reason, d.attempts, d.next_at, d.created_at, d.finished_at,
	octet_length(d.body) - CASE WHEN substring(d.body FROM 1 FOR 4) = 'jms1'::bytea THEN 54 + get_byte(d.body, 5) ELSE 0 END`

func render(schema string) statements {
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{columns}}", columns).Replace(sql)
	}
	return statements{
		// For an endpoint that is gone it is dead at once: shown, and sent when a person says so.
		stage: r(`INSERT INTO {{schema}}.webhook_delivery (id, endpoint, tenant, type, operation_id, body, state, reason, next_at, created_at, finished_at)
			SELECT $1, $2, $3, $4, $5, $6, CASE WHEN g.gone THEN 'dead' ELSE 'pending' END, CASE WHEN g.gone THEN 'gone' ELSE '' END, t.at, t.at, CASE WHEN g.gone THEN t.at END
			FROM (SELECT {{schema}}.now() AS at OFFSET 0) t, (SELECT EXISTS (SELECT 1 FROM {{schema}}.webhook_endpoint WHERE id = $2 AND gone_at IS NOT NULL) AS gone OFFSET 0) g
			ON CONFLICT (id) DO NOTHING`),
		// Index webhook_delivery_due. Candidates only: take decides.
		due: r(`SELECT d.endpoint FROM {{schema}}.webhook_delivery d LEFT JOIN {{schema}}.webhook_endpoint e ON e.id = d.endpoint
			WHERE d.state = 'pending' AND d.next_at <= (SELECT {{schema}}.now()) AND d.endpoint <> ALL ($1::text[]) AND (e.paused_until IS NULL OR e.paused_until <= {{schema}}.now())
			GROUP BY d.endpoint ORDER BY min(d.next_at) LIMIT $2`),
		// The lease is next_at itself: if we die it is due again after $2. The attempt is written down before it is made.
		take: r(`WITH t AS (UPDATE {{schema}}.webhook_delivery d SET attempts = d.attempts + 1, tries = d.tries + 1, next_at = {{schema}}.now() + $2::interval
				WHERE d.id = (SELECT c.id FROM {{schema}}.webhook_delivery c WHERE c.endpoint = $1 AND c.state = 'pending' AND c.next_at <= (SELECT {{schema}}.now())
					AND NOT EXISTS (SELECT 1 FROM {{schema}}.webhook_endpoint e WHERE e.id = $1 AND e.paused_until > {{schema}}.now())
					ORDER BY c.next_at, c.id LIMIT 1 FOR UPDATE SKIP LOCKED)
				RETURNING d.id, d.type, d.tenant, d.operation_id, d.body, d.attempts, d.tries),
			a AS (INSERT INTO {{schema}}.webhook_attempt (delivery, n, started_at) SELECT t.id, t.attempts, {{schema}}.now() FROM t)
			SELECT t.id, t.type, t.tenant, t.operation_id, t.body, t.attempts, t.tries FROM t`),
		delivered: r(`UPDATE {{schema}}.webhook_delivery SET state = 'delivered', reason = '', finished_at = {{schema}}.now() WHERE id = $1 AND attempts = $2 AND state <> 'delivered'`),
		again:     r(`UPDATE {{schema}}.webhook_delivery SET next_at = {{schema}}.now() + $3::interval WHERE id = $1 AND attempts = $2 AND state = 'pending'`),
		dead:      r(`UPDATE {{schema}}.webhook_delivery SET state = 'dead', reason = $3, finished_at = {{schema}}.now() WHERE id = $1 AND attempts = $2 AND state = 'pending'`),
		attempted: r(`UPDATE {{schema}}.webhook_attempt SET took_ms = $3, status = $4, error = $5 WHERE delivery = $1 AND n = $2`),

		gone: r(`INSERT INTO {{schema}}.webhook_endpoint AS e (id, gone_at) VALUES ($1, {{schema}}.now()) ON CONFLICT (id) DO UPDATE SET gone_at = coalesce(e.gone_at, {{schema}}.now())`),
		// One that another process has under way is delivered nevertheless if its answer says so.
		goneAll: r(`UPDATE {{schema}}.webhook_delivery SET state = 'dead', reason = 'gone', finished_at = {{schema}}.now() WHERE endpoint = $1 AND state = 'pending'`),
		pause: r(`INSERT INTO {{schema}}.webhook_endpoint AS e (id, paused_until, failing_since) VALUES ($1, {{schema}}.now() + $2::interval, {{schema}}.now())
			ON CONFLICT (id) DO UPDATE SET paused_until = greatest(e.paused_until, EXCLUDED.paused_until), failing_since = coalesce(e.failing_since, EXCLUDED.failing_since)`),
		failing: r(`INSERT INTO {{schema}}.webhook_endpoint AS e (id, failing_since) VALUES ($1, {{schema}}.now())
			ON CONFLICT (id) DO UPDATE SET failing_since = EXCLUDED.failing_since WHERE e.failing_since IS NULL`),
		well: r(`UPDATE {{schema}}.webhook_endpoint SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL`),

		// Index webhook_delivery_tenant.
		list: r(`SELECT {{columns}} FROM {{schema}}.webhook_delivery d
			WHERE ($1 = '' OR d.tenant = $1) AND ($2 = '' OR d.state = $2) AND ($3 = '' OR d.endpoint = $3) AND ($4 = '' OR d.operation_id = $4)
				AND ($5 = '' OR (d.created_at, d.id) < (SELECT b.created_at, b.id FROM {{schema}}.webhook_delivery b WHERE b.id = $5))
			ORDER BY d.created_at DESC, d.id DESC LIMIT $6`),
		show:     r(`SELECT {{columns}} FROM {{schema}}.webhook_delivery d WHERE d.id = $1`),
		lock:     r(`SELECT {{columns}} FROM {{schema}}.webhook_delivery d WHERE d.id = $1 FOR UPDATE`),
		attempts: r(`SELECT n, started_at, took_ms, status, error FROM {{schema}}.webhook_attempt WHERE delivery = $1 ORDER BY n`),
		resend:   r(`UPDATE {{schema}}.webhook_delivery SET state = 'pending', reason = '', tries = 0, next_at = {{schema}}.now(), finished_at = NULL WHERE id = $1 AND state <> 'pending'`),
		isGone:   r(`SELECT EXISTS (SELECT 1 FROM {{schema}}.webhook_endpoint WHERE id = $1 AND gone_at IS NOT NULL)`),
		reopen:   r(`UPDATE {{schema}}.webhook_endpoint SET gone_at = NULL, paused_until = NULL, failing_since = NULL WHERE id = $1`),
		endpoints: r(`SELECT coalesce(e.id, q.endpoint), e.gone_at, e.paused_until, e.failing_since, coalesce(q.pending, 0), coalesce(q.dead, 0), q.oldest FROM {{schema}}.webhook_endpoint e
			FULL JOIN (SELECT endpoint, count(*) FILTER (WHERE state = 'pending') AS pending, count(*) FILTER (WHERE state = 'dead') AS dead, min(created_at) FILTER (WHERE state = 'pending') AS oldest
				FROM {{schema}}.webhook_delivery WHERE state <> 'delivered' GROUP BY endpoint) q ON q.endpoint = e.id ORDER BY 1`),
		// Index webhook_delivery_finished.
		purge: r(`DELETE FROM {{schema}}.webhook_delivery WHERE id IN (SELECT id FROM {{schema}}.webhook_delivery
			WHERE state <> 'pending' AND finished_at < {{schema}}.now() - $1::interval AND (state = 'delivered' OR finished_at < {{schema}}.now() - $2::interval)
			ORDER BY finished_at LIMIT $3 FOR UPDATE SKIP LOCKED)`),
	}
}
