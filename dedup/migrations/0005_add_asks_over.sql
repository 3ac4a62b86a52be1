-- Path rule 11: the other system was asked as long as the call could land, and never showed it.
ALTER TABLE {{schema}}.operation
    ADD COLUMN asks_over_at timestamptz; -- since when nobody asks any more; NULL = asked still, or never
CREATE INDEX operation_asks_over ON {{schema}}.operation (asks_over_at) WHERE asks_over_at IS NOT NULL;
