-- Replays: what was asked for, by whom and why, and how far it is. Rows are kept.
CREATE TABLE {{schema}}.replay (
    id         uuid PRIMARY KEY,
    actor      text NOT NULL CHECK (actor <> ''),
    reason     text NOT NULL CHECK (reason <> ''),
    source     text NOT NULL,
    target     text NOT NULL,
    mode       text NOT NULL CHECK (mode IN ('missing', 'again')),
    filter     jsonb NOT NULL,        -- with the end of the range, which is fixed at the start
    rate       int NOT NULL,          -- messages a second, 0 = no limit
    state      text NOT NULL CHECK (state IN ('running', 'paused', 'completed', 'failed', 'cancelled')),
    place      text NOT NULL,         -- behind the last message that was delivered, in the source's own words
    delivered  bigint NOT NULL DEFAULT 0,
    suppressed bigint NOT NULL DEFAULT 0, -- messages that handlers emitted and that were dropped
    told       bigint NOT NULL DEFAULT 0, -- delivered at the last progress event
    fence      bigint NOT NULL DEFAULT 0, -- grows with each runner
    error      text NOT NULL DEFAULT '',
    started_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE INDEX replay_started ON {{schema}}.replay (started_at);

-- Positions of replayed messages in a group's tables, where the broker's are unique.
CREATE SEQUENCE {{schema}}.replay_offset;
