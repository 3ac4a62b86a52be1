// Package tourbooking books tours: the saga type "tour-booking", its workers,
// and the booking itself, one state machine of 14 states (spec S3).
//
//	draft ─quote─► quoted ─segment─► partially_confirmed ─all segments─► held ─confirm─► confirmed
//	                  │                     │                             │                │
//	                  └────────── give up ──┴─────────────────────────────┘         ticketing ─► ticketed
//	                                 ▼
//	                           compensating ─► compensated | failed | expired | cancelled ─reopen─► draft
//
//	confirmed, ticketing, ticketed ─► cancelling ─► cancelled, or back (a refund)
//	confirmed, ticketed            ─► amending ─► back
//
// The whole table is in state.go; every move is one conditional UPDATE and emits
// one domain event in the same transaction. Bookings of other packages (refund,
// ticketing) are moved through [Bookings] too.
//
// A tour has 1 to [MaxSegments] segments: flights, hotels and transfers, each with an id of the
// partner's that is unique in the booking. They are reserved at the same time, one operation
// "<saga>:<element>:<segment id>" each, and the booking is held when the supplier of each has
// confirmed. The first that fails gives the whole booking up.
//
// Workers call the suppliers over HTTP under the operation id as idempotency key.
// The hotel does not honour keys and is declared so: its calls are
// at-least-once, and a repeat asks first.
//
// The pivot is booking.confirm. Before it everything is undone, after it the
// money is captured or a person decides (spec Z5).
package tourbooking
