package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
)

// Filter picks sagas; zero fields pick all.
type Filter struct {
	Tenant, Type, State, BusinessKey string
	Open                             bool   // only those that are not closed
	After                            string // saga id: the page after this one
	Limit                            int    // 0 = 50, at most 500
}

// Summary is a saga in a list.
type Summary struct {
	Saga
	Done     int    // forward steps that succeeded
	LastStep string // name of the last step in the ledger, "" for none
}

// List gives sagas, the youngest first.
func (s *Sagas) List(ctx context.Context, f Filter) ([]Summary, error) {
	switch {
	case f.Limit == 0:
		f.Limit = 50
	case f.Limit < 0 || f.Limit > 500:
		return nil, fmt.Errorf("list sagas: limit %d, want 1 to 500", f.Limit)
	}
	rows, err := s.cfg.Domain.Query(ctx, s.sql.list, f.Tenant, f.Type, f.State, f.BusinessKey, f.Open, f.After, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("list sagas: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Summary, error) {
		var sum Summary
		var err error
		sum.Saga, err = scanSaga(row, &sum.Done, &sum.LastStep)
		return sum, err
	})
}

// Detail is one saga with its ledger and its timeline. Engine state is the console's to add.
type Detail struct {
	Saga
	Steps    []StepRow // in commit order
	Timeline []Entry   // in order of the business key's sequence
}

// Entry is one event in a saga's timeline.
type Entry struct {
	MessageID   string
	Type        string
	At          time.Time
	Sequence    int64
	OperationID string
	Step        string // step name, "" when the event is about the saga
	Code        string
	Published   bool // false = still in the outbox
}

// Show gives one saga. It wraps [ErrUnknown] when there is none.
func (s *Sagas) Show(ctx context.Context, sagaID string) (Detail, error) {
	row, err := scanSaga(s.cfg.Domain.QueryRow(ctx, s.sql.readSaga, sagaID))
	if errors.Is(err, pgx.ErrNoRows) {
		return Detail{}, fmt.Errorf("saga %s: %w", sagaID, ErrUnknown)
	}
	if err != nil {
		return Detail{}, fmt.Errorf("saga %s: %w", sagaID, err)
	}
	d := Detail{Saga: row}
	if d.Steps, err = collectSteps(ctx, s.cfg.Domain, s.sql.steps, sagaID); err != nil {
		return d, fmt.Errorf("ledger of saga %s: %w", sagaID, err)
	}
	if d.Timeline, err = s.timeline(ctx, row); err != nil {
		return d, fmt.Errorf("timeline of saga %s: %w", sagaID, err)
	}
	return d, nil
}

// timeline reads the saga's events of the log and of the outbox: in one snapshot, so that a row on its way from
// one to the other is seen once.
func (s *Sagas) timeline(ctx context.Context, row Saga) ([]Entry, error) {
	rows, err := s.cfg.Domain.Query(ctx, s.sql.timeline, row.BusinessKey, row.StartedAt.Add(-time.Minute), row.ID, events.Shard(row.BusinessKey))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (Entry, error) {
		var (
			e    Entry
			data []byte
			p    Progress
		)
		if err := r.Scan(&e.MessageID, &e.Type, &e.At, &e.Sequence, &e.OperationID, &data, &e.Published); err != nil {
			return e, err
		}
		if json.Unmarshal(data, &p) == nil && p.SagaID == row.ID {
			e.Step, e.Code = p.Step, p.Code
		}
		return e, nil
	})
}

// Stuck is a saga that makes no progress, and why.
type Stuck struct {
	Saga
	Why string // "not begun", "undo stuck", "past its deadline without a decision", "past its deadline, completed but not closed", "undo takes too long"
}

// Stuck lists sagas that need somebody, the oldest first (spec S5), at most limit.
func (s *Sagas) Stuck(ctx context.Context, limit int) ([]Stuck, error) {
	rows, err := s.cfg.Domain.Query(ctx, s.sql.stuck, s.cfg.BeginWithin, s.cfg.UndoWithin, limit)
	if err != nil {
		return nil, fmt.Errorf("stuck sagas: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Stuck, error) {
		var st Stuck
		var err error
		st.Saga, err = scanSaga(row, &st.Why)
		return st, err
	})
}

// Money is an amount in minor units.
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// Risk is what stands although its saga gave it up: effects whose undo runs, is stuck or was left to a person.
type Risk struct {
	Steps  []StepRow
	Totals []Money // sums by currency of the steps that name an amount, ordered by currency
}

// AtRisk lists effects that wait for their undo, the oldest first, at most limit; Totals are over these.
func (s *Sagas) AtRisk(ctx context.Context, limit int) (Risk, error) {
	steps, err := collectSteps(ctx, s.cfg.Domain, s.sql.risk, limit)
	if err != nil {
		return Risk{}, fmt.Errorf("effects at risk: %w", err)
	}
	r := Risk{Steps: steps}
	sums := map[string]int64{}
	for _, st := range steps {
		var m Money
		if len(st.Amount) > 0 && json.Unmarshal(st.Amount, &m) == nil {
			sums[m.Currency] += m.Minor
		}
	}
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		r.Totals = append(r.Totals, Money{Minor: sums[currency], Currency: currency})
	}
	return r, nil
}
