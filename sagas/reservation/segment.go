package reservation

import (
	"context"
	"fmt"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

type held = supplier.Held

func (d desk) client(segment string) (*supplier.Client, error) {
	if c := d.segments[segment]; c != nil {
		return c, nil
	}
	return nil, worker.Fatal(fmt.Errorf("segment %q: want flight, hotel or transfer", segment))
}

// ReservationReserve reserves the segment at its supplier.
func (d desk) ReservationReserve() ReservationReserveHandler {
	return ReservationReserveExternal(worker.Remote[ReservationReserveIn, held, ReservationReserveOut]{
		Call: d.reserve,
		Resolve: func(ctx context.Context, c worker.Call[ReservationReserveIn]) (held, error) {
			return d.reserved(ctx, c.Key, c.BusinessKey, c.In.Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[ReservationReserveIn], res held) (ReservationReserveOut, error) {
			return ReservationReserveOut{ReservationID: res.ID}, d.hold(ctx, tx, job.Meta, job.In.Segment, res)
		},
	}, ReservationReserveUndo(worker.RemoteUndo[ReservationReserveIn, held]{
		Call: func(ctx context.Context, key string, u worker.UndoOf[ReservationReserveIn, held]) error {
			return d.release(ctx, key, u.In.Segment, u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[ReservationReserveIn, held]) error {
			return d.released(ctx, u.OperationID, u.Meta.BusinessKey, u.In.Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[ReservationReserveIn, held]) error {
			return d.let(ctx, tx, u.OperationID, u.Meta, u.In.Segment, u.Res, u.Reason)
		},
	}), worker.Orphan(worker.Undo), worker.KeyIgnored(), d.sla, d.retain, d.often)
}

// ReservationFollowUp finds out what became of a reservation with an unknown outcome (spec S4). What it finds is its own effect
// from then on, undone under the forward operation's id.
func (d desk) ReservationFollowUp() ReservationFollowUpHandler {
	return ReservationFollowUpExternal(worker.Remote[ReservationFollowUpIn, held, ReservationFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[ReservationFollowUpIn]) (held, error) {
			res, err := d.reserved(ctx, c.In.ForwardOperationID, c.BusinessKey, c.In.Segment)
			return supplier.Found(res, err, CodeNotReserved)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[ReservationFollowUpIn], res held) (ReservationFollowUpOut, error) {
			return ReservationFollowUpOut{ReservationID: res.ID}, d.hold(ctx, tx, job.Meta, job.In.Segment, res)
		},
	}, ReservationFollowUpUndo(worker.RemoteUndo[ReservationFollowUpIn, held]{
		Call: func(ctx context.Context, _ string, u worker.UndoOf[ReservationFollowUpIn, held]) error {
			return d.release(ctx, u.In.ForwardOperationID+":undo", u.In.Segment, u.Res)
		},
		Resolve: func(ctx context.Context, _ string, u worker.UndoOf[ReservationFollowUpIn, held]) error {
			return d.released(ctx, u.In.ForwardOperationID, u.Meta.BusinessKey, u.In.Segment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[ReservationFollowUpIn, held]) error {
			return d.let(ctx, tx, u.OperationID, u.Meta, u.In.Segment, u.Res, u.Reason)
		},
	}), worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), d.retain, d.seldom)
}

func (d desk) reserve(ctx context.Context, c worker.Call[ReservationReserveIn]) (held, error) {
	s, err := d.client(c.In.Segment)
	if err != nil {
		return held{}, err
	}
	return s.Reserve(ctx, c.Key, c.BusinessKey, supplier.Offer{Segment: c.In.Segment, Offer: c.In.Offer, Travellers: c.In.Travellers, Nights: c.In.Nights},
		map[string]string{"SOLD_OUT": CodeSoldOut, "OFFER_UNKNOWN": CodeOfferUnknown, "": CodeReservationRefused})
}

// reserved asks under the reference of the reservation what became of it.
func (d desk) reserved(ctx context.Context, reference, booking, segment string) (held, error) {
	s, err := d.client(segment)
	if err != nil {
		return held{}, err
	}
	return s.Reserved(ctx, reference, booking, segment)
}

// hold writes a confirmed reservation down and moves the booking, whether the call or a follow-up found it.
func (d desk) hold(ctx context.Context, tx *outbox.Tx, m worker.Meta, segment string, res held) error {
	if res.Status != "confirmed" {
		return outcome.Fatalf("supplier", "the %s supplier shows reservation %s as %q, want confirmed", segment, res.ID, res.Status)
	}
	if err := d.bookings.Reserved(ctx, tx, row(m.OperationID, m, segment, res)); err != nil {
		return err
	}
	_, err := d.bookings.Move(ctx, tx, m.BusinessKey, tourbooking.SegmentsComplete, tourbooking.Detail{Segment: segment, Kind: segment, Supplier: res.ID})
	return tourbooking.FatalIfNotMoved(err)
}

// row is of a booking whose only segment has its kind as id.
func row(operationID string, m worker.Meta, segment string, res held) tourbooking.Reservation {
	return tourbooking.Reservation{
		OperationID: operationID, BusinessKey: m.BusinessKey, SagaID: m.SagaID, Segment: segment, Kind: segment, SupplierID: res.ID, Amount: res.Amount, Currency: res.Currency,
	}
}

// release cancels a reservation at its supplier, under the key of the undo.
func (d desk) release(ctx context.Context, key, segment string, res held) error {
	s, err := d.client(segment)
	if err != nil {
		return err
	}
	_, err = s.Cancel(ctx, key, res.ID, nil)
	return err
}

// released asks whether that took effect: nil = it did.
func (d desk) released(ctx context.Context, reference, booking, segment string) error {
	s, err := d.client(segment)
	if err != nil {
		return err
	}
	return s.Cancelled(ctx, reference, booking, segment)
}

// let writes down that a reservation is undone. The booking moves only for its own attempt: an orphan of an older one tells
// nothing about it.
func (d desk) let(ctx context.Context, tx *outbox.Tx, forward string, m worker.Meta, segment string, res held, reason string) error {
	if err := d.bookings.Released(ctx, tx, row(forward, m, segment, res)); err != nil {
		return err
	}
	return d.moveOwn(ctx, tx, m, segment, res, reason)
}

func (d desk) moveOwn(ctx context.Context, tx *outbox.Tx, m worker.Meta, segment string, res held, reason string) error {
	k, err := d.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return tourbooking.FatalIfNotMoved(err)
	}
	if k.SagaID != m.SagaID {
		return nil
	}
	_, err = d.bookings.Move(ctx, tx, m.BusinessKey, tourbooking.SegmentReleased, tourbooking.Detail{Segment: segment, Supplier: res.ID, Reason: reason})
	return tourbooking.FatalIfNotMoved(err)
}
