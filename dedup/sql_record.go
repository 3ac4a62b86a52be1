package dedup

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// recordQueries holds the statements of transactional operations: the claim is a lock on the id, held to the end of the transaction, and
// the row is written once, at the end, in the same transaction. Nobody ever sees one that has not ended.
type recordQueries struct {
	enter, enterFree, enterAll, standing, record, recordAll string
}

// claimLock is the lock on an operation id, held to the end of the transaction. Ids whose hash is the same only wait for each other.
// try is "try_" for one that is not waited for.
func claimLock(try, id string) string {
	return `pg_` + try + `advisory_xact_lock(hashtextextended(` + id + `, hashtextextended('{{schema}}.operation', 0)))`
}

const usedSoFar = `(SELECT coalesce(sum(u.bytes), 0) FROM {{schema}}.operation u
				WHERE u.cluster = $2 AND u.process_instance_key = $3 AND u.process_instance_key <> 0)`

// recorded are the columns that the end writes, each with its value; f is the relation of the values, t that of the time.
var recorded = [][2]string{ //nolint:gochecknoglobals // a table
	{"operation_id", "f.id"}, {"tenant", "f.tenant"}, {"business_key", "f.business_key"}, {"job_type", "f.job_type"}, {"saga_id", "f.saga_id"},
	{"fingerprint", "f.fingerprint"}, {"fingerprint_fields", "f.fields::text[]"}, {"input", "f.input::json"}, {"meta", "f.meta::json"},
	{"cluster", "f.cluster"}, {"job_key", "f.job_key"}, {"process_instance_key", "f.instance"}, {"element_instance_key", "f.element_key"},
	{"element_id", "f.element"}, {"undo_type", "f.undo"}, {"policy", "f.policy"}, {"class", "f.class"}, {"reason", "f.reason"}, {"code", "f.code"},
	{"message", "f.message"}, {"variables", "f.variables::json"}, {"result_hash", "f.hash"}, {"bytes", "f.bytes"},
	{"state", "'done'"}, {"attempts", "1"}, {"created_at", "t.now - (clock_timestamp() - transaction_timestamp())"}, {"settled_at", "t.now"},
	{"expires_at", "t.now + f.retain::interval"}, {"keep", "f.keep::interval"},
}

// recordValues names the values of recorded in the order in which they are given.
func recordValues() []string {
	return strings.Fields(`id tenant business_key job_type saga_id fingerprint fields input meta cluster job_key instance element_key element undo policy
		class reason code message variables hash bytes retain keep`)
}

var value = regexp.MustCompile(`\bf\.[a-z_]+`) //nolint:gochecknoglobals // compiled once

func renderRecord(schema string) recordQueries {
	columnsOf, values := make([]string, len(recorded)), make([]string, len(recorded))
	for i, c := range recorded {
		columnsOf[i], values[i] = c[0], c[1]
	}
	into := "INSERT INTO {{schema}}.operation (" + strings.Join(columnsOf, ", ") + ") SELECT " + strings.Join(values, ", ")
	r := func(sql string) string {
		sql = strings.ReplaceAll(sql, "{{into}}", into)
		return strings.ReplaceAll(sql, "{{schema}}", schema)
	}
	one := func(sql string) string { // the values are parameters: no relation of one row to be joined
		with := value.ReplaceAllStringFunc(into, func(v string) string { return fmt.Sprintf("$%d", slices.Index(recordValues(), v[2:])+1) })
		return r(strings.ReplaceAll(sql, "{{into}}", with))
	}
	return recordQueries{
		// Waits for a twin's open transaction at most as long as $4 says. The bytes that the process instance used so far by index
		// operation_instance.
		enter: r(`SELECT set_config('lock_timeout', $4, true), ` + claimLock("", "$1") + `, ` + usedSoFar),
		// The same, and does not wait.
		enterFree: r(`SELECT ` + claimLock("try_", "$1") + `, ` + usedSoFar),
		// The same for several, in the order given, which is that of their ids: two groups that claim the same ones wait for each
		// other, never in a circle.
		enterAll: r(`SELECT ` + claimLock("", "c.id") + ` FROM unnest($1::text[]) AS c (id)`),
		// What somebody has written before: in a statement of its own, after the wait.
		standing: r(`SELECT o.operation_id FROM {{schema}}.operation o WHERE o.operation_id = ANY ($1)`),
		record: one(`WITH ended AS (DELETE FROM {{schema}}.operation_attempt a WHERE a.cluster = $10 AND a.job_key = $26)
			{{into}} FROM (SELECT {{schema}}.now() AS now OFFSET 0) t`),
		recordAll: r(`WITH ended AS (DELETE FROM {{schema}}.operation_attempt a WHERE a.cluster = $26 AND a.job_key = ANY ($11)),
				t AS MATERIALIZED (SELECT {{schema}}.now() AS now)
			{{into}}
			FROM t, unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::bytea[], $23::int[], $24::interval[], $25::interval[])
				AS f (id, tenant, business_key, job_type, saga_id, fingerprint, fields, input, meta, cluster, job_key, instance, element_key, element, undo, policy, class, reason, code, message, variables, hash, bytes, retain, keep)`),
	}
}
