-- What makes a key unique (spec I9, I12). It is not partitioned: uniqueness must hold across dates.
CREATE TABLE {{schema}}.record_key (
    tenant       text NOT NULL,
    type         text NOT NULL,
    key          text NOT NULL,
    fingerprint  bytea NOT NULL,
    attempt      int NOT NULL,
    operation_id text NOT NULL,
    PRIMARY KEY (tenant, type, key)
);

-- One record per attempt, partitioned by the day it started. Ids are unique because they are derived from a key row and an attempt.
CREATE TABLE {{schema}}.record (
    operation_id           text NOT NULL,
    started_on             date NOT NULL,
    tenant                 text NOT NULL,
    type                   text NOT NULL,
    key                    text NOT NULL,
    internal_key           text NOT NULL,
    attempt                int NOT NULL,
    previous               text,
    next                   text,
    business_key           text NOT NULL,
    plan                   jsonb NOT NULL,
    origin                 jsonb NOT NULL,
    state                  text NOT NULL CHECK (state IN ('in_progress', 'completed', 'failed', 'expired')),
    started_at             timestamptz NOT NULL,
    timeout_at             timestamptz NOT NULL,
    estimated_at           timestamptz NOT NULL,
    finished_at            timestamptz,
    expires_at             timestamptz,
    last_progress_event_id text NOT NULL DEFAULT '',
    sequence               bigint NOT NULL DEFAULT 0,
    phase                  text NOT NULL DEFAULT '',
    steps                  text[] NOT NULL DEFAULT '{}',
    completed              text[] NOT NULL DEFAULT '{}',
    partial                jsonb NOT NULL DEFAULT '{}',
    final                  bytea,
    polls                  bigint NOT NULL DEFAULT 0,
    polling_violations     bigint NOT NULL DEFAULT 0,
    start_state            text NOT NULL CHECK (start_state IN ('pending', 'started')),
    start_next_at          timestamptz NOT NULL,
    start_attempts         int NOT NULL DEFAULT 0,
    start_error            text NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, started_on)
) PARTITION BY RANGE (started_on);
CREATE TABLE {{schema}}.record_rest PARTITION OF {{schema}}.record DEFAULT;
CREATE INDEX record_start ON {{schema}}.record (start_next_at) WHERE start_state = 'pending';
