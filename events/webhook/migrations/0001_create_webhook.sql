-- One row per message and endpoint. The id is the webhook-id that the partner sees, the same for every attempt.
CREATE TABLE {{schema}}.webhook_delivery (
    id           text PRIMARY KEY,
    endpoint     text NOT NULL,
    tenant       text NOT NULL,
    type         text NOT NULL,
    operation_id text NOT NULL DEFAULT '',
    body         bytea NOT NULL,
    state        text NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    reason       text NOT NULL DEFAULT '', -- why it is dead: used_up, gone, endpoint_unknown
    attempts     int NOT NULL DEFAULT 0,   -- in all; the fence of the running one
    tries        int NOT NULL DEFAULT 0,   -- since it was staged or sent again by a person
    next_at      timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    finished_at  timestamptz
) WITH (fillfactor = 80);
CREATE INDEX webhook_delivery_due ON {{schema}}.webhook_delivery (endpoint, next_at) WHERE state = 'pending';
CREATE INDEX webhook_delivery_tenant ON {{schema}}.webhook_delivery (tenant, created_at DESC, id DESC);
CREATE INDEX webhook_delivery_operation ON {{schema}}.webhook_delivery (operation_id) WHERE operation_id <> '';
CREATE INDEX webhook_delivery_finished ON {{schema}}.webhook_delivery (finished_at) WHERE state <> 'pending';

CREATE TABLE {{schema}}.webhook_attempt (
    delivery   text NOT NULL REFERENCES {{schema}}.webhook_delivery (id) ON DELETE CASCADE,
    n          int NOT NULL,
    started_at timestamptz NOT NULL,
    took_ms    bigint,              -- NULL: it runs, or its process died
    status     int NOT NULL DEFAULT 0, -- 0: no answer came
    error      text NOT NULL DEFAULT '',
    PRIMARY KEY (delivery, n)
);

-- What we learned about an endpoint; no row = nothing.
CREATE TABLE {{schema}}.webhook_endpoint (
    id            text PRIMARY KEY,
    gone_at       timestamptz, -- it answered 410
    paused_until  timestamptz, -- it asked for rest
    failing_since timestamptz  -- first failure after the last success
);
