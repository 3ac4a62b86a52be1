package tourbooking

import (
	"context"
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// desk reserves one segment at its supplier.
type desk struct {
	bookings *Bookings
	client   *supplier.Client
	segment  string
}

// held is what a supplier holds for us: result of a reservation or an authorization.
type held struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
}

func heldOf(t supplier.Thing) held { return held{t.ID, t.Status, t.Amount, t.Currency} }

type reserveIn struct {
	Booking    string `json:"booking"`
	Offer      string `json:"offer"`
	Travellers int    `json:"travellers"`
	Nights     int    `json:"nights,omitempty"` // hotel only
}

type reserveOut struct {
	ReservationID string `json:"reservationId"`
}

// reservationRequest is the supplier's own format.
type reservationRequest struct {
	Reference  string `json:"reference"`
	Booking    string `json:"booking"`
	Segment    string `json:"segment"`
	Offer      string `json:"offer"`
	Travellers int    `json:"travellers,omitempty"`
	Nights     int    `json:"nights,omitempty"`
}

// refusals maps the suppliers' codes to error codes of the model.
var refusals = map[string]string{ //nolint:gochecknoglobals // a constant table
	"SOLD_OUT":      models.CodeSoldOut,
	"OFFER_UNKNOWN": models.CodeOfferUnknown,
	"":              models.CodeReservationRefused,
}

const pathReservations = "/reservations"

