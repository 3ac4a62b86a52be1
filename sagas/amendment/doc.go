// Package amendment changes one segment of a sold booking: the saga type "amendment" and its workers.
//
//	open the booking ─► reserve the new segment ─► authorize the difference ─► confirm ─► settle the difference ─► release the old segment
//	      undo: ◄── close it ◄── release ◄───────────── void ◄──────────────────┘pivot
//
// The new segment stands before the old one is given up: whatever goes wrong before the pivot, the traveller keeps what was
// booked. Behind it the saga goes forward, or a person puts it right (spec Z5). What the new booking costs more is
// authorized and captured, what it costs less is paid back.
//
// What a person settles goes into the report of the task "remediate", or of `journeyman saga remediate`, and the booking shows it from
// the transaction that closes the saga on: {"outcome": "completed", "released": ["<reference>"], "amount": 130000, "moved":
// [{"kind": "refunded", "reference": "<reference>", "amount": 10000}]}, see [tourbooking.ByHand]. A report that does not fit the booking
// closes nothing.
//
// Only the hotel and the transfer can be changed: tickets hang on the flight's reservation, so another flight is a refund and
// a new booking. An answer that a supplier owes past its SLA is followed up before anything is undone (spec S4).
package amendment
