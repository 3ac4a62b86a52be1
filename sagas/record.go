package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/crash"
)

// record is one attempt as the record store knows it: what a partner may see. Plan, Origin, Partial and Final are empty until
// [Sagas.open].
type record struct {
	ID, Tenant, Type, Key, InternalKey string
	Attempt                            int
	Previous, Next                     string // attempts before and after, by operation id
	BusinessKey                        string
	Plan                               Plan
	Origin                             origin
	State                              string // in_progress, completed, failed, expired
	StartedAt, TimeoutAt, EstimatedAt  time.Time
	FinishedAt                         *time.Time
	Gone                               bool // past its retention
	LastProgressEventID                string
	Sequence                           int64
	Phase                              string // "", forward, compensation, manual
	Steps, Completed                   []string
	Partial                            map[string]json.RawMessage
	Final                              []byte
	Polls                              int64
	StartState                         string
	Now                                time.Time // the store's clock when it was read
	Fingerprint                        []byte    // of the key; only when read by key
	rest                               *resting  // nil once it was opened
}

// scanRecord reads the columns of a record, and then more. Its contents are left as they rest: one that cannot be opened must
// not be in the way of others that are read with it.
func scanRecord(row pgx.Row, more ...any) (record, error) {
	r := record{rest: &resting{}}
	err := row.Scan(append([]any{&r.ID, &r.Tenant, &r.Type, &r.Key, &r.InternalKey, &r.Attempt, &r.Previous, &r.Next, &r.BusinessKey, &r.rest.plan, &r.rest.origin,
		&r.State, &r.StartedAt, &r.TimeoutAt, &r.EstimatedAt, &r.FinishedAt, &r.Gone, &r.LastProgressEventID, &r.Sequence,
		&r.Phase, &r.Steps, &r.Completed, &r.rest.partial, &r.rest.final, &r.Polls, &r.StartState, &r.Now, &r.Fingerprint}, more...)...)
	return r, err
}

func (r record) terminal() bool { return r.State != stateInProgress }

const stateInProgress = "in_progress"

// Values of current_step that are no element ids.
const (
	stepCompensation = "compensation"
	stepManual       = "manual"
	stepClosing      = "closing"
)

// currentStep is what a partner sees as the step in progress. With parallel steps it is the first that has not ended.
func (r record) currentStep() string {
	switch r.Phase {
	case stepCompensation, stepManual:
		return r.Phase
	}
	if rest := r.remaining(); len(rest) > 0 {
		return rest[0]
	}
	return stepClosing
}

func (r record) remaining() []string {
	rest := []string{}
	if r.Phase == stepCompensation {
		return rest
	}
	for _, st := range r.Steps {
		if !slices.Contains(r.Completed, st) {
			rest = append(rest, st)
		}
	}
	return rest
}

func (r record) attempt() attempt {
	return attempt{
		ID: r.ID, Tenant: r.Tenant, Type: r.Type, Key: r.Key, Number: r.Attempt, Plan: r.Plan, origin: r.Origin, StartedAt: r.StartedAt,
	}
}

// errNoRecord: there is no such key or operation.
var errNoRecord = errors.New("no such record")

func (s *Sagas) readKey(ctx context.Context, tenant, typ, key string) (record, error) {
	for range 2 {
		r, err := scanRecord(s.cfg.Records.QueryRow(ctx, s.rec.read, tenant, typ, key))
		if err == nil {
			return s.open(r)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return r, err
		}
		r, deleted, err := scanTombstone(s.cfg.Records.QueryRow(ctx, s.rec.tombstone, tenant, typ, key))
		if err != nil || deleted {
			return r, err
		}
		// The key was claimed, or its record moved on, between the two reads.
	}
	return record{}, fmt.Errorf("key of %s: its record is not there and was not deleted", typ)
}

