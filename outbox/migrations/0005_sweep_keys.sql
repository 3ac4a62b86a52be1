-- Keys that are used no more are removed. Staging clears idle_since, the sweep sets it; a constant keeps the hot path as cheap as it was.
ALTER TABLE {{schema}}.outbox_key ADD COLUMN idle_since timestamptz;

-- Where new keys begin: at or above whatever a removed key had reached, so that a sequence never comes twice.
CREATE TABLE {{schema}}.outbox_key_floor (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    seq       bigint NOT NULL DEFAULT 0,
    turn      bigint NOT NULL DEFAULT 0,
    raised_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO {{schema}}.outbox_key_floor DEFAULT VALUES;
