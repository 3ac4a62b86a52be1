package outbox

import (
	"strings"

	"github.com/vitrip/journeyman/events"
)

// classStatements are those of classes that ask for more than a row in the outbox, see class.go.
type classStatements struct {
	insertOrdered, insertLedger, insertLedgerOrdered string
	insertAudit, insertAuditOrdered                  string
	lockChains, pressure, insertShed, shed, shedLock string
	pressed                                          string
}

func renderClasses(schema string) classStatements {
	r := func(sql string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
	return classStatements{
		insertOrdered: r(insertSQL(true, false, false)), insertLedger: r(insertSQL(false, true, false)), insertLedgerOrdered: r(insertSQL(true, true, false)),
		insertAudit: r(insertSQL(false, true, true)), insertAuditOrdered: r(insertSQL(true, true, true)),
		// Locks the heads of hash chains in the order given, which is sorted, until the transaction ends.
		lockChains: r(`
			INSERT INTO {{schema}}.outbox_chain AS c (chain) SELECT u.chain FROM unnest($1::text[]) u(chain)
			ON CONFLICT (chain) DO UPDATE SET link = c.link`),
		// Counts the backlog up to the limit $1, unless somebody does or did so within a second.
		pressure: r(`
			WITH due AS MATERIALIZED (
				SELECT p.one FROM {{schema}}.outbox_pressure p WHERE p.sampled_at < {{schema}}.now() - interval '1 second' FOR UPDATE SKIP LOCKED),
			b AS MATERIALIZED (
				SELECT count(*) AS n FROM (SELECT 1 FROM {{schema}}.outbox WHERE EXISTS (SELECT 1 FROM due) LIMIT $1::bigint + 1) o)
			UPDATE {{schema}}.outbox_pressure p SET sampled_at = {{schema}}.now(), backlog = b.n,
				shedding = b.n > $1::bigint OR p.shedding AND b.n > $1::bigint / 2
			FROM due, b WHERE p.one = due.one`),
		insertShed: r(`
			WITH t AS (SELECT {{schema}}.now() AS at OFFSET 0),
			p AS (SELECT shedding FROM {{schema}}.outbox_pressure),
			s AS (INSERT INTO {{schema}}.outbox_shed (type, version, topic, shed_at) SELECT $3, $4, $6, t.at FROM p, t WHERE p.shedding),
			k AS (UPDATE {{schema}}.outbox_key k SET seq = k.seq + 1 FROM p WHERE k.business_key = $7 AND NOT p.shedding RETURNING k.seq)
			INSERT INTO {{schema}}.outbox (shard, event_id, type, version, class, topic, business_key, operation_id, headers, body, seq, occurred_at, created_at)
			SELECT $1, $2::uuid, $3, $4, $5, $6, $7, $8, $9, $10, k.seq, coalesce($11::timestamptz, t.at), t.at FROM k, t`),
		shed: r(`
			WITH d AS (DELETE FROM {{schema}}.outbox_shed RETURNING *)
			SELECT type, version, topic, count(*), min(shed_at), max(shed_at) FROM d GROUP BY type, version, topic ORDER BY type, version`),
		pressed:  r(`SELECT p.shedding, p.backlog, CASE WHEN p.sampled_at > '-infinity' THEN p.sampled_at END, (SELECT count(*) FROM {{schema}}.outbox_shed) FROM {{schema}}.outbox_pressure p`),
		shedLock: r(`SELECT pg_try_advisory_xact_lock(hashtextextended('journeyman.outbox_shed.{{schema}}', 0))`),
	}
}

// insertAs gives the statement of a row by what it asks for.
func (s classStatements) insertAs(ordered, ledger, chained bool) string {
	switch {
	case chained && ordered:
		return s.insertAuditOrdered
	case chained:
		return s.insertAudit
	case ledger && ordered:
		return s.insertLedgerOrdered
	case ledger:
		return s.insertLedger
	}
	return s.insertOrdered
}

// insertSQL builds the statement of a row by what it asks for. $1 to $12 are
// those of the plain insert, $13 the order scope, $14 the digest of the clear
// body, $15 the hash chain, whose head is locked.
func insertSQL(ordered, ledger, chained bool) string {
	with := []string{
		`t AS (SELECT {{schema}}.now() AS at OFFSET 0)`,
		`k AS (SELECT coalesce((SELECT seq FROM {{schema}}.outbox_key WHERE business_key = $7), 0) - $11::bigint AS seq)`,
	}
	headers, from := `h AS (SELECT $9::text[] AS headers)`, `t, k, h`
	sent := `h.headers`
	if ordered {
		with = append(with, `o AS (
				INSERT INTO {{schema}}.outbox_order AS o (business_key, scope, seq, previous) SELECT $7, $13, k.seq, 0 FROM k
				ON CONFLICT (business_key, scope) DO UPDATE SET previous = o.seq, seq = excluded.seq RETURNING previous)`)
		headers = `h AS (SELECT $9::text[] || ARRAY['` + events.HeaderPreviousSequence + `', o.previous::text] AS headers FROM o)`
	}
	with = append(with, headers)
	if chained {
		from += `, x`
		sent += ` || ARRAY['` + events.HeaderAuditChain + `', $15, '` + events.HeaderAuditLink + `', x.link::text, '` +
			events.HeaderAuditPrevious + `', x.previous, '` + events.HeaderAuditHash + `', x.hash]`
		with = append(with, `x AS (
				SELECT c.link + 1 AS link, c.hash AS previous, {{schema}}.event_ledger_hash(c.hash, c.chain, c.link + 1, $2::uuid, $3, $4, $6, $7,
					k.seq, $8, coalesce($12::timestamptz, t.at), t.at, h.headers, $14) AS hash
				FROM {{schema}}.outbox_chain c, t, k, h WHERE c.chain = $15 OFFSET 0)`,
			`u AS (UPDATE {{schema}}.outbox_chain c SET link = x.link, hash = x.hash FROM x WHERE c.chain = $15)`)
	}
	if ledger {
		place := `NULL, NULL, NULL, NULL`
		if chained {
			place = `$15, x.link, x.previous, x.hash`
		}
		with = append(with, `l AS (
				INSERT INTO {{schema}}.event_ledger (recorded_at, class, chain, link, previous, hash, event_id, type, version, topic, business_key, seq,
					operation_id, headers, body, body_sum, occurred_at)
				SELECT t.at, $5, `+place+`, $2::uuid, $3, $4, $6, $7, k.seq, $8, h.headers, $10, $14, coalesce($12::timestamptz, t.at) FROM `+from+`)`)
	}
	scope := ""
	if ledger && !ordered {
		scope = ` WHERE $13::text IS NOT NULL` // the parameter must have a type
	}
	return `
			WITH ` + strings.Join(with, ",\n\t\t\t") + `
			INSERT INTO {{schema}}.outbox (shard, event_id, type, version, class, topic, business_key, operation_id, headers, body, seq, occurred_at, created_at)
			SELECT $1, $2::uuid, $3, $4, $5, $6, $7, $8, ` + sent + `, $10, k.seq, coalesce($12::timestamptz, t.at), t.at FROM ` + from + scope
}
