// Package suppliers simulates the companies a tour is bought from: a flight, a
// hotel and a transfer supplier, and a payment provider. Each is an HTTP server
// of its own on loopback; together they are one [World] with one ledger.
//
// The ledger is what really happened, seen from outside: append-only, one entry
// per effect, with the key and reference the caller sent. Tests and the demo
// count effects there and nowhere else.
//
//	flight, hotel, transfer   POST /reservations            GET /reservations?reference=
//	                          POST /reservations/{id}/cancel
//	                          POST /returns                 GET /returns?reference=
//	                          POST /returns/{id}/reinstate
//	flight                    POST /tickets                 GET /tickets?reference=
//	                          POST /tickets/{id}/withdraw
//	payment                   POST /authorizations          GET /authorizations?reference=
//	                          POST /authorizations/{id}/void
//	                          POST /captures                GET /captures?reference=
//	                          POST /refunds                 GET /refunds?reference=
//
// Flight, transfer and payment honour the header Idempotency-Key: the same key
// gives the first answer again, the same key with another body is 422. The hotel
// ignores keys: two posts are two rooms.
//
// Faults are scripted per booking, segment and action, and all of them enter at
// one place, [World.seam].
package suppliers
