-- What people did. Rows are chained by hash and never change; "head" is the lock of the chain and says where it ends.
CREATE TABLE {{schema}}.operator_audit (
    seq       bigint PRIMARY KEY,           -- from 1, without gaps
    at        timestamptz NOT NULL,         -- of the database
    actor     text NOT NULL,
    action    text NOT NULL,
    target    text NOT NULL,
    reason    text NOT NULL,
    before    json NOT NULL,                -- json, not jsonb: the hash covers the text
    after     json NOT NULL,
    prev_hash bytea NOT NULL CHECK (length(prev_hash) = 32),
    hash      bytea NOT NULL CHECK (length(hash) = 32)
);
CREATE INDEX operator_audit_target ON {{schema}}.operator_audit (target);

CREATE TABLE {{schema}}.operator_audit_head (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    seq  bigint NOT NULL,
    hash bytea NOT NULL
);
INSERT INTO {{schema}}.operator_audit_head (seq, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

CREATE FUNCTION {{schema}}.operator_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'operator_audit is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege'; END $$;
CREATE TRIGGER operator_audit_append_only BEFORE UPDATE OR DELETE ON {{schema}}.operator_audit
    FOR EACH ROW EXECUTE FUNCTION {{schema}}.operator_audit_append_only();
CREATE TRIGGER operator_audit_no_truncate BEFORE TRUNCATE ON {{schema}}.operator_audit
    FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.operator_audit_append_only();

-- One retry per incident: a cause that persists makes a new incident with a new key.
CREATE TABLE {{schema}}.operator_retry (
    cluster      text NOT NULL,
    incident_key bigint NOT NULL,
    audit_seq    bigint NOT NULL,
    command_id   bigint NOT NULL,
    actor        text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (cluster, incident_key)
);
