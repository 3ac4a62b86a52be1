-- Work that is due now or later, put there in the transaction that made it necessary (spec E14). id is the order of a key.
CREATE TABLE {{schema}}.work_item (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue       text NOT NULL,
    item_id     text NOT NULL,
    key         text NOT NULL,     -- items of one key run one at a time; '' for none
    priority    smallint NOT NULL CHECK (priority BETWEEN 0 AND 2),
    body        bytea NOT NULL,
    print       bytea NOT NULL,    -- of key and clear body
    origin      jsonb NOT NULL,
    not_before  timestamptz NOT NULL,
    next_at     timestamptz NOT NULL,
    attempts    int NOT NULL,      -- that failed
    last_error  text NOT NULL,
    created_at  timestamptz NOT NULL,
    first_at    timestamptz,       -- of the first attempt
    owner       text NOT NULL DEFAULT '',
    fence       bigint NOT NULL DEFAULT 0, -- grows with every claim
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    UNIQUE (queue, item_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX work_item_due ON {{schema}}.work_item (queue, priority, next_at, id);
CREATE INDEX work_item_key ON {{schema}}.work_item (queue, key, id) WHERE key <> '';

-- What a person must decide about: refused ("parked") or failed for good ("dead").
CREATE TABLE {{schema}}.work_quarantine (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state       text NOT NULL CHECK (state IN ('dead', 'parked')),
    queue       text NOT NULL,
    item_id     text NOT NULL,
    key         text NOT NULL,
    priority    smallint NOT NULL,
    body        bytea NOT NULL,
    print       bytea NOT NULL,
    origin      jsonb NOT NULL,
    not_before  timestamptz NOT NULL,
    attempts    int NOT NULL,
    class       text NOT NULL,
    reason      text NOT NULL,
    error       text NOT NULL,
    created_at  timestamptz NOT NULL,
    first_at    timestamptz,
    died_at     timestamptz NOT NULL
);
CREATE INDEX work_quarantine_queue ON {{schema}}.work_quarantine (queue, id);
