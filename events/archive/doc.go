// Package archive copies the event log, day by day, to object storage, checks
// the copy and reads it back (spec E4, E9, path rule 23).
//
// An [Archiver] works in steps. Each is one transaction under one lock, writes
// or checks at most one object, and can be cut off anywhere: the next step, by
// whatever process, goes on from the rows that were committed.
//
//	day is over ─ part 1 ─ part 2 ─ … ─ read each part back ─ manifest ─ verified
//	                                                                       │ retention over
//	                                                                       └─ the relay drops the day
//
// A day is dropped by the relay of package outbox, and only when it still holds
// exactly the rows that were verified.
//
// # Format, version 1
//
// Objects are written once and never again:
//
//	v1/2026-11-30/part-00001-4f2a90c1d2e3b4a5.jsonl.gz
//	v1/2026-11-30/manifest-00001.json
//
// A part is gzip over JSON lines in UTF-8, one log row a line, in the order of
// logged_at and id. That is the order of publication of each business key. Its
// name ends in the beginning of its SHA-256. The fields of a line are those of
// the table event_log:
//
//	logged_at, occurred_at, created_at   RFC 3339 in UTC with microseconds
//	shard, id, version, seq              numbers
//	event_id, type, class, topic, business_key, operation_id   text
//	headers                              array of [name, value]
//	body                                 base64 of the stored body
//
// The stored body lacks occurredAt and metadata.sequence, which the relay adds:
// for a JSON object it puts "occurredAt":<occurred_at>, in front and
// ,"sequence":<seq> behind the last field of metadata, which stands last.
// [outbox.Logged.Record] does it.
//
// A manifest is a JSON object, see [Manifest]: the parts in order with rows,
// bytes and SHA-256, the sums over them, and the name and SHA-256 of the manifest
// written before it, so that the manifests form a chain. When a day got another
// manifest the one with the highest number counts. Objects that no manifest
// names were left by a crash and mean nothing.
package archive
