package dedup

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// recordQueries holds the statements of transactional operations: a claim that is only the id, and the rest at the end, in the same
// transaction. Nobody else ever sees the row in between.
type recordQueries struct {
	enter, enterAll, entered, record, recordAll string
}

// recorded is what the end writes; f is the relation of the values, t that of the time.
const recorded = `tenant = f.tenant, business_key = f.business_key, job_type = f.job_type, saga_id = f.saga_id,
				fingerprint = f.fingerprint, fingerprint_fields = f.fields::text[], input = f.input::json, meta = f.meta::json, cluster = f.cluster,
				job_key = f.job_key, process_instance_key = f.instance, element_instance_key = f.element_key, element_id = f.element,
				undo_type = f.undo, policy = f.policy, state = 'done', class = f.class, reason = f.reason, code = f.code, message = f.message,
				variables = f.variables::json, result_hash = f.hash, bytes = f.bytes, created_at = t.now - (clock_timestamp() - transaction_timestamp()),
				settled_at = t.now, expires_at = t.now + f.retain::interval, keep = f.keep::interval`

// recordValues names the values of recorded in the order in which they are given, behind id and fence.
func recordValues() []string {
	return strings.Fields(`tenant business_key job_type saga_id fingerprint fields input meta cluster job_key instance element_key element undo policy
		class reason code message variables hash bytes retain keep`)
}

var value = regexp.MustCompile(`\bf\.[a-z_]+`) //nolint:gochecknoglobals // compiled once

func renderRecord(schema string) recordQueries {
	r := func(sql string) string {
		sql = strings.NewReplacer("{{recorded}}", recorded, "{{columns}}", columns).Replace(sql)
		return strings.ReplaceAll(sql, "{{schema}}", schema)
	}
	one := func(sql string) string { // the values are parameters: no relation of one row to be joined
		set := value.ReplaceAllStringFunc(recorded, func(v string) string { return fmt.Sprintf("$%d", slices.Index(recordValues(), v[2:])+3) })
		return r(strings.ReplaceAll(sql, "{{recorded}}", set))
	}
	return recordQueries{
		// Primary key. Waits for a twin's open transaction at most as long as $2 says; no row = somebody else has it. The bytes
		// that the process instance used so far by index operation_instance.
		enter: r(`INSERT INTO {{schema}}.operation AS o (operation_id, state, attempts, created_at)
			SELECT $1, 'claimed', 1, '-infinity' FROM (SELECT set_config('lock_timeout', $2, true)) bound
			ON CONFLICT (operation_id) DO NOTHING
			RETURNING o.fence, (SELECT coalesce(sum(u.bytes), 0) FROM {{schema}}.operation u
				WHERE u.cluster = $3 AND u.process_instance_key = $4 AND u.process_instance_key <> 0)`),
		// The same for several, in the order given, which is that of their ids: two groups that claim the same ones wait for each
		// other, never in a circle.
		enterAll: r(`INSERT INTO {{schema}}.operation AS o (operation_id, state, attempts, created_at)
			SELECT c.id, 'claimed', 1, '-infinity' FROM unnest($1::text[]) AS c (id)
			ON CONFLICT (operation_id) DO NOTHING RETURNING o.operation_id, o.fence`),
		// What somebody else has written; a row of this transaction is not given.
		entered: r(`SELECT {{columns}} FROM {{schema}}.operation o WHERE o.operation_id = $1 AND o.xmin <> pg_current_xact_id()::xid`),
		record: one(`WITH ended AS (DELETE FROM {{schema}}.operation_attempt a WHERE a.cluster = $11 AND a.job_key = $28)
			UPDATE {{schema}}.operation o SET {{recorded}} FROM (SELECT {{schema}}.now() AS now) t
			WHERE o.operation_id = $1 AND (o.fence = $2 OR $27) AND o.state = 'claimed'`),
		recordAll: r(`WITH ended AS (DELETE FROM {{schema}}.operation_attempt a WHERE a.cluster = $27 AND a.job_key = ANY ($12)),
				t AS MATERIALIZED (SELECT {{schema}}.now() AS now)
			UPDATE {{schema}}.operation o SET {{recorded}}
			FROM t, unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::text[], $23::bytea[], $24::int[], $25::interval[], $26::interval[])
				AS f (id, fence, tenant, business_key, job_type, saga_id, fingerprint, fields, input, meta, cluster, job_key, instance, element_key, element, undo, policy, class, reason, code, message, variables, hash, bytes, retain, keep)
			WHERE o.operation_id = f.id AND o.fence = f.fence AND o.state = 'claimed'`),
	}
}
