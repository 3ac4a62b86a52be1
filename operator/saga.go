package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// SagaRow is one saga in a list. Its JSON field names are stable.
type SagaRow struct {
	ID                 string     `json:"id"` // operation id of the attempt
	Tenant             string     `json:"tenant"`
	Type               string     `json:"type"`
	Key                string     `json:"key"` // idempotency key as the partner sent it
	Attempt            int        `json:"attempt"`
	BusinessKey        string     `json:"business_key"`
	State              string     `json:"state"`    // one of [SagaStates]
	Decision           string     `json:"decision"` // "", completed, failed, expired, cancelled
	Reason             string     `json:"reason"`
	Stuck              string     `json:"stuck"` // why it counts as stuck, "" = it does not
	StepsDone          int        `json:"steps_done"`
	LastStep           string     `json:"last_step"`
	EffectsOpen        int        `json:"effects_open"` // compensable effects that stand and may have to be undone; 0 once completed
	Cluster            string     `json:"cluster"`
	ProcessInstanceKey Key        `json:"process_instance_key"`
	StartedAt          time.Time  `json:"started_at"`
	Deadline           time.Time  `json:"deadline"`
	BegunAt            *time.Time `json:"begun_at"`
	DecidedAt          *time.Time `json:"decided_at"`
	ClosedAt           *time.Time `json:"closed_at"`
}

// SagaStates are the states a saga can be in.
func SagaStates() []string {
	return []string{"starting", "running", "compensating", "manual", "completed", "failed", "expired"}
}

// SagaFilter chooses sagas; empty fields choose all.
type SagaFilter struct {
	Tenant, Type, State, BusinessKey string
	Stuck                            bool   // only those that count as stuck
	After                            string // id of the last saga of the page before
	Limit                            int    // 1 to 1000; 0 = 100
}

func (f SagaFilter) check() (SagaFilter, error) {
	if f.Limit == 0 {
		f.Limit = 100
	}
	var errs []error
	if f.Limit < 1 || f.Limit > 1000 {
		errs = append(errs, &FieldError{Field: "limit", Value: fmt.Sprint(f.Limit), Want: "1 to 1000"})
	}
	if f.State != "" && !slices.Contains(SagaStates(), f.State) {
		errs = append(errs, &FieldError{Field: "state", Value: f.State, Want: "one of " + strings.Join(SagaStates(), ", ")})
	}
	for _, text := range []struct{ field, value string }{{"tenant", f.Tenant}, {"type", f.Type}, {"business key", f.BusinessKey}, {"after", f.After}} {
		if text.value != "" {
			errs = append(errs, checkText(text.field, text.value, 300, "what to look for"))
		}
	}
	return f, errors.Join(errs...)
}

