-- When a running operation was last polled, by whichever process answered (spec Z7). Unlogged: a poll must not wait for the
-- disk, and after a crash of the server the cadence begins anew, no more.
CREATE UNLOGGED TABLE {{schema}}.record_poll (
    operation_id text PRIMARY KEY,
    answered     int NOT NULL,
    last_at      timestamptz NOT NULL, -- of the last answered one
    not_before   timestamptz NOT NULL, -- what its Retry-After asked for
    early        boolean NOT NULL      -- it came before that of the one before
) WITH (fillfactor = 50);
