-- Whether a dead message was copied to the DLQ topic of its type.
ALTER TABLE {{schema}}.inbox_dead ADD COLUMN forwarded_at timestamptz, ADD COLUMN forward_error text;
CREATE INDEX inbox_dead_unforwarded ON {{schema}}.inbox_dead (id) WHERE forwarded_at IS NULL;

-- What people did with dead and parked messages, each with the message as it was then. Rows never change.
CREATE TABLE {{schema}}.dead_letter_act (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             timestamptz NOT NULL,
    actor          text NOT NULL CHECK (actor <> ''),
    action         text NOT NULL CHECK (action IN ('redrive', 'redirect', 'edit', 'drop')),
    reason         text NOT NULL CHECK (reason <> ''),
    root_cause     text NOT NULL CHECK (root_cause <> '' OR action = 'drop'), -- spec E10
    target         text NOT NULL,            -- where it went: "group:x", "topic:x", "" when dropped
    redrive_id     text NOT NULL,
    new_message_id text NOT NULL DEFAULT '', -- of the edited message
    new_body       bytea,                    -- of the edited message, encrypted as the original is
    letter         bigint NOT NULL,          -- id in inbox_dead
    consumer       text NOT NULL,
    state          text NOT NULL,
    business_key   text NOT NULL,
    message_id     text NOT NULL,
    type           text NOT NULL,
    topic          text NOT NULL,
    partition      int NOT NULL,
    "offset"       bigint NOT NULL,
    headers        text[] NOT NULL,
    body           bytea NOT NULL,
    sent_at        timestamptz NOT NULL,
    attempts       int NOT NULL,
    class          text NOT NULL,
    dead_reason    text NOT NULL,
    error          text NOT NULL,
    first_at       timestamptz NOT NULL,
    died_at        timestamptz NOT NULL
);
CREATE INDEX dead_letter_act_message ON {{schema}}.dead_letter_act (message_id);
CREATE INDEX dead_letter_act_new ON {{schema}}.dead_letter_act (new_message_id) WHERE new_message_id <> '';
CREATE FUNCTION {{schema}}.dead_letter_act_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'dead_letter_act is append-only: % refused', TG_OP USING ERRCODE = 'insufficient_privilege'; END $$;
CREATE TRIGGER dead_letter_act_append_only BEFORE UPDATE OR DELETE ON {{schema}}.dead_letter_act
    FOR EACH ROW EXECUTE FUNCTION {{schema}}.dead_letter_act_append_only();
CREATE TRIGGER dead_letter_act_no_truncate BEFORE TRUNCATE ON {{schema}}.dead_letter_act
    FOR EACH STATEMENT EXECUTE FUNCTION {{schema}}.dead_letter_act_append_only();

-- Positions of edited and redirected messages in a group's tables, where the broker's are unique.
CREATE SEQUENCE {{schema}}.dead_letter_offset;
