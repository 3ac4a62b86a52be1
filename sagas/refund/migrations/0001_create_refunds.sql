-- One row per segment that a supplier was asked to take back, by the operation that asked.
CREATE TABLE {{schema}}.refund_segment (
    operation_id text PRIMARY KEY,
    business_key text NOT NULL,
    saga_id      text NOT NULL,
    segment      text NOT NULL,
    supplier_id  text NOT NULL,
    status       text NOT NULL CHECK (status IN ('refunded', 'refused', 'reinstated')),
    amount       bigint NOT NULL,           -- minor units
    currency     text NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);
CREATE INDEX refund_segment_saga ON {{schema}}.refund_segment (saga_id);
