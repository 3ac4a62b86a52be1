// Package sagas runs long-running operations: an HTTP request with an
// idempotency key becomes one saga, which ends completed, failed or expired and
// answers every repeat with the same bytes for its whole retention.
//
// Two stores take part, and may be two databases (spec Z6):
//
//   - the record store ([Config.Records]) holds what a partner sees: one key row
//     per (tenant, type, key), one record per attempt;
//   - the domain database ([Config.Domain]) holds the saga itself: its gate, its one
//     decision, and the ledger of committed effects that undo works from.
//
// How a request travels:
//
//	POST ── claim (record store, one statement) ── 202
//	             │ fast path, and a sweep behind it
//	             ▼
//	        saga row · Type.OnStart · platform.saga.started · publish command    one domain transaction
//	             ▼
//	        engine: saga.start.<type> ── saga.begin ── steps … ── saga.close
//	             ▼
//	        platform.saga.* events ── outbox ── Kafka ── Apply ── record         in order, by sequence
//
// # Who wins
//
// The column saga.decision moves once, from NULL to completed, failed, expired or
// cancelled (path rule 10). Forward steps hold the saga's gate shared from their
// claim to their commit, giving up takes it exclusively: when a give-up has
// committed, every earlier step is in the ledger and no later one gets in.
//
//	            ┌── Decide("completed") by the pivot step ──► forward to saga.close
//	decision ───┤
//	  NULL      └── saga.give-up: failed, expired, cancelled ─► drawn compensation
//	                                                           ─► saga.undo-rest ─► saga.close
//
// # Locks, in order
//
// Operation claim (package dedup), gate (advisory, shared or exclusive), rows of the
// handler, saga row, key rows of the outbox. Nobody takes the gate exclusively while
// holding it shared.
package sagas
