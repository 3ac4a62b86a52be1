// Package zeebe is the connection to a Zeebe gateway (Camunda 8, gRPC) in plain
// Go types, and the queue of everything we tell the engine.
//
// [Dial] opens a [Conn]. A [Queue] writes a [Command] in the transaction that made
// it true; a [Sender] sends it right after the commit and, behind that, sweeps up
// what was left when a process died (docs/effect-path.md).
//
// The package reads no environment variables and keeps no token on disk, unlike
// the client library whose stubs it uses.
package zeebe
