package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// Commands is the queue of engine commands: written in the transaction that made them true, sent after its
// commit. *zeebe.Queue is one.
type Commands interface {
	Queue(b *pgx.Batch, cmd zeebe.Command) *zeebe.Queued
}

// Sender sends a queued command at once. *zeebe.Sender is one. An error is only news: the sweep sends it later.
type Sender interface {
	Send(ctx context.Context, cmd *zeebe.Queued) error
}

// StartRequest is an operation that another one starts inside its own transaction, such as ticketing
// at the confirmation of a booking (spec I5).
type StartRequest struct {
	Tenant string
	Type   string
	Key    string // idempotency key within tenant and type; a repeat starts nothing
	Plan   Plan

	CorrelationID string // carried on; "" = the operation's own id
	Traceparent   string // carried on; "" = a new one
	Actor         events.Actor
}

// StartTx starts an operation in the caller's transaction: saga row, OnStart, events and the start
// command commit or vanish with it. It gives the operation id, also when the operation had been
// started before; then nothing happens. The record store learns of it by the event.
func (s *Sagas) StartTx(ctx context.Context, tx *outbox.Tx, r StartRequest) (operationID string, err error) {
	t, err := s.typeOf(r.Type)
	if err != nil {
		return "", err
	}
	if r.Tenant == "" || r.Key == "" {
		return "", fmt.Errorf("start %s: tenant %q and key %q must not be empty", r.Type, r.Tenant, r.Key)
	}
	if err := r.Plan.check(); err != nil {
		return "", fmt.Errorf("start %s: %w", r.Type, err)
	}
	o := origin{CorrelationID: r.CorrelationID, Traceparent: r.Traceparent, Actor: r.Actor}.withDefaults(OperationID(r.Tenant, r.Type, r.Key, 1))
	a := attempt{
		ID: OperationID(r.Tenant, r.Type, r.Key, 1), Tenant: r.Tenant, Type: r.Type, Key: r.Key, Number: 1, Plan: r.Plan, origin: o,
	}
	if _, err := s.startIn(ctx, tx, t, a, true); err != nil { // the command is left to the sweep: we do not see the commit
		return "", fmt.Errorf("start %s: %w", a.ID, err)
	}
	return a.ID, nil
}

// origin is where an attempt comes from; it is stored with the record.
type origin struct {
	CorrelationID string       `json:"correlationId"`
	Traceparent   string       `json:"traceparent"`
	Actor         events.Actor `json:"actor"`
	Sandbox       string       `json:"sandbox,omitempty"` // outcome to force
}

func (o origin) withDefaults(operationID string) origin {
	if o.CorrelationID == "" {
		o.CorrelationID = operationID
	}
	if !traceparentForm.MatchString(o.Traceparent) {
		o.Traceparent = newTraceparent()
	}
	return o
}

// attempt is what a start needs; it comes from a record or from a [StartRequest].
type attempt struct {
	ID, Tenant, Type, Key string
	Number                int
	Plan                  Plan
	origin
	StartedAt time.Time // zero = now
}

func (a attempt) stageOrigin() events.Origin {
	return events.Origin{
		OperationID: a.ID, BusinessKey: a.Plan.BusinessKey, CorrelationID: a.CorrelationID, Traceparent: a.Traceparent,
		HTTPIdempotencyKey: a.Key, Actor: a.Actor,
	}
}

