-- Payloads that are too large for a process variable (spec W12). The process carries id and checksum.
CREATE TABLE {{schema}}.claim_check (
    id           text PRIMARY KEY,
    operation_id text NOT NULL,
    sum          bytea NOT NULL,       -- SHA-256 of body
    body         bytea NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);
ALTER TABLE {{schema}}.claim_check ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX claim_check_expires ON {{schema}}.claim_check (expires_at);
