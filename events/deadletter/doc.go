// Package deadletter is what operators do with messages that a consumer group
// set aside (package events/inbox): look at them, give them back, send them
// elsewhere, mend and resend them, drop them; and a [Forwarder] that copies them
// to the DLQ topics of the catalog (spec E7, E8, E10).
//
// Every act asks who and why, every one that sends a message again also the root
// cause. Each is one transaction with a row in dead_letter_act that keeps the
// message as it was then: original bytes, headers, position, reason, attempts and
// times. Rows of that table cannot be changed. [Desk.Story] follows a message
// through all its acts, edited copies included.
//
//	inbox_dead ─ Redrive ──► the group's own queue, same id, behind what waits of its key
//	           ─ Redrive ──► another group's queue, or a topic
//	           ─ Edit ─────► the group's own queue, under a new id with header causation_id
//	           ─ Drop ─────► nowhere
//
// # Order
//
// Messages of a key go back in the order in which they were set aside. While an
// older one of the key is still there, a younger one is refused, unless its class
// asks for no order or the request says OutOfOrder.
//
// # Age
//
// A message that is older than inboxes remember may have been handled under its
// id without a trace, so it goes back only in explicit replay mode: the handler
// sees events.Received.Replay, and a route that does not take replays puts it back.
//
// The DLQ topic is a copy for those who watch topics. The table is what counts.
package deadletter
