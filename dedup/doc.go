// Package dedup keeps the table of operations: who has claimed an operation id, how it ended, and what a repeat is answered.
//
// The claim is one INSERT … ON CONFLICT DO NOTHING in the transaction that does the work, so a twin waits for the truth
// instead of reading a guess (path rules 1 and 2). The runtime in package worker composes the statements into its two round
// trips through the Queue methods of [Store].
//
// An operation travels through these states; effect says what is known of the other system, for external work:
//
//	          ┌──────────── transactional ────────────┐
//	(no row) ─┤ claimed (never seen by others)        ├─→ done
//	          └─ calling ─→ called ─→ (undoing) ──────┘     │
//	                │ └→ claimed: certain that nothing happened
//	any of them ─→ revoked, when its undo came (path rule 11)
package dedup
