-- Retention (spec I9): answers go to the archive when their retention ends, records are deleted after a year, keys stay.
ALTER TABLE {{schema}}.record ADD COLUMN archived_at timestamptz;
ALTER TABLE {{schema}}.record ADD COLUMN archive text NOT NULL DEFAULT '';
ALTER TABLE {{schema}}.record ADD COLUMN result_sha256 bytea;
-- A record that has ended has its answer, here or in the archive: a key without one would never answer again.
ALTER TABLE {{schema}}.record ADD CONSTRAINT record_final CHECK (state = 'in_progress' OR finished_at IS NOT NULL AND (final IS NOT NULL OR archived_at IS NOT NULL));
CREATE INDEX record_expiry ON {{schema}}.record (expires_at) WHERE archived_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX record_archived ON {{schema}}.record (finished_at) WHERE archived_at IS NOT NULL;

-- A key whose record is deleted stays: its repeat is answered 410, never run.
ALTER TABLE {{schema}}.record_key ADD COLUMN deleted_at timestamptz;
CREATE INDEX record_key_operation ON {{schema}}.record_key (operation_id);

-- What stays of operations that moved money (spec D3).
CREATE TABLE {{schema}}.record_money (
    operation_id  text PRIMARY KEY,
    tenant        text NOT NULL,
    type          text NOT NULL,
    business_key  text NOT NULL,
    state         text NOT NULL,
    result_sha256 bytea NOT NULL,
    archive       text NOT NULL,
    finished_at   timestamptz NOT NULL,
    keep_until    timestamptz NOT NULL
);
CREATE INDEX record_money_keep ON {{schema}}.record_money (keep_until);