func (d desk) reserveHandler(undoType string) worker.Handler {
	return worker.External(worker.Remote[reserveIn, held, reserveOut]{
		Call: func(ctx context.Context, c worker.Call[reserveIn]) (held, error) {
			t, err := d.client.Post(ctx, pathReservations, c.Key, reservationRequest{
				Reference: c.Key, Booking: c.BusinessKey, Segment: d.segment, Offer: c.In.Offer, Travellers: c.In.Travellers, Nights: c.In.Nights,
			})
			return heldOf(t), supplier.Outcome(err, refusals)
		},
		Resolve: func(ctx context.Context, c worker.Call[reserveIn]) (held, error) {
			return ask(ctx, d.client, pathReservations, c.Key, c.BusinessKey, d.segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[reserveIn], res held) (reserveOut, error) {
			return reserveOut{res.ID}, d.settle(ctx, tx, job.Meta, res)
		},
	},
		worker.CompensatedBy(undoType, worker.RemoteUndo[reserveIn, held]{
			Call: func(ctx context.Context, key string, u worker.UndoOf[reserveIn, held]) error {
				return d.cancel(ctx, key, u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[reserveIn, held]) error {
				return d.cancelled(ctx, u.OperationID, u.Meta.BusinessKey)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[reserveIn, held]) error {
				return d.released(ctx, tx, u.OperationID, u.Meta, u.Res, u.Reason)
			},
		}),
		worker.Orphan(worker.Undo),
		worker.Throws(models.CodeSoldOut, models.CodeOfferUnknown, models.CodeReservationRefused),
	)
}

type followUpIn struct {
	Booking            string `json:"booking"`
	Offer              string `json:"offer"`
	ForwardOperationID string `json:"forwardOperationId"`
}

// followUpHandler asks until it is known what became of a reservation (spec S4). What it finds is its own
// effect from then on: the forward operation has ended with an unknown outcome.
func (d desk) followUpHandler(undoType string) worker.Handler {
	return worker.External(worker.Remote[followUpIn, held, reserveOut]{
		Call: func(ctx context.Context, c worker.Call[followUpIn]) (held, error) {
			return found(ctx, d.client, pathReservations, c.In.ForwardOperationID, c.BusinessKey, d.segment, models.CodeNotReserved)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[followUpIn], res held) (reserveOut, error) {
			return reserveOut{res.ID}, d.settle(ctx, tx, job.Meta, res)
		},
	},
		worker.CompensatedBy(undoType, worker.RemoteUndo[followUpIn, held]{
			Call: func(ctx context.Context, _ string, u worker.UndoOf[followUpIn, held]) error {
				return d.cancel(ctx, u.In.ForwardOperationID+":undo", u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[followUpIn, held]) error {
				return d.cancelled(ctx, u.In.ForwardOperationID, u.Meta.BusinessKey)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[followUpIn, held]) error {
				return d.released(ctx, tx, u.OperationID, u.Meta, u.Res, u.Reason)
			},
		}),
		worker.Orphan(worker.Undo),
		worker.Throws(models.CodeNotReserved),
	)
}

// settle writes a confirmed reservation down and moves the booking.
func (d desk) settle(ctx context.Context, tx *outbox.Tx, m worker.Meta, res held) error {
	if res.Status != "confirmed" {
		return outcome.Fatalf("supplier", "the %s supplier shows reservation %s as %q, want confirmed", d.segment, res.ID, res.Status)
	}
	k, err := d.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return fatalIfUnknown(err)
	}
	if _, err := tx.Exec(ctx, d.bookings.sql.upsertReservation, m.OperationID, m.BusinessKey, m.SagaID, d.segment, res.ID, res.Amount, res.Currency); err != nil {
		return fmt.Errorf("write reservation: %w", err)
	}
	var confirmed int
	if err := tx.QueryRow(ctx, d.bookings.sql.countSegments, m.SagaID).Scan(&confirmed); err != nil {
		return fmt.Errorf("count reservations: %w", err)
	}
	e := SegmentConfirmed
	if confirmed == segments {
		e = SegmentsComplete
	}
	_, err = d.bookings.move(ctx, tx, k, e, Detail{Segment: d.segment, Supplier: res.ID})
	return fatalIfRefused(err)
}

func (d desk) cancel(ctx context.Context, key string, res held) error {
	_, err := d.client.Post(ctx, pathReservations+"/"+res.ID+"/cancel", key, struct{}{})
	return supplier.Outcome(err, nil)
}

// cancelled asks whether the cancellation took effect: nil = it did.
func (d desk) cancelled(ctx context.Context, reference, booking string) error {
	t, err := d.client.Ask(ctx, pathReservations, reference, booking, d.segment)
	if err != nil {
		return worker.Unknown(err)
	}
	if t.Status != "cancelled" {
		return worker.ErrNotHappened
	}
	return nil
}

// released writes down that a reservation is undone. The booking moves only for its own attempt: an orphan of
// an older one tells nothing about it.
func (d desk) released(ctx context.Context, tx *outbox.Tx, forward string, m worker.Meta, res held, reason string) error {
	k, err := d.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return fatalIfUnknown(err)
	}
	if _, err := tx.Exec(ctx, d.bookings.sql.releaseReservation, forward, m.BusinessKey, m.SagaID, d.segment, res.ID, res.Amount, res.Currency); err != nil {
		return fmt.Errorf("release reservation: %w", err)
	}
	if k.SagaID != m.SagaID {
		return nil
	}
	_, err = d.bookings.move(ctx, tx, k, SegmentReleased, Detail{Segment: d.segment, Supplier: res.ID, Reason: reason})
	return fatalIfRefused(err)
}

// ask is the Resolve of a call: what it made, ErrNotHappened, or unknown.
func ask(ctx context.Context, c *supplier.Client, path, reference, booking, segment string) (held, error) {
	t, err := c.Ask(ctx, path, reference, booking, segment)
	if errors.Is(err, supplier.ErrNotFound) {
		return held{}, worker.ErrNotHappened
	}
	if err != nil {
		return held{}, worker.Unknown(err)
	}
	return heldOf(t), nil
}

// found is the Call of a follow-up: what the forward call made, a BUSINESS error with code when it made nothing, or unknown.
func found(ctx context.Context, c *supplier.Client, path, reference, booking, segment, code string) (held, error) {
	res, err := ask(ctx, c, path, reference, booking, segment)
	if errors.Is(err, worker.ErrNotHappened) {
		return held{}, worker.BusinessError(code, "the supplier has nothing under the reference of the forward operation")
	}
	return res, err
}

// fatalIfUnknown makes a missing booking a person's matter: no later attempt finds it.
func fatalIfUnknown(err error) error {
	if errors.Is(err, ErrUnknown) {
		return worker.Fatal(err)
	}
	return err
}

// fatalIfRefused makes a refused move a person's matter: model and state machine disagree.
func fatalIfRefused(err error) error {
	var refused *MoveError
	if errors.As(err, &refused) {
		return worker.Fatal(err)
	}
	return err
}
