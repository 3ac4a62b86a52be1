package archive

import "strings"

// statements holds every statement of the package, rendered once for a schema.
type statements struct {
	lock, next, lastPart, insertPart, addDay string
	unverified, markPart, markDay, parts     string
	previous, manifests, insertManifest      string
}

func render(schema string) statements {
	r := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return statements{
		lock: r(`SELECT pg_try_advisory_xact_lock(hashtextextended('journeyman.archive.{{schema}}', 0))`),
		// The oldest day that is over since $1 and not archived. By the catalog: a few rows.
		next: r(`
			SELECT p.day FROM (
				SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
				WHERE i.inhparent = '{{schema}}.event_log'::regclass AND c.relname ~ '^event_log_[0-9]{8}$') p
			LEFT JOIN {{schema}}.event_log_day d ON d.day = p.day
			WHERE (p.day + 1)::timestamp AT TIME ZONE 'UTC' <= $1 AND coalesce(d.state, 'writing') = 'writing'
			ORDER BY p.day LIMIT 1`),
		// By primary key.
		lastPart: r(`SELECT n, last_at, last_id FROM {{schema}}.event_archive_part WHERE day = $1 ORDER BY n DESC LIMIT 1`),
		insertPart: r(`
			INSERT INTO {{schema}}.event_archive_part (day, n, name, rows, bytes, sha256, first_at, first_id, last_at, last_id, id_sum, types, written_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::numeric, $12::text::jsonb, {{schema}}.now())`),
		addDay: r(`
			INSERT INTO {{schema}}.event_log_day AS d (day, state, rows, id_sum) VALUES ($1, 'writing', $2, $3::text::numeric)
			ON CONFLICT (day) DO UPDATE SET rows = d.rows + excluded.rows, id_sum = d.id_sum + excluded.id_sum`),
		unverified: r(`SELECT n FROM {{schema}}.event_archive_part WHERE day = $1 AND verified_at IS NULL ORDER BY n LIMIT 1`),
		markPart:   r(`UPDATE {{schema}}.event_archive_part SET verified_at = {{schema}}.now() WHERE day = $1 AND n = $2`),
		markDay:    r(`UPDATE {{schema}}.event_log_day SET state = 'verified', verified_at = {{schema}}.now() WHERE day = $1 AND state = 'writing'`),
		parts: r(`
			SELECT name, rows, bytes, sha256, first_at, first_id, last_at, last_id, id_sum::text, types::text
			FROM {{schema}}.event_archive_part WHERE day = $1 AND ($2 = 0 OR n = $2) ORDER BY n`),
		previous: r(`SELECT name, sha256 FROM {{schema}}.event_archive_manifest ORDER BY written_at DESC, day DESC, n DESC LIMIT 1`),
		manifests: r(`
			SELECT day, n, parts, name, sha256 FROM {{schema}}.event_archive_manifest WHERE $1::date IS NULL OR day = $1 ORDER BY written_at, day, n`),
		insertManifest: r(`INSERT INTO {{schema}}.event_archive_manifest (day, n, parts, name, sha256, written_at) VALUES ($1, $2, $3, $4, $5, {{schema}}.now())`),
	}
}
