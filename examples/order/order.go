// Package order is a saga that has nothing to do with travel: an order of goods that takes stock, a payment and a
// courier, and gives back what it took when one of them refuses. It is a model (order.bpmn), what was generated from it,
// an operation type and four handlers.
package order

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
)

//go:generate journeyman generate order.bpmn --package order

// Model is the BPMN model, to deploy under the name order.bpmn.
//
//go:embed order.bpmn
var Model []byte

// Migrate makes the shop's own tables, with something in stock.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `
		CREATE SCHEMA IF NOT EXISTS shop;
		CREATE TABLE IF NOT EXISTS shop.stock (item text PRIMARY KEY, shelf text NOT NULL, quantity bigint NOT NULL CHECK (quantity >= 0));
		CREATE TABLE IF NOT EXISTS shop.sold (saga_id text PRIMARY KEY, parcel text NOT NULL);
		INSERT INTO shop.stock VALUES ('lamp', 'A-7', 10) ON CONFLICT DO NOTHING`)
	return err
}

// Request is what a partner sends to POST /v1/operations/order.
type Request struct {
	Order    string `json:"order"`
	Item     string `json:"item"`
	Quantity int64  `json:"quantity"`
	Card     string `json:"card"`
	Amount   int64  `json:"amount"` // in cents
	Address  string `json:"address"`
}

// Type is the operation type for package sagas.
func Type() sagas.Type {
	return sagas.Type{
		Name: "order", Timeout: 10 * time.Minute, Retention: 30 * 24 * time.Hour, Estimate: 5 * time.Second, Money: true,
		Steps: []string{ElementOrderStockReserve, ElementOrderPaymentTake, ElementOrderCourierBook, ElementOrderConfirm},
		Parse: parse, Result: result, Partial: partial,
		Docs: sagas.Docs{
			Reasons: map[string]string{
				CodeOutOfStock: "not enough in stock", CodeCardDeclined: "the card was declined", CodeNoCourier: "no courier goes to that address",
			},
			Segments: map[string][]string{"goods": {"taken", "failed"}, "payment": {"taken", "failed"}, "courier": {"taken", "failed"}},
		},
	}
}

func parse(_ context.Context, tenant string, body []byte) (sagas.Plan, error) {
	r, err := sagas.Decode[Request](body)
	if err != nil {
		return sagas.Plan{}, err
	}
	var errs []error
	for field, value := range map[string]string{"order": r.Order, "item": r.Item, "card": r.Card, "address": r.Address} {
		if value == "" {
			errs = append(errs, sagas.Invalid(field, "is missing"))
		}
	}
	if r.Quantity < 1 {
		errs = append(errs, sagas.Invalid("quantity", "must be 1 or more"))
	}
	if r.Amount < 1 {
		errs = append(errs, sagas.Invalid("amount", "must be 1 or more"))
	}
	return sagas.Plan{BusinessKey: tenant + ":" + r.Order, Variables: map[string]any{
		"item": r.Item, "quantity": r.Quantity, "card": r.Card, "amount": r.Amount, "address": r.Address,
	}}, errors.Join(errs...)
}

// result shows the parcel of an order that was confirmed.
func result(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) (any, error) {
	if e.Decision != sagas.Completed {
		return nil, nil //nolint:nilnil // no result
	}
	var parcel string
	err := tx.QueryRow(ctx, `SELECT parcel FROM shop.sold WHERE saga_id = $1`, a.OperationID).Scan(&parcel)
	return map[string]string{"parcel": parcel}, err
}

func partial(s worker.Step) (string, any) {
	segment := map[string]string{JobStockReserve: "goods", JobPaymentTake: "payment", JobCourierBook: "courier"}[s.Type]
	if s.Class == outcome.Success {
		return segment, map[string]string{"status": "taken"}
	}
	return segment, map[string]string{"status": "failed", "code": s.Code}
}

// Remote is a system of others that acts once per key, forgets nothing and can be asked: the card provider, the courier.
type Remote interface {
	Do(ctx context.Context, key, what string) (reference string, refused bool, err error)
	Find(ctx context.Context, key string) (reference string, found bool, err error)
	Undo(ctx context.Context, key string) error
}

// Handlers are the handlers of the model; *sagas.Sagas takes the decision.
type Handlers struct {
	Sagas interface {
		Decide(ctx context.Context, tx *outbox.Tx, sagaID string, d sagas.Decision) error
	}
	Card, Courier Remote
}

// StockReserve takes goods off the shelf; its undo puts them back. Both are rows of our own database.
func (h Handlers) StockReserve() StockReserveHandler {
	return StockReserveTx(func(ctx context.Context, tx *worker.Tx, job worker.Job[StockReserveIn]) (out StockReserveOut, err error) {
		err = tx.QueryRow(ctx, `UPDATE shop.stock SET quantity = quantity - $2 WHERE item = $1 AND quantity >= $2 RETURNING shelf`, job.In.Item, job.In.Quantity).Scan(&out.Shelf)
		if errors.Is(err, pgx.ErrNoRows) {
			return out, worker.BusinessError(CodeOutOfStock, "not enough in stock")
		}
		return out, err
	}, StockReserveUndoTx(func(ctx context.Context, tx *worker.Tx, u worker.UndoOf[StockReserveIn, StockReserveOut]) error {
		_, err := tx.Exec(ctx, `UPDATE shop.stock SET quantity = quantity + $2 WHERE item = $1`, u.In.Item, u.In.Quantity)
		return err
	}))
}

// PaymentTake takes the money; its undo gives it back.
func (h Handlers) PaymentTake() PaymentTakeHandler {
	return PaymentTakeExternal(worker.Remote[PaymentTakeIn, string, PaymentTakeOut]{
		Call: func(ctx context.Context, c worker.Call[PaymentTakeIn]) (string, error) {
			return do(ctx, h.Card, c.Key, c.In.Card, CodeCardDeclined)
		},
		Resolve: func(ctx context.Context, c worker.Call[PaymentTakeIn]) (string, error) {
			return find(ctx, h.Card, c.Key)
		},
		Settle: func(_ context.Context, _ *worker.Tx, _ worker.Job[PaymentTakeIn], receipt string) (PaymentTakeOut, error) {
			return PaymentTakeOut{Receipt: receipt}, nil
		},
	}, worker.KeyValidFor(24*time.Hour), worker.Orphan(worker.Undo), worker.Amount(func(in PaymentTakeIn) (int64, string) { return in.Amount, "EUR" }),
		PaymentTakeUndo(worker.RemoteUndo[PaymentTakeIn, string]{Call: func(ctx context.Context, _ string, u worker.UndoOf[PaymentTakeIn, string]) error {
			return h.Card.Undo(ctx, u.OperationID)
		}}))
}

// CourierBook books a courier; its undo cancels it.
func (h Handlers) CourierBook() CourierBookHandler {
	return CourierBookExternal(worker.Remote[CourierBookIn, string, CourierBookOut]{
		Call: func(ctx context.Context, c worker.Call[CourierBookIn]) (string, error) {
			return do(ctx, h.Courier, c.Key, c.In.Address, CodeNoCourier)
		},
		Resolve: func(ctx context.Context, c worker.Call[CourierBookIn]) (string, error) {
			return find(ctx, h.Courier, c.Key)
		},
		Settle: func(_ context.Context, _ *worker.Tx, _ worker.Job[CourierBookIn], parcel string) (CourierBookOut, error) {
			return CourierBookOut{Parcel: parcel}, nil
		},
	}, worker.KeyValidFor(24*time.Hour), worker.Orphan(worker.Undo),
		CourierBookUndo(worker.RemoteUndo[CourierBookIn, string]{Call: func(ctx context.Context, _ string, u worker.UndoOf[CourierBookIn, string]) error {
			return h.Courier.Undo(ctx, u.OperationID)
		}}))
}

// OrderConfirm is the pivot: what was confirmed is not rolled back.
func (h Handlers) OrderConfirm() OrderConfirmHandler {
	return OrderConfirmTx(func(ctx context.Context, tx *worker.Tx, job worker.Job[OrderConfirmIn]) (OrderConfirmOut, error) {
		out := OrderConfirmOut{SagaDecision: string(sagas.Completed)}
		if _, err := tx.Exec(ctx, `INSERT INTO shop.sold (saga_id, parcel) VALUES ($1, $2)`, job.SagaID, job.In.Parcel); err != nil {
			return out, err
		}
		return out, h.Sagas.Decide(ctx, tx, job.SagaID, sagas.Completed)
	}, worker.Pivot(), worker.NotCompensable("the pivot: what was confirmed stands"), worker.Throws(worker.CodeSagaGivenUp))
}

func do(ctx context.Context, r Remote, key, what, code string) (string, error) {
	reference, refused, err := r.Do(ctx, key, what)
	if refused {
		return "", worker.BusinessError(code, "refused by the other side")
	}
	return reference, err
}

func find(ctx context.Context, r Remote, key string) (string, error) {
	reference, found, err := r.Find(ctx, key)
	if err == nil && !found {
		return "", worker.ErrNotHappened
	}
	return reference, err
}
