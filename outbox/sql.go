package outbox

import "strings"

// statements holds every statement of the package, rendered once for a schema.
type statements struct {
	lockKeys, insert, insertAll, stageOne, seq string

	beat, leave, live, renew, claim, release  string
	scan, horizon, mark, ack, ackUnlogged     string
	own, parkKey, move                        string
	releasing, drain, ackParked, endRelease   string
	holdAgain                                 string
	logDays, logToday, logLock, logTryLock    string
	dayStands, dayReopen, dayDropped          string
	logPage, logSettle, logNow, logPolicy     string
	logSetPolicy, logDayList                  string
	parked, startRelease, skip                string
	backlog, backlogParked                    string
	keysLock, keysRemove, keysRaise, keysMark string
}

// stored are the columns a row carries from the outbox to wherever it goes next.
const stored = `shard, id, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at`

// wire are the columns the relay needs to publish a row.
const wire = `o.shard, o.id, o.event_id, o.topic, o.business_key, o.seq, o.headers, o.body, o.occurred_at, o.created_at`

// fenced is the set of shards still ours: $1 shards, $2 fences, $3 owner. Reads outbox_shard by its key, without lock.
const fenced = `own AS MATERIALIZED (
				SELECT s.shard FROM unnest($1::smallint[], $2::bigint[]) f(shard, fence)
				JOIN {{schema}}.outbox_shard s ON s.shard = f.shard AND s.fence = f.fence AND s.owner = $3)`

// async lets the statement's own transaction commit without waiting for the disk. Evaluated once, also when there are no rows.
const async = `(SELECT set_config('synchronous_commit', 'off', true)) = 'off'`

