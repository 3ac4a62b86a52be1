// Package dedup keeps the table of operations: who has claimed an operation id, how it ended, and what a repeat is answered.
//
// The claim is made in the transaction that does the work, so a twin waits for the truth instead of reading a guess (path rules 1
// and 2). Of a transactional operation it is an advisory lock on the id, held to COMMIT; the row is written once, at the end, and its
// primary key stands behind the lock. Of an external one it is INSERT … ON CONFLICT DO NOTHING, committed before the call.
// The runtime in package worker composes the statements into its two round trips through the Queue methods of [Store].
//
// An operation travels through these states; effect says what is known of the other system, for external work:
//
//	          ┌──────────── transactional ────────────┐
//	(no row) ─┤                                       ├─→ done
//	          └─ calling ─→ called ─→ (undoing) ──────┘     │
//	                │ └→ claimed: certain that nothing happened
//	any of them ─→ revoked, when its undo came (path rule 11)
package dedup
