-- One row per export of a partner, by the operation that makes it.
CREATE TABLE {{schema}}.data_export (
    id         text PRIMARY KEY,            -- saga id
    tenant     text NOT NULL,
    dataset    text NOT NULL,
    rows       bigint NOT NULL,             -- frozen records
    pages      int NOT NULL,
    state      text NOT NULL CHECK (state IN ('frozen', 'published', 'discarded', 'expired')),
    frozen_at  timestamptz NOT NULL,        -- the moment that all pages show
    expires_at timestamptz                  -- when the objects are deleted; NULL until published
);
CREATE INDEX data_export_expiry ON {{schema}}.data_export (expires_at) WHERE state = 'published';

-- Records that were frozen and not yet written to their page.
CREATE TABLE {{schema}}.data_export_row (
    export_id text NOT NULL,
    n         bigint NOT NULL,              -- 1, 2, 3 … within the export
    body      text NOT NULL,                -- one JSON object, as it will stand in the page
    PRIMARY KEY (export_id, n)
);

-- Objects that were written.
CREATE TABLE {{schema}}.data_export_page (
    export_id text NOT NULL,
    page      int NOT NULL,
    object    text NOT NULL,
    rows      bigint NOT NULL,
    bytes     bigint NOT NULL,
    sha256    text NOT NULL,                -- of all pages up to this one, joined
    chain     bytea NOT NULL,               -- state of that checksum, for the next page to go on from
    PRIMARY KEY (export_id, page)
);
