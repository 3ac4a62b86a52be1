// Package inbox consumes events: a subscription with a consumer group, an inbox
// row in the handler's transaction, a retry schedule kept in PostgreSQL, a
// parking lot and a dead-letter table.
//
// # One delivery
//
//	fetch ─ parse ─ look up ─┬─ seen before ────────────────────────────────┐
//	                         ├─ an older one of its key waits ─ wait behind ┤
//	                         └─ inbox row · handler · events · COMMIT ──────┴─ commit offset
//
// The offset is committed only after the database has committed, up to the
// first delivery of the partition that is not done. A crash between the two
// delivers again, and the inbox row absorbs it (spec D2).
//
// # How a handler's answer decides (spec E8)
//
//	nil        inbox row and effects committed
//	RETRYABLE  rolled back; waits in inbox_retry by the catalog's schedule, later
//	           messages of its key behind it where the class is ordered; after
//	           poisoned_after attempts it goes to inbox_dead
//	BUSINESS   rolled back; inbox_dead as "parked": a person decides
//	FATAL      rolled back; inbox_dead as "dead" with the original bytes and the reason
//
// A message above [Config].MaxBytes never comes so far: it goes to inbox_dead as
// "too_large" before its body is decrypted or parsed, with its original bytes.
//
// In a strict order (class saga, entries with an order scope) a message whose
// predecessor is missing is held until it comes, or parked after
// [Config].GapLimit until [Desk.AcceptGap]; nothing passes a dead letter of its order.
// Bodies rest encrypted where the catalog says so. See docs/event-classes.md.
//
// # Bodies of wire confluent
//
// The envelope of such a message is in its headers, and Config.Codec reads its
// data before the handler runs; the handler sees JSON as ever. A body that its
// schema cannot read, or that names none, goes to inbox_dead at once as
// "schema". An id that the registry does not know is RETRYABLE by the catalog's
// schedule and then dead as "schema_id". A registry that is down is nobody's
// failed attempt: messages of known schemas are handled, others wait in inbox_retry
// as long as it takes. Repeats are compared by the body's bytes.
//
// Messages that wait beside each other share a transaction, with a savepoint
// before each handler; handlers do not notice. [BatchHandler] takes several at a
// time, strict orders and framed bodies too. Replays come one at a time: what
// becomes of each is decided by what the group has done with it before.
//
// A member that stood still and lost its partitions applies nothing twice: the
// inbox row of whoever took over is there, and the server ends a transaction that
// stands still five seconds past the handler's deadline. [Desk.Pause] stops a
// group in every process until it is resumed.
//
// An outage of the database is nobody's failed attempt: the consumer pauses
// and goes on when the database is back.
package inbox