func render(schema string) statements {
	r := func(sql string) string {
		sql = strings.NewReplacer("{{fenced}}", fenced, "{{stored}}", stored, "{{wire}}", wire, "{{async}}", async).Replace(sql)
		return strings.ReplaceAll(sql, "{{schema}}", schema)
	}
	return statements{
		// Staging.

		// Draws the transaction's xid first, before any id is drawn (path rule 21), then locks the key rows in the order given, which is
		// sorted, until the transaction ends. Uses the primary key.
		lockKeys: r(`
			WITH f AS MATERIALIZED (SELECT seq, turn FROM {{schema}}.outbox_key_floor WHERE pg_current_xact_id() IS NOT NULL)
			INSERT INTO {{schema}}.outbox_key AS k (business_key, seq, turn)
			SELECT u.key, f.seq + u.n, f.turn + 1 FROM f, unnest($1::text[], $2::bigint[]) u(key, n)
			ON CONFLICT (business_key) DO UPDATE SET seq = k.seq + excluded.seq - (SELECT f.seq FROM f), turn = k.turn + 1, idle_since = NULL`),
		// $11 counts back from the key's new sequence to this row's own.
		insert: r(`
			INSERT INTO {{schema}}.outbox (shard, event_id, type, version, class, topic, business_key, operation_id, headers, body, seq, occurred_at, created_at)
			SELECT $1, $2::uuid, $3, $4, $5, $6, $7, $8, $9, $10,
				coalesce((SELECT seq FROM {{schema}}.outbox_key WHERE business_key = $7), 0) - $11::bigint,
				coalesce($12::timestamptz, t.at), t.at
			FROM (SELECT {{schema}}.now() AS at OFFSET 0) t`),
		// lockKeys and insert in one, for the one message of a transaction. The key's row is locked before the time is read and the id
		// drawn: both come after k in the join.
		stageOne: r(`
			WITH f AS MATERIALIZED (SELECT seq, turn FROM {{schema}}.outbox_key_floor WHERE pg_current_xact_id() IS NOT NULL),
			k AS (
				INSERT INTO {{schema}}.outbox_key AS k (business_key, seq, turn) SELECT $7::text, f.seq + 1, f.turn + 1 FROM f
				ON CONFLICT (business_key) DO UPDATE SET seq = k.seq + 1, turn = k.turn + 1, idle_since = NULL RETURNING k.seq)
			INSERT INTO {{schema}}.outbox (shard, event_id, type, version, class, topic, business_key, operation_id, headers, body, seq, occurred_at, created_at)
			SELECT $1::smallint, $2::uuid, $3::text, $4::int, $5::text, $6::text, $7::text, $8::text, $9::text[], $10::bytea, k.seq, coalesce($11::timestamptz, t.at), t.at
			FROM k CROSS JOIN LATERAL (SELECT {{schema}}.now() AS at WHERE k.seq IS NOT NULL OFFSET 0) t`),
		// The same for several, in the order given; headers as text of an array.
		insertAll: r(`
			WITH t AS MATERIALIZED (SELECT {{schema}}.now() AS at)
			INSERT INTO {{schema}}.outbox (shard, event_id, type, version, class, topic, business_key, operation_id, headers, body, seq, occurred_at, created_at)
			SELECT m.shard, m.id::uuid, m.type, m.version, m.class, m.topic, m.key, m.operation, m.headers::text[], m.body,
				coalesce((SELECT k.seq FROM {{schema}}.outbox_key k WHERE k.business_key = m.key), 0) - m.back, coalesce(m.at, t.at), t.at
			FROM t, unnest($1::smallint[], $2::text[], $3::text[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[], $11::bigint[], $12::timestamptz[])
				AS m (shard, id, type, version, class, topic, key, operation, headers, body, back, at)`),
		seq: r(`(SELECT turn FROM {{schema}}.outbox_key WHERE business_key = $%d)`),

		// Shards and relays. All by primary key.

		beat: r(`
			INSERT INTO {{schema}}.outbox_relay (owner, lease_until) VALUES ($1, {{schema}}.now() + $2::interval)
			ON CONFLICT (owner) DO UPDATE SET lease_until = excluded.lease_until`),
		leave: r(`DELETE FROM {{schema}}.outbox_relay WHERE owner = $1 OR lease_until < {{schema}}.now() - interval '1 hour'`),
		live:  r(`SELECT count(*) FROM {{schema}}.outbox_relay WHERE lease_until > {{schema}}.now()`),
		renew: r(`UPDATE {{schema}}.outbox_shard SET lease_until = {{schema}}.now() + $2::interval WHERE owner = $1 RETURNING shard, fence`),
		// SKIP LOCKED is about leases here, not about rows: whoever is second just gets fewer shards.
		claim: r(`
			UPDATE {{schema}}.outbox_shard s SET owner = $1, fence = s.fence + 1, lease_until = {{schema}}.now() + $2::interval
			FROM (SELECT shard FROM {{schema}}.outbox_shard WHERE lease_until < {{schema}}.now() ORDER BY shard LIMIT $3 FOR UPDATE SKIP LOCKED) c
			WHERE s.shard = c.shard RETURNING s.shard, s.fence`),
		release: r(`UPDATE {{schema}}.outbox_shard SET owner = NULL, lease_until = '-infinity' WHERE owner = $1 AND shard = ANY($2::smallint[])`),

		// One statement, so one snapshot. Nested loop over the primary key (shard, id); no locks.
		scan: r(`
			SELECT {{wire}}, EXISTS (SELECT 1 FROM {{schema}}.outbox_parked_key p WHERE p.business_key = o.business_key)
			FROM unnest($1::smallint[], $2::bigint[], $3::int[]) s(shard, floor, most)
			CROSS JOIN LATERAL (
				SELECT * FROM {{schema}}.outbox o WHERE o.shard = s.shard AND o.id > s.floor ORDER BY o.id LIMIT s.most) o
			LIMIT $4`),
		// Before each scan, see floor.go: which incarnation of the server this is, the last id drawn, and the xmin of a snapshot that is
		// no newer than the scan's.
		horizon: r(`
			SELECT (SELECT token FROM {{schema}}.outbox_recovery), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
				last_value - (NOT is_called)::int, pg_snapshot_xmin(pg_current_snapshot())::text::bigint
			FROM {{schema}}.outbox_id_seq`),
		mark: r(`INSERT INTO {{schema}}.outbox_recovery (token) VALUES ($1::uuid) ON CONFLICT (one) DO NOTHING`),

		// Deletes exactly the rows ($4 shards, $5 ids) of shards that are still ours and logs them, by primary key (path rule 23).
		// The commit does not wait for the disk: a delete that a crash of the server undoes publishes its rows once more, with their
		// ids and in their order, as a crash before the delete does.
		ack: r(`
			WITH {{fenced}}, d AS (
				DELETE FROM {{schema}}.outbox o USING unnest($4::smallint[], $5::bigint[]) k(shard, id)
				WHERE o.shard = k.shard AND o.id = k.id AND o.shard IN (SELECT shard FROM own) RETURNING o.*),
			l AS (
				INSERT INTO {{schema}}.event_log (logged_at, {{stored}})
				SELECT t.at, {{stored}} FROM d, (SELECT {{schema}}.now() AS at OFFSET 0) t)
			SELECT count(*), (SELECT count(*) FROM own), pg_current_xact_id()::text::bigint FROM d WHERE {{async}}`),
		ackUnlogged: r(`
			WITH {{fenced}}, d AS (
				DELETE FROM {{schema}}.outbox o USING unnest($4::smallint[], $5::bigint[]) k(shard, id)
				WHERE o.shard = k.shard AND o.id = k.id AND o.shard IN (SELECT shard FROM own) RETURNING 1)
			SELECT count(*), (SELECT count(*) FROM own), pg_current_xact_id()::text::bigint FROM d WHERE {{async}}`),
		// Parking. The shared lock on the shard's row keeps it ours until the transaction ends.

		own: r(`SELECT 1 FROM {{schema}}.outbox_shard WHERE shard = $1 AND fence = $2 AND owner = $3 FOR SHARE`),
		parkKey: r(`
			INSERT INTO {{schema}}.outbox_parked_key (business_key, shard, event_id, reason, since) VALUES ($1, $2, $3::uuid, $4, {{schema}}.now())
			ON CONFLICT (business_key) DO NOTHING`),
		move: r(`
			WITH d AS (
				DELETE FROM {{schema}}.outbox o WHERE o.shard = $1 AND o.id = ANY($2::bigint[]) RETURNING o.*)
			INSERT INTO {{schema}}.outbox_parked ({{stored}}) SELECT {{stored}} FROM d`),

		// Release: the relay that owns the shard drains the parked rows.

		releasing: r(`SELECT business_key, shard FROM {{schema}}.outbox_parked_key WHERE state = 'releasing' AND shard = ANY($1::smallint[]) ORDER BY since LIMIT 100`),
		drain:     r(`SELECT {{wire}}, false FROM {{schema}}.outbox_parked o WHERE o.business_key = $1 ORDER BY o.id LIMIT $2`),
		ackParked: r(`
			WITH {{fenced}}, d AS (
				DELETE FROM {{schema}}.outbox_parked o WHERE o.business_key = $4 AND o.id = ANY($5::bigint[]) AND o.shard IN (SELECT shard FROM own) RETURNING o.*),
			l AS (
				INSERT INTO {{schema}}.event_log (logged_at, {{stored}})
				SELECT t.at, {{stored}} FROM d, (SELECT {{schema}}.now() AS at OFFSET 0) t WHERE $6::boolean)
			SELECT count(*), (SELECT count(*) FROM own) FROM d`),
		endRelease: r(`
			DELETE FROM {{schema}}.outbox_parked_key k WHERE k.business_key = $1 AND k.state = 'releasing'
			AND NOT EXISTS (SELECT 1 FROM {{schema}}.outbox_parked p WHERE p.business_key = k.business_key)`),
		holdAgain: r(`
			UPDATE {{schema}}.outbox_parked_key SET state = 'held', event_id = $2::uuid, reason = $3, since = {{schema}}.now()
			WHERE business_key = $1 AND state = 'releasing'`),

		// The event log's partitions.

		logLock:    r(`SELECT pg_advisory_xact_lock(hashtextextended('journeyman.event_log.{{schema}}', 0))`),
		logTryLock: r(`SELECT pg_try_advisory_xact_lock(hashtextextended('journeyman.event_log.{{schema}}', 0))`),
		logToday:   r(`SELECT ({{schema}}.now() AT TIME ZONE 'UTC')::date`),
		logDays: r(`
			SELECT c.relname FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = '{{schema}}.event_log'::regclass ORDER BY c.relname`),

		// Is the log archived, is the day $1 verified, does it still hold what was archived? Reads one partition whole.
		dayStands: r(`
			SELECT p.archive, coalesce(d.state = 'verified', false), coalesce(d.rows = c.n AND d.id_sum = c.ids, false)
			FROM {{schema}}.event_log_policy p
			LEFT JOIN {{schema}}.event_log_day d ON d.day = $1::date
			LEFT JOIN LATERAL (
				SELECT count(*) AS n, coalesce(sum(e.id), 0) AS ids FROM {{schema}}.event_log e
				WHERE e.logged_at >= $1::date::timestamp AT TIME ZONE 'UTC' AND e.logged_at < ($1::date + 1)::timestamp AT TIME ZONE 'UTC') c
				ON p.archive AND d.state = 'verified'`),
		dayReopen:  r(`UPDATE {{schema}}.event_log_day SET state = 'writing', verified_at = NULL WHERE day = $1::date`),
		dayDropped: r(`UPDATE {{schema}}.event_log_day SET state = 'dropped', dropped_at = {{schema}}.now() WHERE day = $1::date`),

		// Reading the event log: one page after ($1, $2), before $3, of types that match $4 and keys $5. By index event_log_time.
		logPage: r(`
			SELECT logged_at, shard, id, event_id::text, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at
			FROM {{schema}}.event_log
			WHERE logged_at >= $1 AND (logged_at, id) > ($1, $2::bigint) AND logged_at < $3
				AND ($4::text[] IS NULL OR type ~ ANY ($4)) AND ($5::text[] IS NULL OR business_key = ANY ($5))
			ORDER BY logged_at, id LIMIT $6`),
		// Held for a moment: whoever wrote to the log before has committed when it is granted.
		logSettle:    r(`LOCK TABLE ONLY {{schema}}.event_log IN SHARE MODE`),
		logNow:       r(`SELECT {{schema}}.now()`),
		logPolicy:    r(`SELECT archive FROM {{schema}}.event_log_policy`),
		logSetPolicy: r(`UPDATE {{schema}}.event_log_policy SET archive = $1, changed_by = $2, reason = $3, changed_at = {{schema}}.now() WHERE archive <> $1`),
		logDayList: r(`
			SELECT coalesce(p.day, d.day), p.day IS NOT NULL, coalesce(d.state, ''), coalesce(d.rows, 0), d.verified_at, d.dropped_at
			FROM (
				SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
				WHERE i.inhparent = '{{schema}}.event_log'::regclass AND c.relname ~ '^event_log_[0-9]{8}$') p
			FULL JOIN {{schema}}.event_log_day d ON d.day = p.day ORDER BY 1`),

		// Keys used no more. Each reads the table whole, once an hour in one process.

		keysLock: r(`SELECT pg_try_advisory_xact_lock(hashtextextended('journeyman.outbox_key.{{schema}}', 0))`),
		// A key in use just now is skipped: it is not idle. Whoever waits for one that goes saw the floor it goes below: a
		// statement does not run for ten minutes.
		keysRemove: r(`
			DELETE FROM {{schema}}.outbox_key d WHERE d.business_key IN (
				SELECT k.business_key FROM {{schema}}.outbox_key k, {{schema}}.outbox_key_floor f, (SELECT {{schema}}.now() AS at OFFSET 0) t
				WHERE k.idle_since < t.at - $1::interval AND k.seq <= f.seq AND k.turn <= f.turn AND f.raised_at < t.at - interval '10 minutes'
					AND NOT EXISTS (SELECT 1 FROM {{schema}}.outbox_order o WHERE o.business_key = k.business_key)
				LIMIT $2 FOR UPDATE OF k SKIP LOCKED)`),
		keysRaise: r(`
			UPDATE {{schema}}.outbox_key_floor f SET seq = greatest(f.seq, m.seq), turn = greatest(f.turn, m.turn), raised_at = {{schema}}.now()
			FROM (
				SELECT max(k.seq) AS seq, max(k.turn) AS turn FROM {{schema}}.outbox_key k, (SELECT {{schema}}.now() AS at OFFSET 0) t
				WHERE k.idle_since < t.at - $1::interval
					AND NOT EXISTS (SELECT 1 FROM {{schema}}.outbox_order o WHERE o.business_key = k.business_key)) m
			WHERE m.seq > f.seq OR m.turn > f.turn`),
		keysMark: r(`
			UPDATE {{schema}}.outbox_key u SET idle_since = {{schema}}.now() WHERE u.business_key IN (
				SELECT k.business_key FROM {{schema}}.outbox_key k WHERE k.idle_since IS NULL LIMIT $1 FOR UPDATE SKIP LOCKED)`),

		// For operators.

		parked: r(`
			SELECT k.business_key, k.event_id::text, k.reason, k.state, k.since, count(p.id), coalesce(min(p.created_at), k.since),
				coalesce((array_agg(p.type ORDER BY p.id))[1], ''), coalesce((array_agg(p.topic ORDER BY p.id))[1], '')
			FROM {{schema}}.outbox_parked_key k LEFT JOIN {{schema}}.outbox_parked p USING (business_key)
			GROUP BY k.business_key ORDER BY k.since, k.business_key LIMIT $1`),
		startRelease: r(`UPDATE {{schema}}.outbox_parked_key SET state = 'releasing' WHERE business_key = $1 AND state = 'held'`),
		skip: r(`
			WITH d AS (
				DELETE FROM {{schema}}.outbox_parked p USING {{schema}}.outbox_parked_key k
				WHERE k.business_key = $1 AND k.state = 'held' AND p.business_key = k.business_key AND p.event_id = $2::uuid RETURNING p.*)
			INSERT INTO {{schema}}.outbox_skipped SELECT {{stored}}, $3, {{schema}}.now() FROM d`),
		backlog: r(`
			SELECT topic, class, count(*), extract(epoch FROM {{schema}}.now() - min(created_at))::float8
			FROM {{schema}}.outbox GROUP BY topic, class ORDER BY topic`),
		backlogParked: r(`SELECT (SELECT count(*) FROM {{schema}}.outbox_parked_key), (SELECT count(*) FROM {{schema}}.outbox_parked)`),
	}
}
