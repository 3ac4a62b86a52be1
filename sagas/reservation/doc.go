// Package reservation books one segment with one supplier: the saga type "reservation" and its workers.
//
//	reserve the segment ─► authorise the payment ─► confirm ─► capture
//	      undo: release ◄───────── void ◄──────────┘ pivot
//
// What is booked is a booking like that of a tour, with one segment whose id is its kind: it goes through the same states
// (package tourbooking), and is refunded, amended and ticketed by the same operations.
//
// It ends within seconds as a rule, and after five minutes at the latest (spec I5): a partner may ask with "Prefer: wait=10"
// and gets the answer of the end. An answer that a supplier owes longer than [Config].SLA is followed up before anything is
// undone (spec S4).
package reservation
