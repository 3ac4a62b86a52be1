package sagas

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// polls of running operations that come at the same moment share their statements.
type pollReads struct {
	look gather[ownOperation, looked]
	poll gather[startedOperation, polled]
}

type ownOperation struct{ id, tenant string }

type startedOperation struct {
	id        string
	startedAt time.Time
}

type looked struct {
	rec record
	polled
}

// polled is what the store says of a poll: whether it may be answered, whether it came before the last Retry-After, and what
// to ask for next.
type polled struct {
	allowed, early bool
	wait           time.Duration
}

// tooFast is a poll that came within the gap behind another.
var tooFast = polled{early: true, wait: minPollGap} //nolint:gochecknoglobals // constant

// polledBy makes it from the row of a poll, answered = 0 when there was none.
func polledBy(answered int, early bool) polled {
	if answered == 0 {
		return tooFast
	}
	return polled{allowed: true, early: early, wait: retryAfter[min(answered, len(retryAfter)-1)]}
}

func (s *Sagas) readPolls() *pollReads {
	return &pollReads{look: gather[ownOperation, looked]{all: s.lookAll}, poll: gather[startedOperation, polled]{all: s.pollAll}}
}

// poll counts one poll of a running operation.
func (s *Sagas) poll(ctx context.Context, rec record) (polled, error) {
	p, found, first, err := s.pollReads.poll.get(ctx, startedOperation{rec.ID, rec.StartedAt})
	if err != nil {
		return polled{}, fmt.Errorf("count a poll of %s: %w", rec.ID, err)
	}
	if !found || !first {
		p = tooFast
	}
	s.polls.count(rec.ID, p.allowed, p.early)
	return p, nil
}

// look reads an operation of a tenant and counts a poll of it when it runs. Plan and origin are left empty.
//
// Errors: [errNoRecord] when the tenant has none of this id.
func (s *Sagas) look(ctx context.Context, id, tenant string) (record, polled, error) {
	l, found, first, err := s.pollReads.look.get(ctx, ownOperation{id, tenant})
	if err != nil {
		return record{}, polled{}, fmt.Errorf("look at %s: %w", id, err)
	}
	if !found {
		rec, err := s.readOperation(ctx, id) // what is left of one that was deleted
		if rec.ID != "" && rec.Tenant != tenant {
			err = errNoRecord
		}
		return rec, tooFast, err
	}
	if l.rec, err = s.open(l.rec); err != nil || l.rec.terminal() {
		return l.rec, polled{}, err
	}
	if !first {
		l.polled = tooFast
	}
	s.polls.count(id, l.allowed, l.early)
	return l.rec, l.polled, nil
}

func (s *Sagas) lookAll(ctx context.Context, of []ownOperation) (map[ownOperation]looked, error) {
	ids, tenants := make([]string, len(of)), make([]string, len(of))
	for i, o := range of {
		ids[i], tenants[i] = o.id, o.tenant
	}
	rows, err := s.cfg.Records.Query(ctx, s.rec.look, ids, tenants, retryAfter, minPollGap)
	if err != nil {
		return nil, err
	}
	all := make(map[ownOperation]looked, len(of))
	defer rows.Close()
	for rows.Next() {
		var answered int
		var early bool
		rec, err := scanRecord(rows, &answered, &early)
		if err != nil {
			return nil, err
		}
		all[ownOperation{rec.ID, rec.Tenant}] = looked{rec, polledBy(answered, early)}
	}
	return all, rows.Err()
}

func (s *Sagas) pollAll(ctx context.Context, of []startedOperation) (map[startedOperation]polled, error) {
	ids, started, by := make([]string, len(of)), make([]time.Time, len(of)), make(map[string]startedOperation, len(of))
	for i, o := range of {
		ids[i], started[i], by[o.id] = o.id, o.startedAt, o
	}
	rows, err := s.cfg.Records.Query(ctx, s.rec.poll, ids, started, retryAfter, minPollGap)
	if err != nil {
		return nil, err
	}
	all := make(map[startedOperation]polled, len(of))
	var (
		id       string
		answered int
		early    bool
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &answered, &early}, func() error {
		all[by[id]] = polledBy(answered, early)
		return nil
	})
	return all, err
}
