// Package engine is an embedded, Zeebe-compatible process engine for
// development, tests and demonstrations. It speaks the gRPC protocol of Zeebe
// 8.5 and the part of the REST v2 protocol of 8.8 that operators and clients
// need, keeps its state in memory or in [Config.DataDir], and is not for production.
//
// [Start] opens both listeners:
//
//	e, err := engine.Start(engine.Config{})
//	// connect any Zeebe client to e.Addr() without TLS
//	defer e.Close()
//
// # Time
//
// The engine has a clock of its own: real time plus an offset that
// [Engine.AdvanceClock] moves. Timers, job deadlines, back-offs and message
// lifetimes follow it, each fired at its own time and in order, so that a test
// passes hours in milliseconds. With [Config.Listener] set to an in-memory
// listener the engine runs inside a testing/synctest bubble: it waits on plain
// timers only.
//
// # Faults
//
// [Engine.Intercept] stands between the client and any gRPC method,
// [Engine.InterceptREST] between the client and any route: they can fail a call,
// delay it, run it and lose the answer, or run it twice.
//
// # History
//
// Process instances that have ended stay searchable until there are
// [Config.HistoryLimit] newer ones, or for [Config.HistoryAge].
//
// # Structure
//
// internal/core is the deterministic state machine, internal/broker its lock,
// clock and waiting room, internal/gateway and internal/rest the two protocols.
// LIMITS.md lists what is not done, and where Zeebe 8.5 and 8.8 differ.
package engine
