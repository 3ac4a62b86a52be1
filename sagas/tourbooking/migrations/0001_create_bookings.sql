-- One row per booking of a tenant. Moved only by the state machine, under its row lock.
CREATE TABLE {{schema}}.tour_booking (
    business_key text PRIMARY KEY CHECK (business_key <> ''),
    tenant       text NOT NULL,
    booking      text NOT NULL,
    saga_id      text NOT NULL,             -- attempt that booked last
    state        text NOT NULL,
    resume_state text NOT NULL DEFAULT '',  -- where a cancellation that is given up goes back to
    travellers   int  NOT NULL CHECK (travellers > 0),
    amount       bigint NOT NULL CHECK (amount > 0), -- minor units
    currency     text NOT NULL,
    moves        bigint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);

-- What a supplier holds for a booking, by the forward operation that caused it.
CREATE TABLE {{schema}}.tour_reservation (
    operation_id text PRIMARY KEY,
    business_key text NOT NULL,
    saga_id      text NOT NULL,
    segment      text NOT NULL,
    supplier_id  text NOT NULL,
    status       text NOT NULL CHECK (status IN ('confirmed', 'released')),
    amount       bigint NOT NULL,
    currency     text NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);
CREATE INDEX tour_reservation_saga ON {{schema}}.tour_reservation (saga_id);

-- Movements of money, append-only (spec S7). Kept for the financial retention.
CREATE TABLE {{schema}}.tour_settlement (
    operation_id text PRIMARY KEY,          -- of the operation that moved it, undo included
    business_key text NOT NULL,
    saga_id      text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('authorized', 'voided', 'captured', 'refunded')),
    supplier_id  text NOT NULL,
    amount       bigint NOT NULL,
    currency     text NOT NULL,
    created_at   timestamptz NOT NULL
);
CREATE INDEX tour_settlement_booking ON {{schema}}.tour_settlement (business_key);
