package ticketing

import (
	"context"
	"errors"
	"time"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// asked is the airline's receipt of a request.
type asked struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// ticketRequest is the airline's own format.
type ticketRequest struct {
	Reference    string   `json:"reference"`
	Booking      string   `json:"booking"`
	Reservations []string `json:"reservations"` // of the flights: each traveller gets a ticket for each
	Travellers   int64    `json:"travellers"`
	Callback     string   `json:"callback"`
}

const (
	pathTickets = "/tickets"
	segment     = "flight"
)

// TicketRequest asks the airline for the tickets.
func (d desk) TicketRequest() TicketRequestHandler {
	return TicketRequestExternal(worker.Remote[TicketRequestIn, asked, TicketRequestOut]{
		Call: func(ctx context.Context, c worker.Call[TicketRequestIn]) (asked, error) {
			t, err := d.cfg.Flight.Post(ctx, pathTickets, c.Key, ticketRequest{
				Reference: c.Key, Booking: c.BusinessKey, Reservations: c.In.Reservations, Travellers: c.In.Travellers,
				Callback: signed(d.cfg.CallbackURL, d.cfg.CallbackSecret, c.Key),
			})
			return asked{t.ID, t.Status}, supplier.Outcome(err, map[string]string{"": CodeTicketingRefused})
		},
		Resolve: func(ctx context.Context, c worker.Call[TicketRequestIn]) (asked, error) {
			return d.ask(ctx, c.Key, c.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[TicketRequestIn], res asked) (TicketRequestOut, error) {
			return TicketRequestOut{RequestID: res.ID}, d.settle(ctx, tx, job.BusinessKey, res)
		},
	},
		TicketRequestUndo(worker.RemoteUndo[TicketRequestIn, asked]{
			Call: func(ctx context.Context, key string, u worker.UndoOf[TicketRequestIn, asked]) error {
				return d.withdraw(ctx, key, u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[TicketRequestIn, asked]) error {
				return d.withdrawn(ctx, u.OperationID, u.Meta.BusinessKey)
			},
		}),
		worker.Orphan(worker.Undo), worker.KeyValidFor(d.cfg.KeyValidFor), worker.SLA(d.cfg.SLA),
		worker.Retain(d.cfg.Retain), worker.Expect(d.cfg.PerSecond, 300*time.Millisecond),
	)
}

// TicketFollowUp finds out whether the airline has the request.
func (d desk) TicketFollowUp() TicketFollowUpHandler {
	return TicketFollowUpExternal(worker.Remote[TicketFollowUpIn, asked, TicketFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[TicketFollowUpIn]) (asked, error) {
			res, err := d.ask(ctx, c.In.ForwardOperationID, c.BusinessKey)
			if errors.Is(err, worker.ErrNotHappened) {
				return asked{}, worker.BusinessError(CodeTicketingRefused, "the airline has no request under the reference of the forward operation")
			}
			return res, err
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[TicketFollowUpIn], res asked) (TicketFollowUpOut, error) {
			return TicketFollowUpOut{RequestID: res.ID}, d.settle(ctx, tx, job.BusinessKey, res)
		},
	},
		TicketFollowUpUndo(worker.RemoteUndo[TicketFollowUpIn, asked]{
			Call: func(ctx context.Context, _ string, u worker.UndoOf[TicketFollowUpIn, asked]) error {
				return d.withdraw(ctx, u.In.ForwardOperationID+":undo", u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[TicketFollowUpIn, asked]) error {
				return d.withdrawn(ctx, u.In.ForwardOperationID, u.Meta.BusinessKey)
			},
		}),
		worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA),
		worker.Retain(d.cfg.Retain), worker.Expect(d.cfg.PerSecond/100, 300*time.Millisecond),
	)
}

func (d desk) settle(ctx context.Context, tx *outbox.Tx, businessKey string, res asked) error {
	if res.Status != "requested" {
		return outcome.Fatalf("supplier", "the airline shows ticket request %s as %q, want requested", res.ID, res.Status)
	}
	_, err := d.bookings.Move(ctx, tx, businessKey, tourbooking.RequestTickets, tourbooking.Detail{Segment: segment, Supplier: res.ID})
	return tourbooking.FatalIfRefused(err)
}

func (d desk) ask(ctx context.Context, reference, booking string) (asked, error) {
	t, err := d.cfg.Flight.Ask(ctx, pathTickets, reference, booking, segment)
	if errors.Is(err, supplier.ErrNotFound) {
		return asked{}, worker.ErrNotHappened
	}
	if err != nil {
		return asked{}, worker.Unknown(err)
	}
	return asked{t.ID, t.Status}, nil
}

func (d desk) withdraw(ctx context.Context, key string, res asked) error {
	_, err := d.cfg.Flight.Post(ctx, pathTickets+"/"+res.ID+"/withdraw", key, struct{}{})
	return supplier.Outcome(err, nil)
}

// withdrawn asks whether the withdrawal took effect: nil = it did.
func (d desk) withdrawn(ctx context.Context, reference, booking string) error {
	t, err := d.cfg.Flight.Ask(ctx, pathTickets, reference, booking, segment)
	if err != nil {
		return worker.Unknown(err)
	}
	if t.Status != "withdrawn" {
		return worker.ErrNotHappened
	}
	return nil
}
