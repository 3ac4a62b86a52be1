// Consumer: a service that reads an event of which two versions are about.
//
//	DATABASE_URL="host=/var/run/postgresql user=me" go run ./examples/consumer
//
// Bookings changed how they tell the price: version 1 says cents, version 2 an
// amount with its currency. Both are published until the last consumer has moved
// on. Invoicing handles both, each with its own type, and writes an invoice and
// a reminder for later in the transaction that marks the message as handled. A
// runner of durable work sends the reminder when it is due: in two weeks for a
// real service, here in a second. Invoicing was not told of version 3: that goes to
// the dead letters with an alert, and is redriven once invoicing knows it.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/examples/local"
	"github.com/vitrip/journeyman/outbox"
)

func main() {
	local.Main("consumer", func(ctx context.Context, dsn string) error { return run(ctx, os.Stdout, dsn) })
}

// BookedV1 is version 1 of bookings.booking.confirmed.
type BookedV1 struct {
	Booking string `json:"booking"`
	Cents   int64  `json:"cents"`
}

// BookedV2 is version 2: the price has a currency.
type BookedV2 struct {
	Booking string `json:"booking"`
	Price   Money  `json:"price"`
}

// Money is an amount in the smallest unit of its currency.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Invoicing is the application service. Listeners only read messages for it.
type Invoicing struct {
	later       *work.Store
	remindAfter time.Duration // after the invoice was written
}

// Reminder is the payload of an item in the queue reminders.
type Reminder struct {
	Booking string `json:"booking"`
}

// Bill writes the invoice of a booking, and puts a reminder for later.
func (s Invoicing) Bill(ctx context.Context, tx *outbox.Tx, m events.Received, booking string, price Money) error {
	if _, err := tx.Exec(ctx, `INSERT INTO invoice (booking, amount, currency) VALUES ($1, $2, $3)`, booking, price.Amount, price.Currency); err != nil {
		return err
	}
	return s.later.Put(ctx, tx, work.Item{
		Queue: "reminders", ID: booking, Key: booking, After: s.remindAfter, Payload: Reminder{booking},
		Origin: events.Origin{BusinessKey: booking, CorrelationID: m.Metadata.CorrelationID},
	})
}

// Remind marks the invoice as reminded of. The item is gone with the same transaction, so it happens once.
func (s Invoicing) Remind(ctx context.Context, tx *outbox.Tx, _ work.Task, r Reminder) error {
	_, err := tx.Exec(ctx, `UPDATE invoice SET reminded_at = journeyman.now(), reminders = reminders + 1 WHERE booking = $1`, r.Booking)
	return err
}

// queue is the work that invoicing does later. The catalog says its retry schedule.
func (s Invoicing) queue() work.Queue {
	return work.Queue{Name: "reminders", Concurrency: 2, Handler: work.Typed(s.Remind)}
}

// routes is all that invoicing listens to: one line per version it understands.
func (s Invoicing) routes() inbox.Route {
	return inbox.ByVersion{
		1: inbox.Typed(func(ctx context.Context, tx *outbox.Tx, m events.Received, b BookedV1) error {
			return s.Bill(ctx, tx, m, b.Booking, Money{b.Cents, "EUR"}) // version 1 knew no other
		}),
		2: inbox.Typed(func(ctx context.Context, tx *outbox.Tx, m events.Received, b BookedV2) error {
			return s.Bill(ctx, tx, m, b.Booking, b.Price)
		}),
	}.Route("bookings.booking.*")
}

// run publishes three versions, and shows what became of them when the reminders are sent.
func run(ctx context.Context, out io.Writer, dsn string) error {
	p, err := open(ctx, dsn)
	if err != nil {
		return err
	}
	defer p.close()
	invoicing := Invoicing{later: p.later, remindAfter: time.Second}
	stop, err := p.serve(invoicing.routes(), invoicing.queue())
	if err != nil {
		return err
	}
	defer stop()
	const name = "bookings.booking.confirmed"
	if err := p.emit(ctx,
		events.Message{Type: name, Version: 1, BusinessKey: "B-1", Data: BookedV1{"B-1", 19900}},
		events.Message{Type: name, Version: 2, BusinessKey: "B-2", Data: BookedV2{"B-2", Money{25000, "CHF"}}},
		events.Message{Type: name, Version: 3, BusinessKey: "B-3", Data: map[string]any{"booking": "B-3", "legs": []any{}}},
	); err != nil {
		return err
	}
	if err := p.until(ctx, `SELECT (SELECT count(*) FROM invoice WHERE reminders > 0) = 2 AND (SELECT count(*) FROM journeyman.inbox_dead) = 1`); err != nil {
		return err
	}
	return p.report(ctx, out)
}
