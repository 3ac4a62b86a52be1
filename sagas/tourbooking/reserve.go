package tourbooking

import (
	"context"
	"errors"
	"fmt"

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
type held = supplier.Held

// offer is what a reservation asks a supplier for, whatever the segment.
type offer struct {
	Offer              string
	Travellers, Nights int64 // nights: hotel only
}

// refusals maps the suppliers' codes to error codes of the model.
var refusals = map[string]string{ //nolint:gochecknoglobals // a constant table
	"SOLD_OUT":      CodeSoldOut,
	"OFFER_UNKNOWN": CodeOfferUnknown,
	"":              CodeReservationRefused,
}

// reservation reserves at the desk's supplier. in reads a segment's input, out makes its output of the supplier's id.
func reservation[In, Out any](d desk, in func(In) offer, out func(id string) Out) worker.Remote[In, held, Out] {
	return worker.Remote[In, held, Out]{
		Call: func(ctx context.Context, c worker.Call[In]) (held, error) {
			o := in(c.In)
			return d.client.Reserve(ctx, c.Key, c.BusinessKey, supplier.Offer{Segment: d.segment, Offer: o.Offer, Travellers: o.Travellers, Nights: o.Nights}, refusals)
		},
		Resolve: func(ctx context.Context, c worker.Call[In]) (held, error) {
			return d.client.Reserved(ctx, c.Key, c.BusinessKey, d.segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[In], res held) (Out, error) {
			return out(res.ID), d.settle(ctx, tx, job.Meta, res)
		},
	}
}

// cancellation undoes a reservation.
func cancellation[In any](d desk) worker.RemoteUndo[In, held] {
	return worker.RemoteUndo[In, held]{
		Call: func(ctx context.Context, key string, u worker.UndoOf[In, held]) error {
			return d.cancel(ctx, key, u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[In, held]) error {
			return d.cancelled(ctx, u.OperationID, u.Meta.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[In, held]) error {
			return d.released(ctx, tx, u.OperationID, u.Meta, u.Res, u.Reason)
		},
	}
}

// followUp asks until it is known what became of a reservation (spec S4). What it finds is its own
// effect from then on: the forward operation has ended with an unknown outcome.
func followUp[In, Out any](d desk, forward func(In) string, out func(id string) Out) worker.Remote[In, held, Out] {
	return worker.Remote[In, held, Out]{
		Call: func(ctx context.Context, c worker.Call[In]) (held, error) {
			res, err := d.client.Reserved(ctx, forward(c.In), c.BusinessKey, d.segment)
			return supplier.Found(res, err, CodeNotReserved)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[In], res held) (Out, error) {
			return out(res.ID), d.settle(ctx, tx, job.Meta, res)
		},
	}
}

// followUpCancellation undoes a reservation that a follow-up found, under the forward operation's id.
func followUpCancellation[In any](d desk, forward func(In) string) worker.RemoteUndo[In, held] {
	return worker.RemoteUndo[In, held]{
		Call: func(ctx context.Context, _ string, u worker.UndoOf[In, held]) error {
			return d.cancel(ctx, forward(u.In)+":undo", u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[In, held]) error {
			return d.cancelled(ctx, forward(u.In), u.Meta.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[In, held]) error {
			return d.released(ctx, tx, u.OperationID, u.Meta, u.Res, u.Reason)
		},
	}
}

// settle writes a confirmed reservation down and moves the booking.
func (d desk) settle(ctx context.Context, tx *outbox.Tx, m worker.Meta, res held) error {
	if res.Status != "confirmed" {
		return outcome.Fatalf("supplier", "the %s supplier shows reservation %s as %q, want confirmed", d.segment, res.ID, res.Status)
	}
	k, err := d.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return FatalIfUnknown(err)
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
	return FatalIfRefused(err)
}

func (d desk) cancel(ctx context.Context, key string, res held) error {
	_, err := d.client.Cancel(ctx, key, res.ID, nil)
	return err
}

// cancelled asks whether the cancellation took effect: nil = it did.
func (d desk) cancelled(ctx context.Context, reference, booking string) error {
	return d.client.Cancelled(ctx, reference, booking, d.segment)
}

// released writes down that a reservation is undone. The booking moves only for its own attempt: an orphan of
// an older one tells nothing about it.
func (d desk) released(ctx context.Context, tx *outbox.Tx, forward string, m worker.Meta, res held, reason string) error {
	k, err := d.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return FatalIfUnknown(err)
	}
	if _, err := tx.Exec(ctx, d.bookings.sql.releaseReservation, forward, m.BusinessKey, m.SagaID, d.segment, res.ID, res.Amount, res.Currency); err != nil {
		return fmt.Errorf("release reservation: %w", err)
	}
	if k.SagaID != m.SagaID {
		return nil
	}
	_, err = d.bookings.move(ctx, tx, k, SegmentReleased, Detail{Segment: d.segment, Supplier: res.ID, Reason: reason})
	return FatalIfRefused(err)
}

// FatalIfUnknown makes a missing booking ([ErrUnknown]) a person's matter: no later attempt finds it.
func FatalIfUnknown(err error) error {
	if errors.Is(err, ErrUnknown) {
		return worker.Fatal(err)
	}
	return err
}

// FatalIfNotMoved is [FatalIfRefused] and [FatalIfUnknown].
func FatalIfNotMoved(err error) error { return FatalIfUnknown(FatalIfRefused(err)) }

// FatalIfRefused makes a refused move ([MoveError]) a person's matter: model and state machine disagree.
func FatalIfRefused(err error) error {
	var refused *MoveError
	if errors.As(err, &refused) {
		return worker.Fatal(err)
	}
	return err
}
