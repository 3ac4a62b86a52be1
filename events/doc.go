// Package events says what an event is: its name, its envelope, its entry in
// the catalog, and the small interfaces a transport implements.
//
// Nothing here publishes by itself. Events leave a service only through package
// outbox, which stages them in the domain transaction and relays them after the
// commit (spec O1). Consumers live in package events/inbox.
//
// # The envelope
//
// A message is one JSON object (spec E1). What is known when a handler stages it
// is rendered then, by [Envelope.Render]; the two facts that only the committed
// row knows, the time of staging and the sequence under the business key, are
// spliced in by [Finalise] when the relay reads the row.
//
// # Names
//
// An event is "<domain>.<entity>.<action>" with the action in the past tense, a
// command "<target-domain>.<entity>.<imperative>.requested" (spec E2). See
// [CheckName] for the rules and for how far "past tense" is checked.
//
// # The catalog
//
// Every type that is staged or consumed stands in a [Catalog], a YAML file with
// owner, producers, consumers, class, keys, retention, retry and DLQ policy
// (spec E3). [ParseCatalog] refuses a file with all its mistakes at once,
// [Catalog.Complete] one that leaves something to guess.
//
// # Classes
//
// A [Class] is a set of promises that packages outbox, inbox and audit keep in
// code: see docs/event-classes.md.
package events