func (s *Sagas) readOperation(ctx context.Context, operationID string) (record, error) {
	r, err := scanRecord(s.cfg.Records.QueryRow(ctx, s.rec.readByID, operationID))
	if err == nil {
		return s.open(r)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return r, err
	}
	r, _, err = scanTombstone(s.cfg.Records.QueryRow(ctx, s.rec.tombstoneByID, operationID))
	return r, err
}

// stateDeleted is that of a record of which only the key is left.
const stateDeleted = "deleted"

func scanTombstone(row pgx.Row) (r record, deleted bool, err error) {
	err = row.Scan(&r.ID, &r.Fingerprint, &deleted, &r.Tenant, &r.Type, &r.Key)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, errNoRecord
	}
	r.State, r.Gone = stateDeleted, true
	return r, deleted, err
}

// startGrace is how long a fresh record is left to the fast path before the sweep starts it.
const startGrace = 2 * time.Second

// claim makes key and record in one statement. made is false when the key was there; then nothing is written.
func (s *Sagas) claim(ctx context.Context, t *Type, tenant, key string, print []byte, plan Plan, o origin) (id string, made bool, err error) {
	id = OperationID(tenant, t.Name, key, 1)
	args, err := s.recordArgs(id, t, plan, o.withDefaults(id))
	if err != nil {
		return id, false, err
	}
	tag, err := s.cfg.Records.Exec(ctx, s.rec.claim, append([]any{id, tenant, t.Name, key, print}, args...)...)
	if err != nil {
		return id, false, fmt.Errorf("claim key: %w", err)
	}
	if tag.RowsAffected() == 1 {
		crash.Point("saga.record.claimed", id)
	}
	return id, tag.RowsAffected() == 1, nil
}

// retry starts the attempt after old, provided that old is still the key's attempt and ended failed or expired (spec I7).
func (s *Sagas) retry(ctx context.Context, t *Type, old record, plan Plan, o origin) (made bool, err error) {
	id := OperationID(old.Tenant, old.Type, old.Key, old.Attempt+1)
	args, err := s.recordArgs(id, t, plan, o.withDefaults(id))
	if err != nil {
		return false, err
	}
	head := []any{id, old.Tenant, old.Type, old.Key, internalKey(old.Key, old.Attempt+1)}
	tag, err := s.cfg.Records.Exec(ctx, s.rec.retry, append(append(head, args...), old.ID)...)
	if err != nil {
		return false, fmt.Errorf("retry %s: %w", old.ID, err)
	}
	if tag.RowsAffected() == 1 {
		crash.Point("saga.record.claimed", id)
	}
	return tag.RowsAffected() == 1, nil
}

// recordArgs are the parameters $6 to $13 of claim and retry.
func (s *Sagas) recordArgs(id string, t *Type, plan Plan, o origin) ([]any, error) {
	planText, planErr := s.restJSON(id, placePlan, plan)
	originText, originErr := s.restJSON(id, placeOrigin, o)
	partialText, partialErr := s.restPartial(id, plan.Partial)
	if err := errors.Join(planErr, originErr, partialErr); err != nil {
		return nil, fmt.Errorf("plan of %s: %w", t.Name, err)
	}
	steps := t.steps(plan)
	if steps == nil {
		steps = []string{}
	}
	return []any{plan.BusinessKey, planText, originText, t.Timeout, t.Estimate, steps, partialText, startGrace}, nil
}

// begin is the way from a 202 in the record store to the start in the domain database (spec Z6): the fast path,
// and for each due record the sweep. Doing it twice does nothing.
func (s *Sagas) begin(ctx context.Context, r record) error {
	r, err := s.open(r)
	if err == nil {
		err = s.start(ctx, r.attempt())
	}
	if err != nil {
		_, markErr := s.cfg.Records.Exec(context.WithoutCancel(ctx), s.rec.startFailed, r.ID, err.Error())
		return errors.Join(err, markErr)
	}
	if _, err := s.cfg.Records.Exec(ctx, s.rec.started, r.ID); err != nil {
		return fmt.Errorf("mark %s started: %w", r.ID, err)
	}
	return nil
}
