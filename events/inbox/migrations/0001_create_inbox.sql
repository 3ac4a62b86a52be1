-- What a group has applied. Unpartitioned: a partition by time would let the same id in again (path rule 25).
CREATE TABLE {{schema}}.inbox (
    consumer     text NOT NULL,
    message_id   text NOT NULL,
    fingerprint  bytea NOT NULL,
    processed_at timestamptz NOT NULL,
    PRIMARY KEY (consumer, message_id)
);
CREATE INDEX inbox_processed_at ON {{schema}}.inbox USING brin (processed_at);

-- Messages that wait for another attempt, and those behind them. id is their order.
CREATE TABLE {{schema}}.inbox_retry (
    consumer     text NOT NULL,
    id           bigint GENERATED ALWAYS AS IDENTITY,
    business_key text NOT NULL,
    message_id   text NOT NULL,
    type         text NOT NULL,
    ordered      boolean NOT NULL,
    topic        text NOT NULL,
    partition    int NOT NULL,
    "offset"     bigint NOT NULL,
    headers      text[] NOT NULL,
    body         bytea NOT NULL,
    sent_at      timestamptz NOT NULL,
    attempts     int NOT NULL,
    last_error   text NOT NULL,
    first_at     timestamptz NOT NULL,
    next_at      timestamptz NOT NULL,
    PRIMARY KEY (consumer, id),
    UNIQUE (consumer, topic, partition, "offset")
);
CREATE INDEX inbox_retry_key ON {{schema}}.inbox_retry (consumer, business_key, id);
CREATE INDEX inbox_retry_due ON {{schema}}.inbox_retry (consumer, next_at);

-- Dead letters ("dead") and the parking lot ("parked"), with the original bytes (spec E8).
CREATE TABLE {{schema}}.inbox_dead (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer     text NOT NULL,
    state        text NOT NULL CHECK (state IN ('dead', 'parked')),
    business_key text NOT NULL,
    message_id   text NOT NULL,
    type         text NOT NULL,
    topic        text NOT NULL,
    partition    int NOT NULL,
    "offset"     bigint NOT NULL,
    headers      text[] NOT NULL,
    body         bytea NOT NULL,
    sent_at      timestamptz NOT NULL,
    attempts     int NOT NULL,
    class        text NOT NULL,
    reason       text NOT NULL,
    error        text NOT NULL,
    first_at     timestamptz NOT NULL,
    died_at      timestamptz NOT NULL,
    UNIQUE (consumer, topic, partition, "offset")
);
