// Package operator shows what needs a person and lets that person act.
//
// A [Desk] reads: incidents of the engine joined with our operations, sagas with ledger and timeline, and the effects
// that hang in the air ([Desk.Effects]). It never shows variables' values or payloads, only their names.
//
// A Desk acts: [Desk.RetryIncident], [Desk.RemediateSaga], [Desk.DismissCall], [Desk.AskAgain]. Every act names an actor
// and a reason, and writes its audit row in the same transaction as what it changes or the command that tells the engine
// (docs/effect-path.md). So no act is without a row and no row without its act.
//
// # The audit
//
// Table operator_audit is append-only: a trigger refuses UPDATE, DELETE and TRUNCATE. Each row carries the hash of the
// one before it and its own, over all its fields; [Desk.VerifyAudit] walks the chain. Whoever owns the database can
// remove the trigger and write a whole new chain: keep a [Head] somewhere else and give it to VerifyAudit to see that too.
//
// # Where rows come from
//
// This package reads the tables of zeebe, dedup, outbox and sagas with statements of its own (sql.go): its views are joins
// across owners. It writes only its own tables, commands through [zeebe.Queue], and operations through [dedup.Store].
package operator
