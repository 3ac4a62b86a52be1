-- Results that nobody knows, for operators: without it every look at them reads the whole table.
CREATE INDEX operation_unknown ON {{schema}}.operation (created_at) WHERE effect = 'maybe';
