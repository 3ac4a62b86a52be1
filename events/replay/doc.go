// Package replay delivers messages that were published before once more: from
// the event log, from its archive or from the broker, to a function of this
// process, to a consumer group or to a topic (spec E9).
//
// # One replay
//
//	plan (dry run: counts, touches nothing)
//	start ─ row in table replay: who, why, what, up to when
//	  batch ─ one transaction: delivered · place moved · progress event ─ COMMIT
//	  batch ─ …                                 killed here: resume goes on from the place
//	completed
//
// The end of the range is fixed at the start, so a replay ends although new
// messages come. One runner works on a replay at a time; the one that resumed it last wins.
//
// # What a group handles twice
//
// Nothing, unless its handler says so. There are two modes:
//
//   - [events.ReplayMissing] fills holes: the message keeps its identity, the
//     inbox of a group that has handled it absorbs it. A group whose inbox may
//     have forgotten it, because the message is older than its rows are kept,
//     treats it as the other mode (spec E10).
//   - [events.ReplayAgain] rebuilds: the identity is that of message and replay.
//     A route of package events/inbox takes it only when its ReplayPolicy says so; then it
//     handles the message once for each replay, however often the replay was
//     cut off and resumed.
//
// In both the handler sees events.Received.Replay and ReplayID. A rebuild group
// apart from the live one is the usual way: its route takes replays quietly
// (what the handler emits is dropped), the live group's route does not take them.
// [Apply] is shorter still: the handler, the rows it writes and the replay's
// place commit together, so each message is applied exactly once, without any
// inbox. Use it to rebuild a projection of this database.
//
// # Order
//
// Log and archive give each key's messages in the order of publication, over all
// its types. The broker gives it per key and topic; across topics it has none.
// All targets keep the order they are given.
package replay
