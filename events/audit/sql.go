package audit

import "strings"

type statements struct{ ledger, heads, links, chains string }

const columns = `recorded_at, class, coalesce(chain, ''), coalesce(link, 0), coalesce(previous, ''), coalesce(hash, ''), event_id::text, type, version, topic,
	business_key, seq, operation_id, headers, body, body_sum, occurred_at`

func render(schema string) statements {
	r := func(sql string) string {
		return strings.NewReplacer("{{schema}}", schema, "{{columns}}", columns).Replace(sql)
	}
	return statements{
		// In the order of the chains. By the unique index on (chain, link).
		ledger: r(`SELECT {{columns}} FROM {{schema}}.event_ledger ORDER BY event_ledger.chain NULLS FIRST, event_ledger.link`),
		heads:  r(`SELECT chain, link, hash FROM {{schema}}.outbox_chain ORDER BY chain`),
		// Links of one chain after $2, at most $3.
		links:  r(`SELECT {{columns}} FROM {{schema}}.event_ledger WHERE event_ledger.chain = $1 AND event_ledger.link > $2 ORDER BY event_ledger.link LIMIT $3`),
		chains: r(`SELECT chain FROM {{schema}}.outbox_chain WHERE link > 0 ORDER BY chain`),
	}
}
