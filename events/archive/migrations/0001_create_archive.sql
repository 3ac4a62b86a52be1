-- Objects of the archive that were written whole. A crash between an object and its row leaves an object that no manifest names.
CREATE TABLE {{schema}}.event_archive_part (
    day         date NOT NULL,
    n           int NOT NULL,
    name        text NOT NULL,
    rows        bigint NOT NULL,
    bytes       bigint NOT NULL,    -- of the object
    sha256      text NOT NULL,      -- of the object, hex
    first_at    timestamptz NOT NULL,
    first_id    bigint NOT NULL,
    last_at     timestamptz NOT NULL,
    last_id     bigint NOT NULL,
    id_sum      numeric NOT NULL,
    types       jsonb NOT NULL,     -- rows per message type
    written_at  timestamptz NOT NULL,
    verified_at timestamptz,        -- read back and found whole
    PRIMARY KEY (day, n)
);
CREATE TABLE {{schema}}.event_archive_manifest (
    day        date NOT NULL,
    n          int NOT NULL,
    parts      int NOT NULL,
    name       text NOT NULL,
    sha256     text NOT NULL,
    written_at timestamptz NOT NULL,
    PRIMARY KEY (day, n)
);
