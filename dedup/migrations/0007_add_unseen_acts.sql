-- Path rule 11: what people do about a call that the other system never showed.
ALTER TABLE {{schema}}.operation
    ADD COLUMN ask_until    timestamptz, -- it is asked until then, as a person said; NULL = as long as the call can land
    ADD COLUMN dismissed_at timestamptz; -- a person settled it: it waits for nobody any more
