-- What is known of a group: what it reads, and whether an operator stopped it. Paused while paused_at is set.
CREATE TABLE {{schema}}.inbox_group (
    consumer  text PRIMARY KEY,
    topics    text[] NOT NULL,
    paused_at timestamptz,
    paused_by text NOT NULL DEFAULT '',
    reason    text NOT NULL DEFAULT ''
);

-- Members that run, each with a heartbeat. still: it has seen the pause and handles nothing.
CREATE TABLE {{schema}}.inbox_member (
    consumer text NOT NULL,
    member   text NOT NULL,
    seen_at  timestamptz NOT NULL,
    busy     int NOT NULL,
    still    boolean NOT NULL,
    PRIMARY KEY (consumer, member)
) WITH (fillfactor = 50);
