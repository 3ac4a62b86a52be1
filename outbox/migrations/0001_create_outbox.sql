-- One row per business key: its lock orders the transactions of the key, seq numbers its messages, turn its transactions (path rule 21).
CREATE TABLE {{schema}}.outbox_key (
    business_key text PRIMARY KEY CHECK (length(business_key) BETWEEN 1 AND 200),
    seq          bigint NOT NULL DEFAULT 0,
    turn         bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

CREATE TABLE {{schema}}.outbox (
    shard        smallint NOT NULL CHECK (shard BETWEEN 0 AND 63), -- murmur2(business_key) % 64
    id           bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),    -- a larger cache would give ids out of lock order
    event_id     uuid NOT NULL,
    type         text NOT NULL,
    version      int NOT NULL,
    class        text NOT NULL,
    topic        text NOT NULL,
    business_key text NOT NULL,
    seq          bigint NOT NULL,
    operation_id text NOT NULL,
    headers      text[] NOT NULL,  -- name, value, name, value, ...
    body         bytea NOT NULL,   -- without occurredAt and sequence, which the relay adds
    occurred_at  timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (shard, id)        -- the only index
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);

-- Who relays a shard. fence grows with each owner.
CREATE TABLE {{schema}}.outbox_shard (
    shard       smallint PRIMARY KEY,
    owner       text,
    fence       bigint NOT NULL DEFAULT 0,
    lease_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
INSERT INTO {{schema}}.outbox_shard (shard) SELECT generate_series(0, 63);

-- Live relays, so that each takes its share of the shards.
CREATE TABLE {{schema}}.outbox_relay (
    owner       text PRIMARY KEY,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Keys held because a row cannot be published (path rule 22).
CREATE TABLE {{schema}}.outbox_parked_key (
    business_key text PRIMARY KEY,
    shard        smallint NOT NULL,
    event_id     uuid NOT NULL,  -- the row that could not be published
    reason       text NOT NULL,
    state        text NOT NULL DEFAULT 'held' CHECK (state IN ('held', 'releasing')),
    since        timestamptz NOT NULL
);
CREATE TABLE {{schema}}.outbox_parked (
    shard        smallint NOT NULL,
    id           bigint NOT NULL,
    event_id     uuid NOT NULL,
    type         text NOT NULL,
    version      int NOT NULL,
    class        text NOT NULL,
    topic        text NOT NULL,
    business_key text NOT NULL,
    seq          bigint NOT NULL,
    operation_id text NOT NULL,
    headers      text[] NOT NULL,
    body         bytea NOT NULL,
    occurred_at  timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (business_key, id)
);

-- What was published, kept for its configured time and dropped by partition (path rule 23).
CREATE TABLE {{schema}}.event_log (
    logged_at    timestamptz NOT NULL,
    shard        smallint NOT NULL,
    id           bigint NOT NULL,
    event_id     uuid NOT NULL,
    type         text NOT NULL,
    version      int NOT NULL,
    class        text NOT NULL,
    topic        text NOT NULL,
    business_key text NOT NULL,
    seq          bigint NOT NULL,
    operation_id text NOT NULL,
    headers      text[] NOT NULL,
    body         bytea NOT NULL,
    occurred_at  timestamptz NOT NULL,
    created_at   timestamptz NOT NULL
) PARTITION BY RANGE (logged_at);

-- Parked rows that an operator gave up, kept for the record.
CREATE TABLE {{schema}}.outbox_skipped (
    LIKE {{schema}}.outbox_parked,
    reason     text NOT NULL,
    skipped_at timestamptz NOT NULL
);
