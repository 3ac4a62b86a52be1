package refund

import (
	"context"
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

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

// segmentOf is the segment of a job's input.
func segmentOf(s SegmentRefundInSegment) Segment {
	return Segment{Kind: s.Kind, Reference: s.Reference, Amount: s.Amount}
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

// SegmentRefund asks a supplier to take its segment back. One handler serves all three, and the hotel ignores keys.
func (d desk) SegmentRefund() SegmentRefundHandler {
	return SegmentRefundExternal(worker.Remote[SegmentRefundIn, returned, SegmentRefundOut]{
		Call: func(ctx context.Context, c worker.Call[SegmentRefundIn]) (returned, error) {
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
		Resolve: func(ctx context.Context, c worker.Call[SegmentRefundIn]) (returned, error) {
			return d.ask(ctx, c.In.Segment.Kind, c.Key, c.BusinessKey)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[SegmentRefundIn], res returned) (SegmentRefundOut, error) {
			out, err := d.settle(ctx, tx, job.Meta, segmentOf(job.In.Segment), job.In.Currency, res)
			return SegmentRefundOut{Result: out}, err
		},
	},
		SegmentRefundUndo(worker.RemoteUndo[SegmentRefundIn, returned]{
			Call: func(ctx context.Context, key string, u worker.UndoOf[SegmentRefundIn, returned]) error {
				return d.reinstate(ctx, key, u.In.Segment.Kind, u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[SegmentRefundIn, returned]) error {
				return d.reinstated(ctx, u.In.Segment.Kind, u.OperationID, u.Meta.BusinessKey, u.Res)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[SegmentRefundIn, returned]) error {
				return d.undone(ctx, tx, u.OperationID, u.Meta, segmentOf(u.In.Segment), u.In.Currency, u.Res)
			},
		}),
		worker.Orphan(worker.Undo), worker.KeyIgnored(), d.sla, d.retain, d.expect(segmentsOfEach, costCall), worker.Amount(func(in SegmentRefundIn) (int64, string) { return in.Segment.Amount, in.Currency }),
	)
}

// SegmentFollowUp finds out whether the supplier took it back.
func (d desk) SegmentFollowUp() SegmentFollowUpHandler {
	return SegmentFollowUpExternal(worker.Remote[SegmentFollowUpIn, returned, SegmentFollowUpOut]{
		Call: func(ctx context.Context, c worker.Call[SegmentFollowUpIn]) (returned, error) {
			res, err := d.ask(ctx, c.In.Segment.Kind, c.In.ForwardOperationID, c.BusinessKey)
			if errors.Is(err, worker.ErrNotHappened) {
				return returned{Status: statusRefused, Code: "NOT_TAKEN_BACK"}, nil
			}
			return res, err
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[SegmentFollowUpIn], res returned) (SegmentFollowUpOut, error) {
			out, err := d.settle(ctx, tx, job.Meta, segmentOf(SegmentRefundInSegment(job.In.Segment)), job.In.Currency, res)
			return SegmentFollowUpOut{Result: SegmentFollowUpOutResult(out)}, err
		},
	},
		SegmentFollowUpUndo(worker.RemoteUndo[SegmentFollowUpIn, returned]{
			Call: func(ctx context.Context, _ string, u worker.UndoOf[SegmentFollowUpIn, returned]) error {
				return d.reinstate(ctx, u.In.ForwardOperationID+":undo", u.In.Segment.Kind, u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[SegmentFollowUpIn, returned]) error {
				return d.reinstated(ctx, u.In.Segment.Kind, u.In.ForwardOperationID, u.Meta.BusinessKey, u.Res)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[SegmentFollowUpIn, returned]) error {
				return d.undone(ctx, tx, u.OperationID, u.Meta, segmentOf(SegmentRefundInSegment(u.In.Segment)), u.In.Currency, u.Res)
			},
		}),
		worker.Orphan(worker.Undo), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA), d.retain, d.expect(oftenAsked, costCall), worker.Amount(func(in SegmentFollowUpIn) (int64, string) { return in.Segment.Amount, in.Currency }),
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

func (d desk) settle(ctx context.Context, tx *outbox.Tx, m worker.Meta, s Segment, currency string, res returned) (SegmentRefundOutResult, error) {
	if res.Status != statusRefunded && res.Status != statusRefused {
		return SegmentRefundOutResult{}, outcome.Fatalf("supplier", "the %s supplier shows return %s as %q, want refunded", s.Kind, res.ID, res.Status)
	}
	if _, err := tx.Exec(ctx, d.sql.insertSegment, m.OperationID, m.BusinessKey, m.SagaID, s.Kind, res.ID, res.Status, s.Amount, currency); err != nil {
		return SegmentRefundOutResult{}, fmt.Errorf("write segment: %w", err)
	}
	tx.Emit(told(m, s, currency, res))
	out := SegmentRefundOutResult{Segment: s.Kind, Status: res.Status, Amount: s.Amount, OperationID: m.OperationID}
	if res.Code != "" {
		out.Code = &res.Code
	}
	return out, nil
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
