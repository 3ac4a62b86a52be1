-- A booking has any number of segments of mixed kinds, each with an id of the partner's. Those there are have three, one of each
-- kind, and are named by it.
ALTER TABLE {{schema}}.tour_booking ADD COLUMN segments int NOT NULL DEFAULT 3 CHECK (segments > 0); -- that suppliers must confirm before it is held
ALTER TABLE {{schema}}.tour_booking ALTER COLUMN segments DROP DEFAULT;

ALTER TABLE {{schema}}.tour_reservation ADD COLUMN kind text; -- flight, hotel or transfer; segment is the id
UPDATE {{schema}}.tour_reservation SET kind = segment;
ALTER TABLE {{schema}}.tour_reservation ALTER COLUMN kind SET NOT NULL;

-- The bookings of a tenant in a period, for exports.
CREATE INDEX tour_booking_tenant ON {{schema}}.tour_booking (tenant, created_at, business_key);
