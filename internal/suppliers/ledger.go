package suppliers

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Kind says what an effect was.
type Kind string

// The kinds of effects.
const (
	Reserve   Kind = "reserve"
	Cancel    Kind = "cancel"
	Authorize Kind = "authorize"
	Void      Kind = "void"
	Capture   Kind = "capture"
	Refund    Kind = "refund"    // a supplier took a segment back, or the payment provider paid back
	Reinstate Kind = "reinstate" // a segment taken back was given out again
	Ticket    Kind = "ticket"    // tickets were issued
	Withdraw  Kind = "withdraw"  // a ticket request was withdrawn, its tickets voided
)

// Effect is one thing that happened at a supplier.
type Effect struct {
	Seq       int       `json:"seq"` // from 1, without gaps, in the order of happening
	Supplier  Supplier  `json:"supplier"`
	Kind      Kind      `json:"kind"`
	Booking   string    `json:"booking"` // as sent: "<tenant>:<booking>"
	Segment   string    `json:"segment"` // as sent: the booking's own name of it, or "payment"
	Amount    int64     `json:"amount"`  // minor units
	Currency  string    `json:"currency"`
	Key       string    `json:"key"`       // Idempotency-Key of the request
	Reference string    `json:"reference"` // of the thing acted on: its forward operation id
	ID        string    `json:"id"`        // the supplier's own id of the thing acted on
	At        time.Time `json:"at"`
}

// Ends gives the kind that ends an effect of this kind, "" when nothing does.
func (k Kind) Ends() Kind {
	switch k {
	case Reserve:
		return Cancel
	case Authorize:
		return Void
	case Refund:
		return Reinstate
	case Ticket:
		return Withdraw
	default:
		return ""
	}
}

var errFull = errors.New("the simulator is full")

type ledger struct {
	now func() time.Time

	mu      sync.Mutex
	effects []Effect
	grown   chan struct{} // closed and replaced whenever an effect is added
}

func newLedger(now func() time.Time) *ledger {
	return &ledger{now: now, grown: make(chan struct{})}
}

func (l *ledger) add(e Effect) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.effects) >= maxRecords {
		return errFull
	}
	e.Seq, e.At = len(l.effects)+1, l.now()
	l.effects = append(l.effects, e)
	close(l.grown)
	l.grown = make(chan struct{})
	return nil
}

func (l *ledger) since(n int) ([]Effect, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Effect(nil), l.effects[n:]...), l.grown
}

// Ledger is a copy of everything that happened so far, in order.
func (w *World) Ledger() []Effect {
	all, _ := w.ledger.since(0)
	return all
}

// Await waits for the first effect, past or future, that match accepts. match runs on the calling goroutine.
//
// Errors: that of ctx when it ends first.
func (w *World) Await(ctx context.Context, match func(Effect) bool) (Effect, error) {
	seen := 0
	for {
		more, grown := w.ledger.since(seen)
		for _, e := range more {
			if match(e) {
				return e, nil
			}
		}
		seen += len(more)
		select {
		case <-ctx.Done():
			return Effect{}, ctx.Err()
		case <-grown:
		}
	}
}
