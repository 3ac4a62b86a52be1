-- A SQL function whose body is a bare expression becomes part of the plan of the statement that calls it, and costs nothing more; the
-- one that read the offset from its table took as long as an index lookup, three times a job. So the offset stands in the body, and
-- moving the clock writes the body anew: PostgreSQL drops the plans that hold the old one.
CREATE FUNCTION {{schema}}.advance_clock(ahead interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    total interval;
BEGIN
    UPDATE {{schema}}.clock SET offset_by = offset_by + ahead RETURNING offset_by INTO STRICT total; -- whoever moves it too waits here
    EXECUTE format('CREATE OR REPLACE FUNCTION {{schema}}.now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS %L',
        format('SELECT pg_catalog.clock_timestamp() + %L::interval', total));
END $$;
SELECT {{schema}}.advance_clock('0');
