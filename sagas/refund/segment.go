package refund

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

type segmentIn struct {
	Booking  string  `json:"booking"`
	Segment  Segment `json:"segment"`
	Currency string  `json:"currency"`
}

type segmentFollowUpIn struct {
	Booking            string  `json:"booking"`
	Segment            Segment `json:"segment"`
	Currency           string  `json:"currency"`
	ForwardOperationID string  `json:"forwardOperationId"`
}

// returned is what a supplier said: it took the segment back, or refused. A refusal is a result, for an
// iteration must not throw (path rule 13).
type returned struct {
	ID     string `json:"id,omitempty"`
	Status string `json:"status"` // refunded, refused or reinstated
	Code   string `json:"code,omitempty"`
}

const (
	statusRefunded   = "refunded"
	statusRefused    = "refused"
	statusReinstated = "reinstated"
)

type segmentOut struct {
	Result segmentResult `json:"result"`
}

// segmentResult is the element of the process variable "results".
type segmentResult struct {
	Segment     string `json:"segment"`
	Status      string `json:"status"`
	Code        string `json:"code,omitempty"`
	Amount      int64  `json:"amount"`
	OperationID string `json:"operationId"`
}

// returnRequest is the suppliers' own format.
type returnRequest struct {
	Reference   string `json:"reference"`
	Booking     string `json:"booking"`
	Segment     string `json:"segment"`
	Reservation string `json:"reservation"`
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
}

const pathReturns = "/returns"

func (d desk) client(kind string) (*supplier.Client, error) {
	c := d.suppliers[kind]
	if c == nil {
		return nil, worker.Fatal(fmt.Errorf("segment kind %q: want flight, hotel or transfer", kind))
	}
	return c, nil
}

