package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/outbox"
)

// States of a delivery.
const (
	Pending   = "pending"
	Delivered = "delivered"
	Dead      = "dead"
)

// Delivery is one message for one endpoint, without its body.
type Delivery struct {
	ID          string     `json:"id"`
	Endpoint    string     `json:"endpoint"`
	Tenant      string     `json:"-"`
	Type        string     `json:"type"`
	OperationID string     `json:"operation_id,omitempty"`
	State       string     `json:"state"`
	Reason      string     `json:"reason,omitempty"` // why it is dead
	Attempts    int        `json:"attempts"`
	NextAt      time.Time  `json:"next_at"` // means something while pending
	CreatedAt   time.Time  `json:"created_at"`
	FinishedAt  *time.Time `json:"finished_at,omitempty"`
	Bytes       int        `json:"bytes"` // of the message as it is sent
}

// Attempt is one attempt of a delivery.
type Attempt struct {
	N         int       `json:"n"`
	StartedAt time.Time `json:"started_at"`
	TookMS    *int64    `json:"took_ms"` // null: it runs, or its process died
	Status    int       `json:"status"`  // 0: no answer came
	Error     string    `json:"error,omitempty"`
}

// Filter picks deliveries; zero fields pick all.
type Filter struct {
	Tenant, State, Endpoint, OperationID string
	After                                string // delivery id: the page after this one
	Limit                                int    // 0 = 50, at most 500
}

func scan(row pgx.CollectableRow) (d Delivery, err error) {
	return d, row.Scan(&d.ID, &d.Endpoint, &d.Tenant, &d.Type, &d.OperationID, &d.State, &d.Reason, &d.Attempts, &d.NextAt, &d.CreatedAt, &d.FinishedAt, &d.Bytes)
}

// List gives deliveries, the youngest first. The dead ones are the dead letters.
func (w *Webhooks) List(ctx context.Context, f Filter) ([]Delivery, error) {
	switch {
	case f.Limit == 0:
		f.Limit = 50
	case f.Limit < 0 || f.Limit > 500:
		return nil, fmt.Errorf("list webhooks: limit %d, want 1 to 500", f.Limit)
	}
	rows, err := w.cfg.Pool.Query(ctx, w.sql.list, f.Tenant, f.State, f.Endpoint, f.OperationID, f.After, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	return pgx.CollectRows(rows, scan)
}

// Show gives one delivery with its attempts. It wraps [ErrUnknown] when there is none.
func (w *Webhooks) Show(ctx context.Context, id string) (d Delivery, attempts []Attempt, err error) {
	if d, err = one(ctx, w.cfg.Pool, w.sql.show, id); err != nil {
		return d, nil, err
	}
	rows, err := w.cfg.Pool.Query(ctx, w.sql.attempts, id)
	if err != nil {
		return d, nil, fmt.Errorf("attempts of webhook %s: %w", id, err)
	}
	attempts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Attempt, err error) {
		return a, row.Scan(&a.N, &a.StartedAt, &a.TookMS, &a.Status, &a.Error)
	})
	return d, attempts, err
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func one(ctx context.Context, db querier, sql, id string) (Delivery, error) {
	rows, err := db.Query(ctx, sql, id)
	if err == nil {
		var d Delivery
		if d, err = pgx.CollectExactlyOneRow(rows, scan); err == nil {
			return d, nil
		}
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrUnknown
	}
	return Delivery{}, fmt.Errorf("webhook %s: %w", id, err)
}

// ErrGone is wrapped when nothing is sent to an endpoint because it answered 410.
var ErrGone = errors.New("the endpoint is gone, reopen it first")

// Resend lets a message that was delivered or is dead be sent again at once, with a whole schedule before it and under its old
// webhook-id. A pending one is left alone. An endpoint that is gone needs [Webhooks.Reopen] first. The act is audited.
func (w *Webhooks) Resend(ctx context.Context, id, actor, reason string) error {
	return w.act(ctx, Act{Action: "webhook.resend", Target: id, Actor: actor, Reason: reason}, func(tx pgx.Tx, a *Act) error {
		d, err := one(ctx, tx, w.sql.lock, id)
		if err != nil {
			return err
		}
		a.Before = d.State
		var gone bool
		if err := tx.QueryRow(ctx, w.sql.isGone, d.Endpoint).Scan(&gone); err != nil {
			return err
		}
		if gone {
			return fmt.Errorf("%w: %s", ErrGone, d.Endpoint)
		}
		_, err = tx.Exec(ctx, w.sql.resend, id)
		return err
	})
}

// Reopen forgets that an endpoint was gone, or asked for rest. What is dead stays dead until it is sent again. The act is audited.
func (w *Webhooks) Reopen(ctx context.Context, endpoint, actor, reason string) error {
	return w.act(ctx, Act{Action: "webhook.reopen", Target: endpoint, Actor: actor, Reason: reason}, func(tx pgx.Tx, a *Act) error {
		if _, err := w.cfg.Directory.Endpoint(ctx, endpoint); err != nil {
			return err
		}
		a.Before = "gone"
		tag, err := tx.Exec(ctx, w.sql.reopen, endpoint)
		if err == nil && tag.RowsAffected() == 0 {
			a.Before = "open"
		}
		return err
	})
}

func (w *Webhooks) act(ctx context.Context, a Act, do func(tx pgx.Tx, a *Act) error) error {
	if a.Actor == "" || a.Reason == "" {
		return fmt.Errorf("%s %s: actor and reason must not be empty", a.Action, a.Target)
	}
	err := pgx.BeginFunc(ctx, w.cfg.Pool, func(tx pgx.Tx) error {
		if err := do(tx, &a); err != nil {
			return err
		}
		if w.cfg.Audit == nil {
			return nil
		}
		return w.cfg.Audit(ctx, outbox.NewTx(tx), a)
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", a.Action, a.Target, err)
	}
	w.cfg.Log.Info().Str("action", a.Action).Str("target", a.Target).Str("actor", a.Actor).Str("reason", a.Reason).Str("before", a.Before).Msg("operator action")
	return nil
}

// EndpointState is what is known of an endpoint.
type EndpointState struct {
	ID           string     `json:"id"`
	GoneAt       *time.Time `json:"gone_at"`       // it answered 410: nothing is sent
	PausedUntil  *time.Time `json:"paused_until"`  // it asked for rest
	FailingSince *time.Time `json:"failing_since"` // nothing has arrived since then
	Pending      int64      `json:"pending"`
	Dead         int64      `json:"dead"`
	Oldest       *time.Time `json:"oldest_pending"`
}

// State lists endpoints of which anything is known, by id. It reads all that is not delivered: for operators.
func (w *Webhooks) State(ctx context.Context) ([]EndpointState, error) {
	rows, err := w.cfg.Pool.Query(ctx, w.sql.endpoints)
	if err != nil {
		return nil, fmt.Errorf("state of webhook endpoints: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e EndpointState, err error) {
		return e, row.Scan(&e.ID, &e.GoneAt, &e.PausedUntil, &e.FailingSince, &e.Pending, &e.Dead, &e.Oldest)
	})
}

// Purge deletes what has been kept long enough, at most 500, and gives how many.
func (w *Webhooks) Purge(ctx context.Context) (int64, error) {
	tag, err := w.cfg.Pool.Exec(ctx, w.sql.purge, w.cfg.Keep, w.cfg.KeepDead, 500)
	if err != nil {
		return 0, fmt.Errorf("purge webhooks: %w", err)
	}
	return tag.RowsAffected(), nil
}
