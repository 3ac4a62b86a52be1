package tourbooking

import (
	"context"
	"fmt"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// till talks to the payment provider.
type till struct {
	bookings *Bookings
	client   *supplier.Client
}

type authorizeIn struct {
	Booking  string `json:"booking"`
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
	Token    string `json:"token"`
}

type authorizeOut struct {
	AuthorizationID string `json:"authorizationId"`
}

type authorizationRequest struct {
	Reference string `json:"reference"`
	Booking   string `json:"booking"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Token     string `json:"token"`
}

type paymentFollowUpIn struct {
	Booking            string `json:"booking"`
	Amount             int64  `json:"amount"`
	Currency           string `json:"currency"`
	ForwardOperationID string `json:"forwardOperationId"`
}

type captureIn struct {
	Booking         string `json:"booking"`
	Amount          int64  `json:"amount"`
	Currency        string `json:"currency"`
	AuthorizationID string `json:"authorizationId"`
}

type captureFollowUpIn struct {
	Booking            string `json:"booking"`
	Amount             int64  `json:"amount"`
	Currency           string `json:"currency"`
	AuthorizationID    string `json:"authorizationId"`
	ForwardOperationID string `json:"forwardOperationId"`
}

type captureRequest struct {
	Reference     string `json:"reference"`
	Authorization string `json:"authorization"`
}

type nothing struct{}

const (
	pathAuthorizations = "/authorizations"
	pathCaptures       = "/captures"
)

const whyCaptureStands = "past the pivot; captured money is given back by a refund, an operation of its own"

// install registers the four payment handlers. An authorization blocks money and moves none, so
// an orphaned one is voided rather than parked.
func (p till) install(mux *worker.Mux, key, sla worker.Option) {
	mux.Handle(models.JobPaymentAuthorize, p.authorizeHandler(), key, sla)
	mux.Handle(models.JobPaymentFollowUp, p.followUpHandler(), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA))
	mux.Handle(models.JobPaymentCapture, worker.External(worker.Remote[captureIn, held, nothing]{
		Call: func(ctx context.Context, c worker.Call[captureIn]) (held, error) {
			t, err := p.client.Post(ctx, pathCaptures, c.Key, captureRequest{Reference: c.Key, Authorization: c.In.AuthorizationID})
			return heldOf(t), supplier.Outcome(err, map[string]string{"": models.CodeCaptureRefused})
		},
		Resolve: func(ctx context.Context, c worker.Call[captureIn]) (held, error) {
			return ask(ctx, p.client, pathCaptures, c.Key, c.BusinessKey, segmentPayment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[captureIn], res held) (nothing, error) {
			return nothing{}, p.bookings.Settle(ctx, tx, settlementOf(job.Meta, SettledCaptured, res))
		},
	},
		worker.NotCompensable(whyCaptureStands), worker.Throws(models.CodeCaptureRefused),
		worker.Amount(func(in captureIn) (int64, string) { return in.Amount, in.Currency }),
	), key, sla)
	mux.Handle(models.JobCaptureFollowUp, worker.External(worker.Remote[captureFollowUpIn, held, nothing]{
		Call: func(ctx context.Context, c worker.Call[captureFollowUpIn]) (held, error) {
			return found(ctx, p.client, pathCaptures, c.In.ForwardOperationID, c.BusinessKey, segmentPayment, models.CodeCaptureRefused)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[captureFollowUpIn], res held) (nothing, error) {
			return nothing{}, p.bookings.Settle(ctx, tx, settlementOf(job.Meta, SettledCaptured, res))
		},
	},
		worker.NotCompensable(whyCaptureStands), worker.Throws(models.CodeCaptureRefused),
		worker.Amount(func(in captureFollowUpIn) (int64, string) { return in.Amount, in.Currency }),
	), worker.KeyValidFor(followUpSLA), worker.SLA(followUpSLA))
}

func (p till) authorizeHandler() worker.Handler {
	return worker.External(worker.Remote[authorizeIn, held, authorizeOut]{
		Call: func(ctx context.Context, c worker.Call[authorizeIn]) (held, error) {
			t, err := p.client.Post(ctx, pathAuthorizations, c.Key, authorizationRequest{
				Reference: c.Key, Booking: c.BusinessKey, Amount: c.In.Amount, Currency: c.In.Currency, Token: c.In.Token,
			})
			return heldOf(t), supplier.Outcome(err, map[string]string{"": models.CodePaymentDeclined})
		},
		Resolve: func(ctx context.Context, c worker.Call[authorizeIn]) (held, error) {
			return ask(ctx, p.client, pathAuthorizations, c.Key, c.BusinessKey, segmentPayment)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[authorizeIn], res held) (authorizeOut, error) {
			return authorizeOut{res.ID}, p.authorized(ctx, tx, job.Meta, res)
		},
	},
		worker.CompensatedBy(models.JobPaymentVoid, worker.RemoteUndo[authorizeIn, held]{
			Call: func(ctx context.Context, key string, u worker.UndoOf[authorizeIn, held]) error {
				return p.void(ctx, key, u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[authorizeIn, held]) error {
				return p.voided(ctx, u.OperationID, u.Meta.BusinessKey)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[authorizeIn, held]) error {
				return p.released(ctx, tx, u.Meta, u.Res, u.Reason)
			},
		}),
		worker.Orphan(worker.Undo), worker.Throws(models.CodePaymentDeclined),
		worker.Amount(func(in authorizeIn) (int64, string) { return in.Amount, in.Currency }),
	)
}

func (p till) followUpHandler() worker.Handler {
	return worker.External(worker.Remote[paymentFollowUpIn, held, authorizeOut]{
		Call: func(ctx context.Context, c worker.Call[paymentFollowUpIn]) (held, error) {
			return found(ctx, p.client, pathAuthorizations, c.In.ForwardOperationID, c.BusinessKey, segmentPayment, models.CodePaymentDeclined)
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[paymentFollowUpIn], res held) (authorizeOut, error) {
			return authorizeOut{res.ID}, p.authorized(ctx, tx, job.Meta, res)
		},
	},
		worker.CompensatedBy(models.JobPaymentVoid, worker.RemoteUndo[paymentFollowUpIn, held]{
			Call: func(ctx context.Context, _ string, u worker.UndoOf[paymentFollowUpIn, held]) error {
				return p.void(ctx, u.In.ForwardOperationID+":undo", u.Res)
			},
			Resolve: func(ctx context.Context, _ string, u worker.UndoOf[paymentFollowUpIn, held]) error {
				return p.voided(ctx, u.In.ForwardOperationID, u.Meta.BusinessKey)
			},
			Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[paymentFollowUpIn, held]) error {
				return p.released(ctx, tx, u.Meta, u.Res, u.Reason)
			},
		}),
		worker.Orphan(worker.Undo), worker.Throws(models.CodePaymentDeclined),
		worker.Amount(func(in paymentFollowUpIn) (int64, string) { return in.Amount, in.Currency }),
	)
}

// authorized writes the blocked amount down and moves the booking.
func (p till) authorized(ctx context.Context, tx *outbox.Tx, m worker.Meta, res held) error {
	if res.Status != "authorized" {
		return outcome.Fatalf("supplier", "the payment provider shows authorization %s as %q, want authorized", res.ID, res.Status)
	}
	k, err := p.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return fatalIfUnknown(err)
	}
	if err := p.bookings.Settle(ctx, tx, settlementOf(m, SettledAuthorized, res)); err != nil {
		return err
	}
	_, err = p.bookings.move(ctx, tx, k, PaymentAuthorized, Detail{Segment: segmentPayment, Supplier: res.ID})
	return fatalIfRefused(err)
}

func (p till) void(ctx context.Context, key string, res held) error {
	_, err := p.client.Post(ctx, pathAuthorizations+"/"+res.ID+"/void", key, struct{}{})
	return supplier.Outcome(err, nil)
}

// voided asks whether the void took effect: nil = it did.
func (p till) voided(ctx context.Context, reference, booking string) error {
	t, err := p.client.Ask(ctx, pathAuthorizations, reference, booking, segmentPayment)
	if err != nil {
		return worker.Unknown(err)
	}
	if t.Status != "voided" {
		return worker.ErrNotHappened
	}
	return nil
}

func (p till) released(ctx context.Context, tx *outbox.Tx, m worker.Meta, res held, reason string) error {
	k, err := p.bookings.Lock(ctx, tx, m.BusinessKey)
	if err != nil {
		return fatalIfUnknown(err)
	}
	if err := p.bookings.Settle(ctx, tx, settlementOf(m, SettledVoided, res)); err != nil {
		return err
	}
	if k.SagaID != m.SagaID {
		return nil
	}
	_, err = p.bookings.move(ctx, tx, k, SegmentReleased, Detail{Segment: segmentPayment, Supplier: res.ID, Reason: reason})
	return fatalIfRefused(err)
}

// Kinds of settlements (spec S7).
const (
	SettledAuthorized = "authorized"
	SettledVoided     = "voided"
	SettledCaptured   = "captured"
	SettledRefunded   = "refunded"
)

// Settlement is one movement of money, and the data of its event.
type Settlement struct {
	OperationID string `json:"operationId"` // that moved it
	BusinessKey string `json:"businessKey"`
	SagaID      string `json:"sagaId"`
	Kind        string `json:"kind"`
	SupplierID  string `json:"supplierId"` // the payment provider's own reference
	Amount      int64  `json:"amount"`     // minor units
	Currency    string `json:"currency"`
}

func settlementOf(m worker.Meta, kind string, res held) Settlement {
	return Settlement{m.OperationID, m.BusinessKey, m.SagaID, kind, res.ID, res.Amount, res.Currency}
}

// Settle writes a movement of money down and emits payment.settlement.<kind>. A repeat of the operation
// writes and emits the same again; the runtime keeps it from being one.
func (b *Bookings) Settle(ctx context.Context, tx *outbox.Tx, s Settlement) error {
	if _, err := tx.Exec(ctx, b.sql.insertSettlement, s.OperationID, s.BusinessKey, s.SagaID, s.Kind, s.SupplierID, s.Amount, s.Currency); err != nil {
		return fmt.Errorf("write settlement %s: %w", s.Kind, err)
	}
	tx.Emit(events.Message{Type: "payment.settlement." + s.Kind, Version: 1, BusinessKey: s.BusinessKey, Data: s})
	return nil
}

// Captured is what was captured for a booking in one currency and has not been paid back, in minor units.
func (b *Bookings) Captured(ctx context.Context, tx *outbox.Tx, businessKey, currency string) (int64, error) {
	var amount int64
	if err := tx.QueryRow(ctx, b.sql.settledAmount, businessKey, currency).Scan(&amount); err != nil {
		return 0, fmt.Errorf("sum settlements: %w", err)
	}
	return amount, nil
}
