-- Every statement that writes the table opens all its indexes, those too that its row is not in: three fewer are some 6 % of what an
-- operation's end costs at the server. What is out of the
-- ordinary is looked at by people, and is little: one index holds it.
DROP INDEX {{schema}}.operation_orphan, {{schema}}.operation_revoked, {{schema}}.operation_asks_over, {{schema}}.operation_unknown;
CREATE INDEX operation_odd ON {{schema}}.operation (asks_over_at, created_at)
    WHERE orphan <> '' OR state = 'revoked' OR effect = 'maybe' OR asks_over_at IS NOT NULL;
