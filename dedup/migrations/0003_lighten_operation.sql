-- PostgreSQL reads the text of each CHECK anew in every statement that writes the table, a third of what a claim cost. The values
-- come from constants of this package alone; TestStatesAreTheOnesDeclared keeps them to the list.
ALTER TABLE {{schema}}.operation
    DROP CONSTRAINT operation_state_check,
    DROP CONSTRAINT operation_effect_check,
    DROP CONSTRAINT operation_class_check,
    DROP CONSTRAINT operation_orphan_check;
-- The same for the conditions of partial indexes: the cheapest one that holds the same rows.
DROP INDEX {{schema}}.operation_lease;
CREATE INDEX operation_lease ON {{schema}}.operation (lease_until) WHERE lease_until IS NOT NULL;
-- Attempts are few, as they go with the end of their job: looking for old ones reads the table.
DROP INDEX {{schema}}.operation_attempt_opened;
-- The job first: for a set of jobs the planner otherwise takes the cluster alone, which is every row, the dead ones too.
ALTER TABLE {{schema}}.operation_attempt DROP CONSTRAINT operation_attempt_pkey, ADD PRIMARY KEY (job_key, cluster, process);
