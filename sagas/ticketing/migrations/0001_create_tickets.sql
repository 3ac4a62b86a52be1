-- The airline's answers, one per request, however often they come.
CREATE TABLE {{schema}}.ticket_answer (
    reference   text PRIMARY KEY,           -- operation id of the request
    saga_id     text NOT NULL,
    supplier_id text NOT NULL,
    tickets     text[] NOT NULL,
    received_at timestamptz NOT NULL
);

-- Tickets that were recorded for a booking.
CREATE TABLE {{schema}}.ticket (
    number       text PRIMARY KEY,
    business_key text NOT NULL,
    saga_id      text NOT NULL,
    recorded_at  timestamptz NOT NULL
);
CREATE INDEX ticket_booking ON {{schema}}.ticket (business_key);
