-- Strict order (spec E4): the last message of a key in each order scope, and the one before it.
CREATE TABLE {{schema}}.outbox_order (
    business_key text NOT NULL,
    scope        text NOT NULL,
    seq          bigint NOT NULL,
    previous     bigint NOT NULL,
    PRIMARY KEY (business_key, scope)
) WITH (fillfactor = 70);

-- Whether analytical messages are dropped now. Whoever stages one looks at the backlog again, at most once a second.
CREATE TABLE {{schema}}.outbox_pressure (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    shedding   boolean NOT NULL DEFAULT false,
    backlog    bigint NOT NULL DEFAULT 0,
    sampled_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO {{schema}}.outbox_pressure DEFAULT VALUES;
-- One row for each message dropped, until a marker event has told how many.
CREATE TABLE {{schema}}.outbox_shed (
    type    text NOT NULL,
    version int NOT NULL,
    topic   text NOT NULL,
    shed_at timestamptz NOT NULL
);

-- Heads of the hash chains of class audit. The row's lock orders the transactions of a chain.
CREATE TABLE {{schema}}.outbox_chain (
    chain text PRIMARY KEY,
    link  bigint NOT NULL DEFAULT 0,
    hash  text NOT NULL DEFAULT '0000000000000000000000000000000000000000000000000000000000000000'
) WITH (fillfactor = 50);

-- The append-only ledger of classes audit and compliance, written in the transaction that stages the message.
CREATE TABLE {{schema}}.event_ledger (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recorded_at  timestamptz NOT NULL,
    class        text NOT NULL,
    chain        text,             -- of class audit only, with link, previous and hash
    link         bigint,
    previous     text,
    hash         text,
    event_id     uuid NOT NULL UNIQUE, -- a message cannot be written again under its id
    type         text NOT NULL,
    version      int NOT NULL,
    topic        text NOT NULL,
    business_key text NOT NULL,
    seq          bigint NOT NULL,
    operation_id text NOT NULL,
    headers      text[] NOT NULL,
    body         bytea NOT NULL,   -- as in the outbox, sealed where the catalog says so
    body_sum     text NOT NULL,    -- SHA-256 of the clear body, in hex
    occurred_at  timestamptz NOT NULL,
    UNIQUE (chain, link)
);
CREATE INDEX event_ledger_time ON {{schema}}.event_ledger USING brin (recorded_at);

-- With the setting journeyman.reseal a sealed body may become another sealed body, and nothing else may change.
CREATE FUNCTION {{schema}}.event_ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before {{schema}}.event_ledger;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        before := OLD;
        before.body := NEW.body;
        IF current_setting('journeyman.reseal', true) = 'on' AND before IS NOT DISTINCT FROM NEW
            AND substring(OLD.body FROM 1 FOR 4) = 'jms1'::bytea AND substring(NEW.body FROM 1 FOR 4) = 'jms1'::bytea THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'event_ledger is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER event_ledger_append_only BEFORE UPDATE OR DELETE ON {{schema}}.event_ledger
    FOR EACH ROW EXECUTE FUNCTION {{schema}}.event_ledger_append_only();
CREATE TRIGGER event_ledger_no_truncate BEFORE TRUNCATE ON {{schema}}.event_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.event_ledger_append_only();

-- The hash of a link: SHA-256 over all fields, each behind its length. Package events/audit computes the same.
CREATE FUNCTION {{schema}}.event_ledger_hash(previous text, chain text, link bigint, event_id uuid, type text, version int, topic text, business_key text,
    seq bigint, operation_id text, occurred_at timestamptz, recorded_at timestamptz, headers text[], body_sum text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    field text;
    whole text := 'journeyman.audit.v1,';
BEGIN
    FOREACH field IN ARRAY ARRAY[previous, chain, link::text, event_id::text, type, version::text, topic, business_key, seq::text, operation_id,
        (extract(epoch FROM occurred_at) * 1000000)::bigint::text, (extract(epoch FROM recorded_at) * 1000000)::bigint::text, body_sum] || headers LOOP
        whole := whole || octet_length(field) || ':' || field || ',';
    END LOOP;
    RETURN encode(sha256(convert_to(whole, 'UTF8')), 'hex');
END $$;

-- The event log's own guard lets bodies be sealed anew, too.
CREATE OR REPLACE FUNCTION {{schema}}.event_log_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before {{schema}}.event_log;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        before := OLD;
        before.body := NEW.body;
        IF current_setting('journeyman.reseal', true) = 'on' AND before IS NOT DISTINCT FROM NEW
            AND substring(OLD.body FROM 1 FOR 4) = 'jms1'::bytea AND substring(NEW.body FROM 1 FOR 4) = 'jms1'::bytea THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'event_log is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
