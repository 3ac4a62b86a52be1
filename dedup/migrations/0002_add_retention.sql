-- Spec D1, D3: what stays how long. expires_at is the retention's end; a money operation is slimmed then and goes after keep.
-- Path rule 11: a call that the other system had not seen yet is asked about again.
ALTER TABLE {{schema}}.operation
    ADD COLUMN keep       interval,                 -- business key and result hash stay this long after the end; NULL = they go with the row
    ADD COLUMN slimmed_at timestamptz,              -- everything but key, fingerprint, class and hashes is gone since then
    ADD COLUMN ask_at     timestamptz,              -- ask the other system again, or undo what landed late; NULL = never
    ADD COLUMN ask_from   timestamptz,              -- since when it is asked
    ADD COLUMN asked      integer NOT NULL DEFAULT 0; -- times it said that nothing happened
-- A round of the purge goes through the index once, from where its last pass ended.
DROP INDEX {{schema}}.operation_expires;
CREATE INDEX operation_expires ON {{schema}}.operation (expires_at, operation_id) WHERE expires_at IS NOT NULL;
CREATE INDEX operation_ask ON {{schema}}.operation (ask_at) WHERE ask_at IS NOT NULL;
