-- One row per attempt of a long-running operation: its gate, its decision, where it runs (path rules 10, 15).
CREATE TABLE {{schema}}.saga (
    id                   text PRIMARY KEY,
    tenant               text NOT NULL,
    type                 text NOT NULL,
    key                  text NOT NULL,
    attempt              int NOT NULL,
    business_key         text NOT NULL,
    correlation_id       text NOT NULL,
    traceparent          text NOT NULL DEFAULT '',
    actor                jsonb NOT NULL DEFAULT '{}',
    variables            jsonb NOT NULL DEFAULT '{}',
    cluster              text,
    process_instance_key bigint,
    decision             text CHECK (decision IN ('completed', 'failed', 'expired', 'cancelled')),
    reason               text NOT NULL DEFAULT '',
    state                text NOT NULL CHECK (state IN ('starting', 'running', 'compensating', 'manual', 'completed', 'failed', 'expired')),
    started_at           timestamptz NOT NULL,
    deadline             timestamptz NOT NULL,
    begun_at             timestamptz,
    decided_at           timestamptz,
    closed_at            timestamptz,
    checked_at           timestamptz -- when the sweep last asked for its instance
) WITH (fillfactor = 80);
CREATE INDEX saga_open ON {{schema}}.saga (started_at) WHERE closed_at IS NULL;
CREATE INDEX saga_recent ON {{schema}}.saga (started_at DESC, id);
CREATE INDEX saga_business_key ON {{schema}}.saga (business_key);

-- The ledger (path rule 13): what a step did, how it is undone, and in which order it was committed. commit_order is
-- the sequence of the saga's business key, drawn under the key lock that is held to COMMIT (rule 21).
CREATE TABLE {{schema}}.saga_step (
    operation_id  text PRIMARY KEY,
    saga_id       text NOT NULL,
    name          text NOT NULL,
    job_type      text NOT NULL,
    element_id    text NOT NULL,
    class         text NOT NULL,
    code          text NOT NULL DEFAULT '',
    undo_type     text NOT NULL DEFAULT '',
    policy        text NOT NULL DEFAULT '',
    pivot         boolean NOT NULL DEFAULT false,
    amount        jsonb,
    commit_order  bigint NOT NULL,
    committed_at  timestamptz NOT NULL,
    undo_state    text NOT NULL CHECK (undo_state IN ('none', 'open', 'running', 'done', 'parked', 'stuck', 'remediated')),
    undo_attempts int NOT NULL DEFAULT 0,
    undo_error    text NOT NULL DEFAULT '',
    undo_at       timestamptz,
    orphan        boolean NOT NULL DEFAULT false -- committed, but the process ended without holding it (path rule 14)
) WITH (fillfactor = 80);
CREATE INDEX saga_step_saga ON {{schema}}.saga_step (saga_id, commit_order);
CREATE INDEX saga_step_undo ON {{schema}}.saga_step (undo_state, committed_at) WHERE undo_state IN ('running', 'parked', 'stuck') OR orphan;
