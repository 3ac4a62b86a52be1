// Package outbox moves events from a domain transaction to a broker without
// losing, inventing or reordering any (spec O, path rules 21 to 24).
//
// # Staging
//
// A handler calls [Tx.Emit], which only buffers. When the handler has
// returned, the runtime calls [Stager.Queue], which adds to the last round
// trip of the transaction, in this order: the transaction's xid is drawn; the
// key rows of all business keys are locked in sorted order and their sequences
// raised; the rows are inserted. Two transactions of one key are thus ordered
// by the key row's lock, ids of a key grow in commit order, and `sequence` has
// no gaps.
//
// # Relay
//
// A [Relay] owns some of 64 shards by lease. For each it reads the visible
// rows by id, publishes them and deletes exactly those that the broker
// acknowledged, writing the event log in the same statement. It never keeps an
// id cursor and never skips locked rows: both lose or reorder events when a
// transaction commits late. Several relays share the shards. A scan starts
// behind what the relay deleted, once it is sure that nothing can appear there
// any more: a long backlog or a reader's old snapshot does not slow it down, an
// open transaction that has written something does. The relay knows by a row in
// an unlogged table when the server has recovered, and then looks at all rows
// again. Shards that are behind in a backlog get a larger share of each scan, so
// that all go through the table side by side; none waits for another's backlog.
//
//	              scan by id           all acked
//	outbox row ───────────────► sent ───────────► deleted + event_log row
//	    ▲                        │ failed, or unknown
//	    └────────────────────────┤  (kept; later rows of the key wait)
//	                             │ never publishable
//	                             └────────────────► outbox_parked, with all later rows of its key,
//	                                                until an operator releases the key
//
// A relay in the process that stages is woken at commit. Relays of other
// processes hear of it with [RelayConfig].Listen from a [Ringer] of the staging
// process, one NOTIFY for many commits, never inside the business transaction;
// without it they poll. Their delete does not wait for the disk: what a crash of
// the server brings back is published once more, under its ids and in its order.
//
// Keys that nothing is staged for in [RelayConfig].KeyRetention are forgotten;
// such a key begins anew above every sequence that was forgotten. Keys of a
// strict order stay.
//
// # Classes
//
// Classes of the catalog that promise more than a row in the outbox get it in the
// same round trip (spec E4): a strict order names the message before, audit is
// linked into a hash chain and with compliance written to the append-only
// event_ledger, analytical messages are dropped, counted and told of while the
// backlog is above [Config].ShedAbove. Bodies are encrypted as the catalog says,
// see package seal. All of it: docs/event-classes.md.
//
// Delivery is at least once: a crash between acknowledgement and delete
// publishes a row again under the same id. Consumers use package
// events/inbox.
package outbox
