// Package audit proves that the ledger of class audit is whole (spec E4).
//
// # The chain
//
// Package outbox writes every message of class audit to the table event_ledger in
// the transaction that stages it, as a link of a chain: one for each producer and
// partition of a topic. A link's hash covers all of the message, its time, its
// number and the hash of the link before it, each field behind its length, so
// that a change, a removal, an insertion and another order all show at the first
// link concerned. The same four facts travel as headers (audit_chain, audit_link,
// audit_previous, audit_hash), so that the event log, its archive and consumers
// can prove the same.
//
// # What shows what
//
//   - [VerifyLedger] reads the table and compares each chain's end with
//     outbox_chain: a tail that was cut off shows.
//   - Whoever can write to the database can write a chain anew, head and all. A
//     [Head] kept elsewhere, or the write-once archive ([Archive]), shows that.
//   - [VerifyArchive] reads the archive alone.
//   - [VerifyLog] reads event_log, which knows what was published within its retention.
//
// Messages of class compliance stand in the ledger without chain: the database
// refuses to change or remove them, and [VerifyLedger] compares each body with
// its digest.
package audit
