// Package worker runs Go functions as Zeebe job workers.
//
// A handler's changes, its events, its outcome and the answer to the engine are one PostgreSQL transaction; the answer is
// sent after the commit (spec W4, W5). The same operation id is run once, whatever is delivered twice or crashes (W6, W7).
//
// A handler is [Transactional] (everything inside the transaction) or [External] (an idempotent call to another system, then
// a transactional settle step). Register it in a [Mux], open a [Worker] with [New] and call Run:
//
//	mux := worker.NewMux()
//	mux.Handle("hotel.reserve", worker.Transactional(reserveHotel, worker.NotCompensable("demo")))
//	w, err := worker.New(conn, pool, mux, worker.Config{MaxJobsActive: 64, Concurrency: 16})
//	err = w.Run(ctx) // until ctx is cancelled, then drains; Serve does the same for the signals of a process
//
// One job travels like this; the numbers are rules of docs/effect-path.md:
//
//	activate ─ check input ─ claim (1, 4, 10) ─┬─ seen before ────────────────────────────────┐
//	                                           └─ handler · outcome · events · command · COMMIT ┴─ send (6, 14)
//
// [Middleware] runs around the functions of all handlers of a [Mux] that it is given to with [Mux.Use].
//
// [Runtime] is the part without a connection: it executes operations, undoes them by forward operation id (11, 12), sweeps
// up expired leases (16), asks again about calls that nobody had seen (11) and finds orphans behind answers that were not
// accepted (14). [Runtime.Lookup] and [Runtime.Cancel] take an operation id.
package worker
