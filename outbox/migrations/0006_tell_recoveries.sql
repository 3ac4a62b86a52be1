-- One row that a server forgets whenever it may have lost commits: unlogged tables are emptied by the recovery after a crash, by the
-- promotion of a standby and in a restored base backup, and outlive an orderly restart. A relay that finds another token than before, or
-- none, knows that rows it deleted may be there again.
CREATE UNLOGGED TABLE {{schema}}.outbox_recovery (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    token uuid NOT NULL
);
