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

type none struct{}

// held is what a supplier holds for us, or has done. ID is empty where nothing was asked of it.
type held struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
}

func heldOf(t supplier.Thing) held { return held{t.ID, t.Status, t.Amount, t.Currency} }

const (
	pathReservations   = "/reservations"
	pathAuthorizations = "/authorizations"
	pathCaptures       = "/captures"
	pathRefunds        = "/refunds"
	paymentSegment     = "payment"
)

type beginIn struct {
	Booking  string `json:"booking"`
	Segment  string `json:"segment"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

type beginOut struct {
	Difference     int64  `json:"difference"` // minor units; below 0 it costs less
	OldReservation string `json:"oldReservation"`
	Travellers     int64  `json:"travellers"`
}

// begin opens the booking and decides in one transaction whether the change is admissible, and for how much (spec I11).
func (d desk) begin(ctx context.Context, tx *worker.Tx, job worker.Job[beginIn]) (beginOut, error) {
	k, err := d.bookings.Move(ctx, tx, job.BusinessKey, tourbooking.BeginAmendment, tourbooking.Detail{Segment: job.In.Segment})
	var refused *tourbooking.MoveError
	switch {
	case errors.As(err, &refused):
		return beginOut{}, worker.BusinessError(CodeNotAmendable, refused.Error())
	case err != nil:
		return beginOut{}, err
	case k.Currency != job.In.Currency:
		return beginOut{}, worker.BusinessError(CodeNotAmendable, fmt.Sprintf("the booking is in %s, the amendment in %s", k.Currency, job.In.Currency))
	}
	difference := job.In.Amount - k.Amount
	if difference < 0 {
		captured, err := d.bookings.Captured(ctx, tx, job.BusinessKey, k.Currency)
		if err != nil {
			return beginOut{}, err
		}
		if -difference > captured {
			return beginOut{}, worker.BusinessError(CodeNotAmendable, fmt.Sprintf("%d would be paid back, %d are captured", -difference, captured))
		}
	}
	old, err := d.bookings.Standing(ctx, tx, k, job.In.Segment)
	if errors.Is(err, tourbooking.ErrUnknown) {
		return beginOut{}, worker.BusinessError(CodeNotAmendable, err.Error())
	}
	return beginOut{Difference: difference, OldReservation: old, Travellers: int64(k.Travellers)}, err
}

// back ends an amendment that changed nothing.
func (d desk) back(ctx context.Context, tx *worker.Tx, u worker.UndoOf[beginIn, beginOut]) error {
	k, err := d.bookings.Lock(ctx, tx, u.Meta.BusinessKey)
	if err != nil {
		return err
	}
	_, err = d.bookings.Move(ctx, tx, u.Meta.BusinessKey, k.EndAmendmentEvent(), tourbooking.Detail{Segment: u.In.Segment, Reason: u.Reason})
	return fatalIfRefused(err)
}

type reserveIn struct {
	Segment    string `json:"segment"`
	Offer      string `json:"offer"`
	Nights     int64  `json:"nights,omitempty"`
	Travellers int64  `json:"travellers"`
}

type reserveOut struct {
	NewReservation string `json:"newReservation"`
}

type reservationRequest struct {
	Reference  string `json:"reference"`
	Booking    string `json:"booking"`
	Segment    string `json:"segment"`
	Offer      string `json:"offer"`
	Travellers int64  `json:"travellers,omitempty"`
	Nights     int64  `json:"nights,omitempty"`
}

func (d desk) client(segment string) (*supplier.Client, error) {
	if c := d.segments[segment]; c != nil {
		return c, nil
	}
	return nil, worker.Fatal(fmt.Errorf("segment %q: want hotel or transfer", segment))
}

func (d desk) reserve(ctx context.Context, c worker.Call[reserveIn]) (held, error) {
	s, err := d.client(c.In.Segment)
	if err != nil {
		return held{}, err
	}
	t, err := s.Post(ctx, pathReservations, c.Key, reservationRequest{c.Key, c.BusinessKey, c.In.Segment, c.In.Offer, c.In.Travellers, c.In.Nights})
	return heldOf(t), supplier.Outcome(err, map[string]string{"SOLD_OUT": codeSoldOut, "OFFER_UNKNOWN": codeOfferUnknown, "": codeReservationRefused})
}

func (d desk) reserved(ctx context.Context, c worker.Call[reserveIn]) (held, error) {
	s, err := d.client(c.In.Segment)
	if err != nil {
		return held{}, err
	}
	return ask(ctx, s, pathReservations, c.Key, c.BusinessKey, c.In.Segment)
}

func reservation(operationID string, m worker.Meta, segment string, res held) tourbooking.Reservation {
	return tourbooking.Reservation{OperationID: operationID, BusinessKey: m.BusinessKey, SagaID: m.SagaID, Segment: segment, SupplierID: res.ID, Amount: res.Amount, Currency: res.Currency}
}

func (d desk) settleReserve(ctx context.Context, tx *worker.Tx, job worker.Job[reserveIn], res held) (reserveOut, error) {
	if res.Status != "confirmed" {
		return reserveOut{}, outcome.Fatalf("supplier", "the %s supplier shows reservation %s as %q, want confirmed", job.In.Segment, res.ID, res.Status)
	}
	return reserveOut{NewReservation: res.ID}, d.bookings.Reserved(ctx, tx, reservation(job.OperationID, job.Meta, job.In.Segment, res))
}

func (d desk) release(ctx context.Context, key string, u worker.UndoOf[reserveIn, held]) error {
	s, err := d.client(u.In.Segment)
	if err != nil {
		return err
	}
	_, err = s.Post(ctx, pathReservations+"/"+u.Res.ID+"/cancel", key, none{})
	return supplier.Outcome(err, nil)
}

func (d desk) released(ctx context.Context, _ string, u worker.UndoOf[reserveIn, held]) error {
	s, err := d.client(u.In.Segment)
	if err != nil {
		return err
	}
	return became(ctx, s, pathReservations, u.OperationID, u.Meta.BusinessKey, u.In.Segment, "cancelled")
}

func (d desk) settleRelease(ctx context.Context, tx *worker.Tx, u worker.UndoOf[reserveIn, held]) error {
	return d.bookings.Released(ctx, tx, reservation(u.OperationID, u.Meta, u.In.Segment, u.Res))
}

type confirmIn struct {
	Segment        string `json:"segment"`
	NewReservation string `json:"newReservation"`
	Amount         int64  `json:"amount"`
}

type confirmOut struct {
	SagaDecision string `json:"sagaDecision"`
}

// confirm gives the booking its new segment and price and takes the decision, in one transaction (spec I11).
func (d desk) confirm(ctx context.Context, tx *worker.Tx, job worker.Job[confirmIn]) (confirmOut, error) {
	out := confirmOut{SagaDecision: string(sagas.Completed)}
	k, err := d.bookings.Lock(ctx, tx, job.BusinessKey)
	if err != nil {
		return out, err
	}
	if _, err := d.bookings.Amend(ctx, tx, k, job.SagaID, job.In.Segment, job.In.NewReservation, job.In.Amount); err != nil {
		return out, fatalIfRefused(err)
	}
	return out, d.sagas.Decide(ctx, tx, job.SagaID, sagas.Completed)
}

type oldIn struct {
	Segment        string `json:"segment"`
	OldReservation string `json:"oldReservation"`
}

// releaseOld gives the old segment back. Doing it twice does nothing more: a reservation is cancelled once.
func (d desk) releaseOld(ctx context.Context, c worker.Call[oldIn]) (held, error) {
	s, err := d.client(c.In.Segment)
	if err != nil {
		return held{}, err
	}
	t, err := s.Post(ctx, pathReservations+"/"+c.In.OldReservation+"/cancel", c.Key, none{})
	return heldOf(t), supplier.Outcome(err, map[string]string{"": codeReleaseRefused})
}

// releasedOld cannot ask by the cancel's own reference, suppliers know none: repeating the cancel tells.
func (d desk) releasedOld(ctx context.Context, c worker.Call[oldIn]) (held, error) {
	return d.releaseOld(ctx, c)
}

func (d desk) settleOld(ctx context.Context, tx *worker.Tx, job worker.Job[oldIn], _ held) (none, error) {
	k, err := d.bookings.Lock(ctx, tx, job.BusinessKey)
	if err != nil {
		return none{}, err
	}
	return none{}, d.bookings.GiveBack(ctx, tx, k, job.In.OldReservation)
}

// ask is the Resolve of a call: what it made, ErrNotHappened, or unknown.
func ask(ctx context.Context, c *supplier.Client, path, reference, booking, segment string) (held, error) {
	t, err := c.Ask(ctx, path, reference, booking, segment)
	switch {
	case errors.Is(err, supplier.ErrNotFound):
		return held{}, worker.ErrNotHappened
	case err != nil:
		return held{}, worker.Unknown(err)
	}
	return heldOf(t), nil
}

// became asks whether an undo took effect: nil = it did.
func became(ctx context.Context, c *supplier.Client, path, reference, booking, segment, status string) error {
	t, err := c.Ask(ctx, path, reference, booking, segment)
	if err != nil {
		return worker.Unknown(err)
	}
	if t.Status != status {
		return worker.ErrNotHappened
	}
	return nil
}

// fatalIfRefused makes a refused move a person's matter: model and state machine disagree.
func fatalIfRefused(err error) error {
	var refused *tourbooking.MoveError
	if errors.As(err, &refused) || errors.Is(err, tourbooking.ErrUnknown) {
		return worker.Fatal(err)
	}
	return err
}
