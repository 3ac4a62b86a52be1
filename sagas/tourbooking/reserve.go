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

// desk reserves segments of one kind at their supplier.
type desk struct {
	bookings *Bookings
	client   *supplier.Client
	kind     string
}

// held is what a supplier holds for us: result of a reservation or an authorization.
type held = supplier.Held

// offer is what a reservation asks a supplier for, whatever the kind of its segment.
type offer struct {
	Segment            string // its id
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
			return d.client.Reserve(ctx, c.Key, c.BusinessKey, supplier.Offer{Segment: o.Segment, Offer: o.Offer, Travellers: o.Travellers, Nights: o.Nights}, refusals)
		},
		Resolve: func(ctx context.Context, c worker.Call[In]) (held, error) {
			return d.client.Reserved(ctx, c.Key, c.BusinessKey, in(c.In).Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[In], res held) (Out, error) {
			return out(res.ID), d.settle(ctx, tx, job.Meta, in(job.In).Segment, res)
		},
	}
}

// cancellation undoes a reservation.
func cancellation[In any](d desk, in func(In) offer) worker.RemoteUndo[In, held] {
	return worker.RemoteUndo[In, held]{
		Call: func(ctx context.Context, key string, u worker.UndoOf[In, held]) error {
			return d.cancel(ctx, key, u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[In, held]) error {
			return d.client.Cancelled(ctx, u.OperationID, u.Meta.BusinessKey, in(u.In).Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[In, held]) error {
			return d.released(ctx, tx, u.OperationID, u.Meta, in(u.In).Segment, u.Res, u.Reason)
		},
	}
}

// asked is what a follow-up is about.
type asked struct {
	Segment string // its id
	Forward string // operation id of the reservation
}

// followUp asks until it is known what became of a reservation (spec S4). What it finds is its own
// effect from then on: the forward operation has ended with an unknown outcome.
func followUp[In, Out any](d desk, in func(In) asked, out func(id string) Out) worker.Remote[In, held, Out] {
	return worker.Remote[In, held, Out]{
		Call: func(ctx context.Context, c worker.Call[In]) (held, error) {
			res, err := d.client.Reserved(ctx, in(c.In).Forward, c.BusinessKey, in(c.In).Segment)
			return supplier.Found(res, err, CodeNotReserved)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[In], res held) (Out, error) {
			return out(res.ID), d.settle(ctx, tx, job.Meta, in(job.In).Segment, res)
		},
	}
}

// followUpCancellation undoes a reservation that a follow-up found, under the forward operation's id.
func followUpCancellation[In any](d desk, in func(In) asked) worker.RemoteUndo[In, held] {
	return worker.RemoteUndo[In, held]{
		Call: func(ctx context.Context, _ string, u worker.UndoOf[In, held]) error {
			return d.cancel(ctx, in(u.In).Forward+":undo", u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[In, held]) error {
			return d.client.Cancelled(ctx, in(u.In).Forward, u.Meta.BusinessKey, in(u.In).Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[In, held]) error {
			return d.released(ctx, tx, u.OperationID, u.Meta, in(u.In).Segment, u.Res, u.Reason)
		},
	}
}

// row is what is written down of a reservation.
func (d desk) row(operationID string, m worker.Meta, segment string, res held) Reservation {
	return Reservation{
		OperationID: operationID, BusinessKey: m.BusinessKey, SagaID: m.SagaID, Segment: segment, Kind: d.kind,
		SupplierID: res.ID, Amount: res.Amount, Currency: res.Currency,
	}
}

// settle writes a confirmed reservation down and moves the booking.
func (d desk) settle(ctx context.Context, tx *outbox.Tx, m worker.Meta, segment string, res held) error {
	if res.Status != "confirmed" {
		return outcome.Fatalf("supplier", "the %s supplier shows reservation %s as %q, want confirmed", d.kind, res.ID, res.Status)
	}
	k, err := d.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return FatalIfUnknown(err)
	}
	if err := d.bookings.Reserved(ctx, tx, d.row(m.OperationID, m, segment, res)); err != nil {
		return err
	}
	var confirmed int
	if err := tx.QueryRow(ctx, d.bookings.sql.countSegments, m.SagaID).Scan(&confirmed); err != nil {
		return fmt.Errorf("count reservations: %w", err)
	}
	e := SegmentConfirmed
	if confirmed == k.Segments {
		e = SegmentsComplete
	}
	_, err = d.bookings.move(ctx, tx, k, e, Detail{Segment: segment, Kind: d.kind, Supplier: res.ID})
	return FatalIfRefused(err)
}

func (d desk) cancel(ctx context.Context, key string, res held) error {
	_, err := d.client.Cancel(ctx, key, res.ID, nil)
	return err
}

// released writes down that a reservation is undone. The booking moves only for its own attempt: an orphan of
// an older one tells nothing about it.
func (d desk) released(ctx context.Context, tx *outbox.Tx, forward string, m worker.Meta, segment string, res held, reason string) error {
	k, err := d.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return FatalIfUnknown(err)
	}
	if err := d.bookings.Released(ctx, tx, d.row(forward, m, segment, res)); err != nil {
		return err
	}
	if k.SagaID != m.SagaID {
		return nil
	}
	_, err = d.bookings.move(ctx, tx, k, SegmentReleased, Detail{Segment: segment, Kind: d.kind, Supplier: res.ID, Reason: reason})
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
