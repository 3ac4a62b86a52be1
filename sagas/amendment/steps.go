package amendment

import (
	"context"
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

type held = supplier.Held

// begin opens the booking and decides in one transaction whether the change is admissible, and for how much (spec I11).
func (d desk) begin(ctx context.Context, tx *worker.Tx, job worker.Job[AmendmentBeginIn]) (AmendmentBeginOut, error) {
	k, err := d.bookings.Move(ctx, tx, job.BusinessKey, tourbooking.BeginAmendment, tourbooking.Detail{Segment: job.In.Segment, Kind: job.In.Kind})
	var refused *tourbooking.MoveError
	switch {
	case errors.As(err, &refused):
		return AmendmentBeginOut{}, worker.BusinessError(CodeNotAmendable, refused.Error())
	case err != nil:
		return AmendmentBeginOut{}, err
	case k.Currency != job.In.Currency:
		return AmendmentBeginOut{}, worker.BusinessError(CodeNotAmendable, fmt.Sprintf("the booking is in %s, the amendment in %s", k.Currency, job.In.Currency))
	}
	difference := job.In.Amount - k.Amount
	if difference < 0 {
		captured, err := d.bookings.Captured(ctx, tx, job.BusinessKey, k.Currency)
		if err != nil {
			return AmendmentBeginOut{}, err
		}
		if -difference > captured {
			return AmendmentBeginOut{}, worker.BusinessError(CodeNotAmendable, fmt.Sprintf("%d would be paid back, %d are captured", -difference, captured))
		}
	}
	kind, old, err := d.bookings.Standing(ctx, tx, k, job.In.Segment)
	switch {
	case errors.Is(err, tourbooking.ErrUnknown):
		return AmendmentBeginOut{}, worker.BusinessError(CodeNotAmendable, err.Error())
	case err == nil && kind != job.In.Kind:
		return AmendmentBeginOut{}, worker.BusinessError(CodeNotAmendable, fmt.Sprintf("segment %s is a %s, the amendment is of a %s", job.In.Segment, kind, job.In.Kind))
	}
	return AmendmentBeginOut{Difference: difference, OldReservation: old, Travellers: int64(k.Travellers)}, err
}

// back ends an amendment that changed nothing.
func (d desk) back(ctx context.Context, tx *worker.Tx, u worker.UndoOf[AmendmentBeginIn, AmendmentBeginOut]) error {
	k, err := d.bookings.Lock(ctx, tx, u.Meta.BusinessKey)
	if err != nil {
		return err
	}
	_, err = d.bookings.Move(ctx, tx, u.Meta.BusinessKey, k.EndAmendmentEvent(), tourbooking.Detail{Segment: u.In.Segment, Kind: u.In.Kind, Reason: u.Reason})
	return tourbooking.FatalIfNotMoved(err)
}

func (d desk) client(kind string) (*supplier.Client, error) {
	if c := d.suppliers[kind]; c != nil {
		return c, nil
	}
	return nil, worker.Fatal(fmt.Errorf("kind %q: want hotel or transfer", kind))
}

func (d desk) reserve(ctx context.Context, c worker.Call[AmendmentReserveIn]) (held, error) {
	s, err := d.client(c.In.Kind)
	if err != nil {
		return held{}, err
	}
	return s.Reserve(ctx, c.Key, c.BusinessKey, supplier.Offer{Segment: c.In.Segment, Offer: c.In.Offer, Travellers: c.In.Travellers, Nights: c.In.Nights},
		map[string]string{"SOLD_OUT": CodeSoldOut, "OFFER_UNKNOWN": CodeOfferUnknown, "": CodeReservationRefused})
}

// reserved asks under the reference of the reservation what became of it.
func (d desk) reserved(ctx context.Context, reference, booking, kind, segment string) (held, error) {
	s, err := d.client(kind)
	if err != nil {
		return held{}, err
	}
	return s.Reserved(ctx, reference, booking, segment)
}

func reservation(operationID string, m worker.Meta, kind, segment string, res held) tourbooking.Reservation {
	return tourbooking.Reservation{OperationID: operationID, BusinessKey: m.BusinessKey, SagaID: m.SagaID, Segment: segment, Kind: kind, SupplierID: res.ID, Amount: res.Amount, Currency: res.Currency}
}

// reservedHere writes a reservation down, whether the call or a follow-up found it.
func (d desk) reservedHere(ctx context.Context, tx *worker.Tx, m worker.Meta, kind, segment string, res held) error {
	if res.Status != "confirmed" {
		return outcome.Fatalf("supplier", "the %s supplier shows reservation %s as %q, want confirmed", kind, res.ID, res.Status)
	}
	return d.bookings.Reserved(ctx, tx, reservation(m.OperationID, m, kind, segment, res))
}

// release cancels a reservation at its supplier, under the key of the undo.
func (d desk) release(ctx context.Context, key, kind string, res held) error {
	s, err := d.client(kind)
	if err != nil {
		return err
	}
	_, err = s.Cancel(ctx, key, res.ID, nil)
	return err
}

// released asks whether that took effect: nil = it did.
func (d desk) released(ctx context.Context, reference, booking, kind, segment string) error {
	s, err := d.client(kind)
	if err != nil {
		return err
	}
	return s.Cancelled(ctx, reference, booking, segment)
}

// confirm gives the booking its new segment and price and takes the decision, in one transaction (spec I11).
func (d desk) confirm(ctx context.Context, tx *worker.Tx, job worker.Job[AmendmentConfirmIn]) (AmendmentConfirmOut, error) {
	out := AmendmentConfirmOut{SagaDecision: string(sagas.Completed)}
	k, err := d.bookings.Lock(ctx, tx, job.BusinessKey)
	if err != nil {
		return out, err
	}
	if _, err := d.bookings.Amend(ctx, tx, k, job.SagaID, job.In.Segment, job.In.Kind, job.In.NewReservation, job.In.Amount); err != nil {
		return out, tourbooking.FatalIfNotMoved(err)
	}
	return out, d.sagas.Decide(ctx, tx, job.SagaID, sagas.Completed)
}

// releaseOld gives the old segment back. Doing it twice does nothing more: a reservation is cancelled once.
func (d desk) releaseOld(ctx context.Context, c worker.Call[AmendmentReleaseOldIn]) (held, error) {
	s, err := d.client(c.In.Kind)
	if err != nil {
		return held{}, err
	}
	return s.Cancel(ctx, c.Key, c.In.OldReservation, map[string]string{"": CodeReleaseRefused})
}

// releasedOld cannot ask by the cancel's own reference, suppliers know none: repeating the cancel tells.
func (d desk) releasedOld(ctx context.Context, c worker.Call[AmendmentReleaseOldIn]) (held, error) {
	return d.releaseOld(ctx, c)
}

func (d desk) settleOld(ctx context.Context, tx *worker.Tx, job worker.Job[AmendmentReleaseOldIn], _ held) (AmendmentReleaseOldOut, error) {
	k, err := d.bookings.Lock(ctx, tx, job.BusinessKey)
	if err != nil {
		return AmendmentReleaseOldOut{}, err
	}
	return AmendmentReleaseOldOut{}, d.bookings.GiveBack(ctx, tx, k, job.In.OldReservation)
}
