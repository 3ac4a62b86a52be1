-- One row per operation id: the atomic check-and-write of spec W6. Unpartitioned (path rule 25).
CREATE TABLE {{schema}}.operation (
    operation_id         text PRIMARY KEY,
    tenant               text NOT NULL DEFAULT '',
    business_key         text NOT NULL DEFAULT '',
    job_type             text NOT NULL DEFAULT '',
    saga_id              text NOT NULL DEFAULT '',
    fingerprint          bytea NOT NULL DEFAULT '',
    fingerprint_fields   text[] NOT NULL DEFAULT '{}',
    state                text NOT NULL CHECK (state IN ('claimed', 'calling', 'called', 'undoing', 'done', 'revoked')),
    effect               text NOT NULL DEFAULT 'none' CHECK (effect IN ('none', 'maybe', 'known')), -- at the other system
    class                text NOT NULL DEFAULT '' CHECK (class IN ('', 'SUCCESS', 'RETRYABLE_ERROR', 'BUSINESS_ERROR', 'FATAL_ERROR')),
    reason               text NOT NULL DEFAULT '',
    code                 text NOT NULL DEFAULT '',
    message              text NOT NULL DEFAULT '',
    variables            json,                            -- as sent to the engine, byte for byte
    result_hash          bytea NOT NULL DEFAULT '',
    bytes                integer NOT NULL DEFAULT 0,      -- of variables, for the budget of the process instance (path rule 28)
    attempts             integer NOT NULL DEFAULT 0,
    fence                bigint NOT NULL DEFAULT 1,
    owner                text NOT NULL DEFAULT '',        -- of the lease, '' = released
    lease_until          timestamptz,
    input                json,                            -- declared input, stored before it is sent (path rule 16)
    call_result          json,                            -- result of the external call, stored before it is settled (path rule 18)
    payload              json,                            -- an output too large for the engine (path rule 28)
    meta                 json,                            -- job context as the worker keeps it
    cluster              text NOT NULL DEFAULT '',
    job_key              bigint NOT NULL DEFAULT 0,
    process_instance_key bigint NOT NULL DEFAULT 0,
    element_instance_key bigint NOT NULL DEFAULT 0,
    element_id           text NOT NULL DEFAULT '',
    undo_type            text NOT NULL DEFAULT '',        -- job type of the compensation
    policy               text NOT NULL DEFAULT '',        -- undo, park, none:<reason>, manual:<task>
    called_at            timestamptz,                     -- first external call: its key is valid from here
    answered_at          timestamptz,                     -- the engine acknowledged ThrowError or FailJob(0) (path rule 5)
    answered_job_key     bigint NOT NULL DEFAULT 0,
    operator_retries     integer NOT NULL DEFAULT 0,
    retried_at           timestamptz,
    undone_at            timestamptz,
    orphan               text NOT NULL DEFAULT '' CHECK (orphan IN ('', 'open', 'undone', 'parked')),
    orphaned_at          timestamptz,
    created_at           timestamptz NOT NULL,
    settled_at           timestamptz,
    expires_at           timestamptz
) WITH (fillfactor = 80);
CREATE INDEX operation_lease ON {{schema}}.operation (lease_until) WHERE state IN ('calling', 'called', 'undoing');
CREATE INDEX operation_saga ON {{schema}}.operation (saga_id) WHERE saga_id <> '';
CREATE INDEX operation_instance ON {{schema}}.operation (cluster, process_instance_key) WHERE process_instance_key <> 0;
CREATE INDEX operation_expires ON {{schema}}.operation (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX operation_orphan ON {{schema}}.operation (orphaned_at) WHERE orphan <> '';
CREATE INDEX operation_revoked ON {{schema}}.operation (created_at) WHERE state = 'revoked';

-- Attempts by job and process (path rule 7). A row that is open although its process is dead is a death.
CREATE TABLE {{schema}}.operation_attempt (
    cluster      text NOT NULL,
    job_key      bigint NOT NULL,
    process      uuid NOT NULL,
    operation_id text NOT NULL DEFAULT '',
    open         boolean NOT NULL,
    alone        boolean NOT NULL DEFAULT false,
    runs         integer NOT NULL DEFAULT 1,
    opened_at    timestamptz NOT NULL,
    PRIMARY KEY (cluster, job_key, process)
) WITH (fillfactor = 70);
CREATE INDEX operation_attempt_opened ON {{schema}}.operation_attempt (opened_at);

-- Live worker processes. seen_at is physical time: the movable clock's offset is taken out, so that moving it kills nobody.
CREATE TABLE {{schema}}.worker_process (
    id      uuid PRIMARY KEY,
    name    text NOT NULL,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);
