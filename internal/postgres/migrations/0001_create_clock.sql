-- The one clock of all our SQL (path rule 8). Only tests and the demo move it, together with the engine's clock.
CREATE TABLE {{schema}}.clock (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    offset_by interval NOT NULL DEFAULT '0'
);
INSERT INTO {{schema}}.clock DEFAULT VALUES;
CREATE FUNCTION {{schema}}.now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT pg_catalog.clock_timestamp() + (SELECT offset_by FROM {{schema}}.clock) $$;