// start makes the saga of a record in one domain transaction. It is idempotent: a twin, or a repeat after a
// lost answer, finds the row and does nothing.
func (s *Sagas) start(ctx context.Context, a attempt) error {
	t, err := s.typeOf(a.Type)
	if err != nil {
		return err
	}
	var cmd *zeebe.Queued
	err = s.inDomain(ctx, a.stageOrigin(), func(tx *outbox.Tx) (err error) {
		cmd, err = s.startIn(ctx, tx, t, a, false)
		return err
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", a.ID, err)
	}
	crash.Point("saga.started", a.ID)
	s.send(ctx, cmd)
	return nil
}

// send is the fast path of a committed command; the row is there and is swept otherwise.
func (s *Sagas) send(ctx context.Context, cmd *zeebe.Queued) {
	if cmd == nil || s.cfg.Sender == nil {
		return
	}
	if err := s.cfg.Sender.Send(ctx, cmd); err != nil {
		s.cfg.Log.Debug().Str("operation_id", cmd.OperationID).Err(err).Msg("command left to the sweep")
	}
}

// inDomain runs fn in a transaction of the domain database, stages what it emitted, locks the origin's
// business key and commits.
func (s *Sagas) inDomain(ctx context.Context, o events.Origin, fn func(tx *outbox.Tx) error) error {
	ptx, err := s.cfg.Domain.Begin(ctx)
	if err != nil {
		return err
	}
	defer ptx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // no effect after commit
	tx := outbox.NewTx(ptx)
	if err := fn(tx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	if err := s.cfg.Stager.Queue(b, o, tx.Messages(), o.BusinessKey); err != nil {
		return err
	}
	if err := ptx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if err := ptx.Commit(ctx); err != nil {
		return err
	}
	s.cfg.Stager.Wake()
	return nil
}

// startIn writes the saga row, lets the domain write its own and queues the start message, which it gives
// back. There is none when the saga was there already, and when the domain refused: then the saga is closed at once.
func (s *Sagas) startIn(ctx context.Context, tx *outbox.Tx, t *Type, a attempt, newRecord bool) (*zeebe.Queued, error) {
	if a.Sandbox != "" {
		a.Plan.Variables = map[string]any{sandboxVariable: a.Sandbox}
	}
	variables, err := json.Marshal(orEmpty(a.Plan.Variables))
	if err != nil {
		return nil, fmt.Errorf("plan variables: %w", err)
	}
	actor, err := json.Marshal(a.Actor)
	if err != nil {
		return nil, err
	}
	var at *time.Time
	if !a.StartedAt.IsZero() {
		at = &a.StartedAt
	}
	var now time.Time
	row, err := scanSaga(tx.QueryRow(ctx, s.sql.insertSaga, a.ID, a.Tenant, a.Type, a.Key, a.Number, a.Plan.BusinessKey,
		a.CorrelationID, a.Traceparent, string(actor), string(variables), at, t.Timeout), &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // nothing to send
	}
	if err != nil {
		return nil, err
	}
	started := Progress{SagaID: a.ID, SagaType: a.Type, Tenant: a.Tenant}
	if newRecord {
		started.Record = &NewRecord{
			Key: a.Key, Attempt: a.Number, BusinessKey: a.Plan.BusinessKey, Steps: t.steps(a.Plan), Partial: a.Plan.Partial,
			StartedAt: row.StartedAt, TimeoutAt: row.Deadline, EstimatedAt: row.StartedAt.Add(t.Estimate),
		}
	}
	tx.Emit(started.message(EventStarted, a.Plan.BusinessKey))
	if row.sandbox() {
		return s.sandbox(ctx, tx, t, row, a.Sandbox)
	}
	refusal, err := s.onStart(ctx, tx, t, row)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return nil, s.closeIn(ctx, tx, t, row, Ending{Decision: Failed, State: string(Failed), Code: refusal.Code}, true)
	}
	return s.queueStart(ctx, tx, row, row.Deadline.Sub(now))
}

// onStart runs the domain's part under a savepoint, so that a refusal leaves nothing of it behind.
func (s *Sagas) onStart(ctx context.Context, tx *outbox.Tx, t *Type, row Saga) (*outcome.Error, error) {
	if t.OnStart == nil {
		return nil, nil //nolint:nilnil // no refusal and no error
	}
	if _, err := tx.Exec(ctx, `SAVEPOINT saga_on_start`); err != nil {
		return nil, err
	}
	emitted := len(tx.Messages())
	err := t.OnStart(ctx, tx, row.attempt())
	var refusal *outcome.Error
	switch {
	case err == nil:
		_, err = tx.Exec(ctx, `RELEASE SAVEPOINT saga_on_start`)
		return nil, err
	case errors.As(err, &refusal) && refusal.Class == outcome.Business:
		tx.Truncate(emitted)
		_, err = tx.Exec(ctx, `ROLLBACK TO SAVEPOINT saga_on_start`)
		return refusal, err
	default:
		return nil, fmt.Errorf("on start: %w", err)
	}
}

// queueStart publishes the start message (path rule 15): the id of the attempt is both correlation key and
// message id, so that a republished command starts nothing twice while the broker keeps the first. left is the
// time to the deadline: a start that was late leaves the model less.
func (s *Sagas) queueStart(ctx context.Context, tx *outbox.Tx, row Saga, left time.Duration) (*zeebe.Queued, error) {
	variables := maps.Clone(orEmpty(row.Variables))
	for name, v := range map[string]any{
		"sagaId": row.ID, "operationId": row.ID, "businessKey": row.BusinessKey, "correlationId": row.CorrelationID, "traceparent": row.Traceparent,
		"tenant": row.Tenant, "timeout": isoDuration(left), "actor": row.Actor, "httpIdempotencyKey": row.Key,
	} {
		variables[name] = v
	}
	text, err := json.Marshal(variables)
	if err != nil {
		return nil, fmt.Errorf("start variables: %w", err)
	}
	messageID := row.ID
	if rule.Off(15) {
		messageID = ""
	}
	return s.queueCommand(ctx, tx, zeebe.Command{
		Cluster: s.cfg.Cluster, Kind: zeebe.KindPublish, OperationID: row.ID, Name: "saga.start." + row.Type,
		CorrelationKey: row.ID, MessageID: messageID, TTL: s.cfg.MaxStartDelay, Variables: string(text),
	})
}

func (s *Sagas) queueCommand(ctx context.Context, tx *outbox.Tx, cmd zeebe.Command) (*zeebe.Queued, error) {
	b := &pgx.Batch{}
	queued := s.cfg.Commands.Queue(b, cmd)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("queue command %s %s: %w", cmd.Kind, cmd.Name, err)
	}
	return queued, nil
}

// steps are the forward steps to show, of the plan or of the type.
func (t *Type) steps(p Plan) []string {
	if p.Steps != nil {
		return p.Steps
	}
	return t.Steps
}

// isoDuration spells a duration for a BPMN timer: whole seconds, rounded up, at least one.
func isoDuration(d time.Duration) string {
	seconds := int64(max((d+time.Second-1)/time.Second, 1))
	if seconds%60 == 0 {
		return fmt.Sprintf("PT%dM", seconds/60)
	}
	return fmt.Sprintf("PT%dS", seconds)
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
