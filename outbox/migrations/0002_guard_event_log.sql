-- The event log is append-only: rows are added and whole days are dropped, nothing else (spec E4, E9).
CREATE FUNCTION {{schema}}.event_log_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'event_log is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege'; END $$;
CREATE TRIGGER event_log_append_only BEFORE UPDATE OR DELETE ON {{schema}}.event_log -- PostgreSQL gives it to each partition
    FOR EACH ROW EXECUTE FUNCTION {{schema}}.event_log_append_only();
CREATE TRIGGER event_log_no_truncate BEFORE TRUNCATE ON {{schema}}.event_log -- this one the relay gives to each new partition
    FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.event_log_append_only();
DO $$ DECLARE part regclass; BEGIN
    FOR part IN SELECT i.inhrelid::regclass FROM pg_catalog.pg_inherits i WHERE i.inhparent = '{{schema}}.event_log'::regclass LOOP
        EXECUTE format('CREATE TRIGGER event_log_no_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.event_log_append_only()', part);
    END LOOP;
END $$;

-- The order in which the log is read. New rows come at its right end.
CREATE INDEX event_log_time ON {{schema}}.event_log (logged_at, id);

-- With archive, a day is dropped only after its archive was verified (package events/archive).
CREATE TABLE {{schema}}.event_log_policy (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    archive    boolean NOT NULL DEFAULT false,
    changed_by text NOT NULL DEFAULT '',
    reason     text NOT NULL DEFAULT '',
    changed_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO {{schema}}.event_log_policy DEFAULT VALUES;

-- What the archive holds of a day. A day without a row is not archived.
CREATE TABLE {{schema}}.event_log_day (
    day         date PRIMARY KEY,
    state       text NOT NULL CHECK (state IN ('writing', 'verified', 'dropped')),
    rows        bigint NOT NULL,
    id_sum      numeric NOT NULL, -- with rows it tells whether the partition still holds what was archived
    verified_at timestamptz,
    dropped_at  timestamptz
);
