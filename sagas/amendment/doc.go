// Package amendment changes one segment of a sold booking: the saga type "amendment" and its workers.
//
//	open the booking ─► reserve the new segment ─► authorize the difference ─► confirm ─► settle the difference ─► release the old segment
//	      undo: ◄── close it ◄── release ◄───────────── void ◄──────────────────┘pivot
//
// The new segment stands before the old one is given up: whatever goes wrong before the pivot, the traveller keeps what was
// booked. Behind it the saga goes forward, or a person puts it right (spec Z5). What the new booking costs more is
// authorized and captured, what it costs less is paid back.
//
// Only the hotel and the transfer can be changed: tickets hang on the flight's reservation, so another flight is a refund and
// a new booking. An answer that a supplier owes past its SLA is followed up before anything is undone (spec S4).
package amendment
