-- How far a group is in the strict order of a key (spec E4): the sequence of the last message it has finished.
CREATE TABLE {{schema}}.inbox_order (
    consumer     text NOT NULL,
    scope        text NOT NULL,
    business_key text NOT NULL,
    seq          bigint NOT NULL,
    PRIMARY KEY (consumer, scope, business_key)
) WITH (fillfactor = 70);

-- A message with a scope is held until inbox_order.seq of its key has reached previous, or next_at; then it is parked.
ALTER TABLE {{schema}}.inbox_retry ADD COLUMN scope text, ADD COLUMN previous bigint;
CREATE INDEX inbox_retry_gap ON {{schema}}.inbox_retry (consumer, scope, business_key, previous) WHERE scope IS NOT NULL;
ALTER TABLE {{schema}}.inbox_dead ADD COLUMN scope text, ADD COLUMN previous bigint;
CREATE INDEX inbox_dead_gap ON {{schema}}.inbox_dead (consumer, scope, business_key, previous) WHERE scope IS NOT NULL;