// Sagas lists sagas, newest first.
func (d *Desk) Sagas(ctx context.Context, f SagaFilter) ([]SagaRow, error) {
	f, err := f.check()
	if err != nil {
		return nil, err
	}
	rows, err := d.cfg.Pool.Query(ctx, d.sql.listSagas, d.cfg.BeginWithin, d.cfg.UndoWithin,
		f.Tenant, f.Type, f.State, f.BusinessKey, f.Stuck, f.After, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("list sagas: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (SagaRow, error) { return scanSaga(row) })
	if err != nil {
		return nil, fmt.Errorf("list sagas: %w", err)
	}
	return out, nil
}

// SagaTypes lists the types that sagas have had, for a filter form.
func (d *Desk) SagaTypes(ctx context.Context) ([]string, error) {
	rows, err := d.cfg.Pool.Query(ctx, d.sql.sagaTypes)
	if err != nil {
		return nil, fmt.Errorf("list saga types: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list saga types: %w", err)
	}
	return out, nil
}

func scanSaga(row pgx.Row, extra ...any) (SagaRow, error) {
	var s SagaRow
	err := row.Scan(append([]any{
		&s.ID, &s.Tenant, &s.Type, &s.Key, &s.Attempt, &s.BusinessKey, &s.State, &s.Decision, &s.Reason, &s.Stuck,
		&s.StepsDone, &s.LastStep, &s.EffectsOpen, &s.Cluster, &s.ProcessInstanceKey, &s.StartedAt, &s.Deadline, &s.BegunAt, &s.DecidedAt, &s.ClosedAt,
	}, extra...)...)
	return s, err
}

// Step is one row of a saga's ledger: a forward step that ended, and how its undo stands.
type Step struct {
	OperationID  string     `json:"operation_id"`
	SagaID       string     `json:"saga_id"`
	Name         string     `json:"name"`
	JobType      string     `json:"job_type"`
	ElementID    string     `json:"element_id"`
	Class        string     `json:"class"`
	Code         string     `json:"code"`
	UndoType     string     `json:"undo_type"` // job type of the compensation, "" = none
	Policy       string     `json:"policy"`
	Pivot        bool       `json:"pivot"`
	Amount       *Money     `json:"amount"`
	CommitOrder  int64      `json:"commit_order"`
	CommittedAt  time.Time  `json:"committed_at"`
	UndoState    string     `json:"undo_state"` // none, open, running, done, parked, stuck, remediated
	UndoAttempts int        `json:"undo_attempts"`
	UndoError    string     `json:"undo_error"`
	UndoAt       *time.Time `json:"undo_at"`
}

func scanStep(row pgx.CollectableRow) (Step, error) {
	var s Step
	var amount []byte
	err := row.Scan(&s.OperationID, &s.SagaID, &s.Name, &s.JobType, &s.ElementID, &s.Class, &s.Code, &s.UndoType, &s.Policy, &s.Pivot, &amount,
		&s.CommitOrder, &s.CommittedAt, &s.UndoState, &s.UndoAttempts, &s.UndoError, &s.UndoAt)
	if err == nil {
		s.Amount, err = parseMoney(amount)
	}
	return s, err
}

// Saga is one saga with everything we know of it. Problems says what could not be asked; the rest is complete without it.
type Saga struct {
	SagaRow
	CorrelationID string    `json:"correlation_id"`
	TraceID       string    `json:"trace_id"`
	Actor         string    `json:"actor"`
	VariableNames []string  `json:"variable_names"` // of the plan; never their values
	Steps         []Step    `json:"steps"`          // in commit order
	Elements      []Element `json:"elements"`       // of the engine, in order of start
	Timeline      []Moment  `json:"timeline"`       // oldest first
	Problems      []string  `json:"problems"`
}

// Saga gives one saga by id, [ErrNotFound] when there is none.
func (d *Desk) Saga(ctx context.Context, id string) (Saga, error) {
	s := Saga{Problems: []string{}}
	if err := checkText("saga", id, 300, "its id"); err != nil {
		return s, err
	}
	var traceparent string
	var actor []byte
	row, err := scanSaga(d.cfg.Pool.QueryRow(ctx, d.sql.oneSaga, d.cfg.BeginWithin, d.cfg.UndoWithin, id), &s.CorrelationID, &traceparent, &actor, &s.VariableNames)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return s, fmt.Errorf("saga %s: %w", id, err)
	}
	s.SagaRow, s.TraceID, s.Actor = row, traceID(traceparent), actorName(actor)
	if s.Steps, err = listSteps(ctx, d.cfg.Pool, d.sql.sagaSteps, id); err != nil {
		return s, fmt.Errorf("saga %s: %w", id, err)
	}
	s.Elements, err = d.elements(ctx, row)
	if err != nil {
		s.Problems = append(s.Problems, "element states: "+err.Error())
	}
	if s.Elements == nil {
		s.Elements = []Element{}
	}
	if s.Timeline, err = d.timeline(ctx, &s); err != nil {
		return s, fmt.Errorf("saga %s: %w", id, err)
	}
	return s, nil
}

func listSteps(ctx context.Context, db querier, sql string, args ...any) ([]Step, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list steps: %w", err)
	}
	out, err := pgx.CollectRows(rows, scanStep)
	if err != nil {
		return nil, fmt.Errorf("list steps: %w", err)
	}
	return out, nil
}

func traceID(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}

// actorName picks what names the partner or person of an events.Actor.
func actorName(raw []byte) string {
	var a struct {
		UserID        string `json:"userId"`
		ServiceClient string `json:"serviceClient"`
	}
	if json.Unmarshal(raw, &a) != nil {
		return ""
	}
	if a.UserID != "" {
		return a.UserID
	}
	return a.ServiceClient
}
