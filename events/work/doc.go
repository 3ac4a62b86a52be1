// Package work runs work that is due now or later: quote expiry, SLA timers,
// deferred checks, and messages that must not be published before a time (spec E14).
//
//	tx ─ domain change · Store.Put ─ COMMIT … due ─ claim with lease ─ handler · delete the item · events ─ COMMIT
//
// An item is put in the transaction that makes it necessary, and is gone with
// the transaction that did it: it is done once, whatever crashes. Any number of
// runners share a queue. A claim has a lease by the database's clock and a fence
// that grows with each claim; a runner that stood still past its lease and was
// taken over commits nothing.
//
// # How a handler's answer decides (spec E8)
//
//	nil        the item is gone, effects and events are committed
//	RETRYABLE  rolled back; again by the queue's schedule, later items of its key behind it;
//	           after PoisonedAfter attempts it goes to the quarantine
//	BUSINESS   rolled back; quarantine as "parked": a person decides
//	FATAL      rolled back; quarantine as "dead"
//
// An item that ends its runner's process or connection twenty times over is quarantined as well.
// An outage of the database is nobody's failed attempt.
//
// Items of one key run one at a time, in the order in which they were put as far
// as they are due: one that is due later does not hold those before it. Nothing holds the
// key of an item in quarantine.
package work
