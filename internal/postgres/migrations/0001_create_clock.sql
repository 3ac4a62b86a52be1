-- The one clock of all our SQL (path rule 8). Only tests and the demo move it, together with the engine's clock.
CREATE TABLE {{schema}}.clock (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    offset_by interval NOT NULL DEFAULT '0'
);
INSERT INTO {{schema}}.clock DEFAULT VALUES;
-- PL/pgSQL keeps its plan for the session; the same body as a SQL function is planned anew at each call, at ten to twenty times the cost.
CREATE FUNCTION {{schema}}.now() RETURNS timestamptz LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
DECLARE
    ahead interval;
BEGIN
    SELECT c.offset_by INTO STRICT ahead FROM {{schema}}.clock c;
    RETURN pg_catalog.clock_timestamp() + ahead;
END $$;
