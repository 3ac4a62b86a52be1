-- What we tell the engine, written in the transaction that made it true. A row goes when the engine has acknowledged.
CREATE TABLE {{schema}}.zeebe_command (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rev                  integer NOT NULL DEFAULT 1,          -- grows when a newer answer for the same job replaces this one
    cluster              text NOT NULL,                       -- path rule 9
    kind                 text NOT NULL CHECK (kind IN ('complete', 'fail', 'throw', 'publish', 'cancel', 'resolve', 'set-variables')),
    state                text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'gone', 'parked')),
    reason               text NOT NULL DEFAULT '',            -- why it is gone or parked
    next_at              timestamptz NOT NULL,
    attempts             integer NOT NULL DEFAULT 0,
    last_code            text NOT NULL DEFAULT '',
    last_error           text NOT NULL DEFAULT '',
    created_at           timestamptz NOT NULL,
    changed_at           timestamptz NOT NULL,
    job_key              bigint NOT NULL DEFAULT 0,
    element_instance_key bigint NOT NULL DEFAULT 0,
    process_instance_key bigint NOT NULL DEFAULT 0,
    incident_key         bigint NOT NULL DEFAULT 0,
    operation_id         text NOT NULL DEFAULT '',
    retries              integer NOT NULL DEFAULT 0,
    code                 text NOT NULL DEFAULT '',
    message              text NOT NULL DEFAULT '',
    name                 text NOT NULL DEFAULT '',
    correlation_key      text NOT NULL DEFAULT '',
    message_id           text NOT NULL DEFAULT '',
    ttl_ms               bigint NOT NULL DEFAULT 0,
    local                boolean NOT NULL DEFAULT false,
    variables            text NOT NULL DEFAULT ''
);
CREATE INDEX zeebe_command_due ON {{schema}}.zeebe_command (cluster, next_at) WHERE state = 'pending';
CREATE INDEX zeebe_command_odd ON {{schema}}.zeebe_command (cluster, next_at) WHERE state <> 'pending';
CREATE INDEX zeebe_command_operation ON {{schema}}.zeebe_command (operation_id);
-- One answer for a job at a time: a replay or a run after an operator's retry replaces what was not delivered.
CREATE UNIQUE INDEX zeebe_command_answer ON {{schema}}.zeebe_command (cluster, job_key) WHERE kind IN ('complete', 'fail', 'throw');