func (d desk) segmentHandler() worker.Handler {
	return worker.External(worker.Remote[segmentIn, returned, segmentOut]{
		Call: func(ctx context.Context, c worker.Call[segmentIn]) (returned, error) {
			s, err := d.client(c.In.Segment.Kind)
			if err != nil {
				return returned{}, err
			}
			t, err := s.Post(ctx, pathReturns, c.Key, returnRequest{
				Reference: c.Key, Booking: c.BusinessKey, Segment: c.In.Segment.Kind, Reservation: c.In.Segment.Reference,
				Amount: c.In.Segment.Amount, Currency: c.In.Currency,
			})
			return answered(t, err)
		},
		Resolve: func(ctx context.Context, c worker.Call[segmentIn]) (returned, error) {
			return d.ask(ctx, c.In.Segment.Kind, c.Key, c.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[segmentIn], res returned) (segmentOut, error) {
			return d.settle(ctx, tx, job.Meta, job.In.Segment, job.In.Currency, res)
		},
	},
		worker.CompensatedBy(models.JobSegmentReinstate, worker.RemoteUndo[segmentIn, returned]{
			Call: func(ctx context.Context, key string, u worker.UndoOf[segmentIn, returned]) error {
				return d.reinstate(ctx, key, u.In.Segment.Kind, u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[segmentIn, returned]) error {
				return d.reinstated(ctx, u.In.Segment.Kind, u.OperationID, u.Meta.BusinessKey, u.Res)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[segmentIn, returned]) error {
				return d.undone(ctx, tx, u.OperationID, u.Meta, u.In.Segment, u.In.Currency, u.Res)
			},
		}),
		worker.Orphan(worker.Undo), worker.Amount(func(in segmentIn) (int64, string) { return in.Segment.Amount, in.Currency }),
	)
}

func (d desk) segmentFollowUpHandler() worker.Handler {
	return worker.External(worker.Remote[segmentFollowUpIn, returned, segmentOut]{
		Call: func(ctx context.Context, c worker.Call[segmentFollowUpIn]) (returned, error) {
			res, err := d.ask(ctx, c.In.Segment.Kind, c.In.ForwardOperationID, c.BusinessKey)
			if errors.Is(err, worker.ErrNotHappened) {
				return returned{Status: statusRefused, Code: "NOT_TAKEN_BACK"}, nil
			}
			return res, err
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[segmentFollowUpIn], res returned) (segmentOut, error) {
			return d.settle(ctx, tx, job.Meta, job.In.Segment, job.In.Currency, res)
		},
	},
		worker.CompensatedBy(models.JobSegmentReinstate, worker.RemoteUndo[segmentFollowUpIn, returned]{
			Call: func(ctx context.Context, _ string, u worker.UndoOf[segmentFollowUpIn, returned]) error {
				return d.reinstate(ctx, u.In.ForwardOperationID+":undo", u.In.Segment.Kind, u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[segmentFollowUpIn, returned]) error {
				return d.reinstated(ctx, u.In.Segment.Kind, u.In.ForwardOperationID, u.Meta.BusinessKey, u.Res)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[segmentFollowUpIn, returned]) error {
				return d.undone(ctx, tx, u.OperationID, u.Meta, u.In.Segment, u.In.Currency, u.Res)
			},
		}),
		worker.Orphan(worker.Undo), worker.Amount(func(in segmentFollowUpIn) (int64, string) { return in.Segment.Amount, in.Currency }),
	)
}

// answered makes a refusal a result.
func answered(t supplier.Thing, err error) (returned, error) {
	err = supplier.Outcome(err, map[string]string{"": "REFUSED"})
	var o *outcome.Error
	if errors.As(err, &o) && o.Class == outcome.Business {
		return returned{Status: statusRefused, Code: o.Code}, nil
	}
	return returned{ID: t.ID, Status: t.Status}, err
}

func (d desk) ask(ctx context.Context, kind, reference, booking string) (returned, error) {
	s, err := d.client(kind)
	if err != nil {
		return returned{}, err
	}
	t, err := s.Ask(ctx, pathReturns, reference, booking, kind)
	if errors.Is(err, supplier.ErrNotFound) {
		return returned{}, worker.ErrNotHappened
	}
	if err != nil {
		return returned{}, worker.Unknown(err)
	}
	return returned{ID: t.ID, Status: t.Status}, nil
}

func (d desk) settle(ctx context.Context, tx *outbox.Tx, m worker.Meta, s Segment, currency string, res returned) (segmentOut, error) {
	if res.Status != statusRefunded && res.Status != statusRefused {
		return segmentOut{}, outcome.Fatalf("supplier", "the %s supplier shows return %s as %q, want refunded", s.Kind, res.ID, res.Status)
	}
	if _, err := tx.Exec(ctx, d.sql.insertSegment, m.OperationID, m.BusinessKey, m.SagaID, s.Kind, res.ID, res.Status, s.Amount, currency); err != nil {
		return segmentOut{}, fmt.Errorf("write segment: %w", err)
	}
	tx.Emit(told(m, s, currency, res))
	return segmentOut{segmentResult{Segment: s.Kind, Status: res.Status, Code: res.Code, Amount: s.Amount, OperationID: m.OperationID}}, nil
}

// reinstate takes a return back. What the supplier refused has nothing to take back.
func (d desk) reinstate(ctx context.Context, key, kind string, res returned) error {
	if res.Status == statusRefused {
		return nil
	}
	s, err := d.client(kind)
	if err != nil {
		return err
	}
	_, err = s.Post(ctx, pathReturns+"/"+res.ID+"/reinstate", key, struct{}{})
	return supplier.Outcome(err, nil)
}

// reinstated asks whether the reinstatement took effect: nil = it did, or there was nothing to reinstate.
func (d desk) reinstated(ctx context.Context, kind, reference, booking string, res returned) error {
	if res.Status == statusRefused {
		return nil
	}
	now, err := d.ask(ctx, kind, reference, booking)
	switch {
	case errors.Is(err, worker.ErrNotHappened):
		return worker.Unknown(errors.New("the supplier no longer knows the return"))
	case err != nil:
		return err
	case now.Status != statusReinstated:
		return worker.ErrNotHappened
	}
	return nil
}

func (d desk) undone(ctx context.Context, tx *outbox.Tx, forward string, m worker.Meta, s Segment, currency string, res returned) error {
	if res.Status == statusRefused {
		return nil
	}
	if _, err := tx.Exec(ctx, d.sql.reinstateSegment, forward, m.BusinessKey, m.SagaID, s.Kind, res.ID, s.Amount, currency); err != nil {
		return fmt.Errorf("reinstate segment: %w", err)
	}
	res.Status = statusReinstated
	tx.Emit(told(m, s, currency, res))
	return nil
}
