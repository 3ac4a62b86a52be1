package sagas

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Routes are for the consumer that moves records: give them to inbox.New together with the pool and schema
// of the record store, so that inbox row and record move in one transaction.
func (s *Sagas) Routes() []inbox.Route {
	return []inbox.Route{{Types: []string{"platform.saga.*"}, Versions: []int{1}, Handler: s.Apply}}
}

// Apply moves a record by one saga-class event (spec Z6). It is idempotent, and refuses to go back: an event
// whose sequence is not above the record's last one changes nothing, and nothing leaves a final state.
// tx must be one of the record store.
func (s *Sagas) Apply(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	if m.Replay {
		return nil // the record is past this already
	}
	var p Progress
	if err := m.Decode(&p); err != nil {
		return outcome.NewFatal(err)
	}
	if p.SagaID == "" {
		return outcome.Fatalf(outcome.ReasonInput, "data of %s: sagaId is empty", m.MessageType)
	}
	if m.MessageType == EventStarted && p.Record != nil {
		if err := s.insertRecord(ctx, tx, m, p); err != nil {
			return err
		}
	}
	var (
		phase, step, state, segment string
		final, sum                  []byte
		finished                    *time.Time
		retention                   time.Duration
	)
	switch m.MessageType {
	case EventStarted:
	case EventStepCompleted:
		step, segment = p.Step, p.Segment
		if p.Pivot {
			phase = "forward"
		}
	case EventStepFailed:
		segment, phase = p.Segment, "failed"
	case EventCompensating, EventCompensated:
		phase = stepCompensation
	case EventParked:
		phase = stepManual
	case EventCompleted, EventFailed, EventExpired:
		state, final, finished = m.MessageType[len("platform.saga."):], p.Final, p.FinishedAt
		if len(final) == 0 || finished == nil {
			return outcome.Fatalf(outcome.ReasonInput, "data of %s: final and finishedAt must be there", m.MessageType)
		}
		digest := sha256.Sum256(final)
		sum, retention = digest[:], s.retention(p.SagaType)
	default:
		return outcome.Fatalf(outcome.ReasonInput, "message type %s is not a saga event this version knows", m.MessageType)
	}
	partial, err := "null", error(nil)
	if segment != "" {
		if partial, err = s.restJSON(p.SagaID, partialOf(segment), p.Partial); err != nil {
			return err
		}
	}
	if final, err = s.restFinal(p.SagaID, final); err != nil {
		return err
	}
	var (
		polls   int64
		started time.Time
		key     string
	)
	err = tx.QueryRow(ctx, s.rec.progress, p.SagaID, m.MessageID, m.Metadata.Sequence, phase, step, segment, partial, state, final, finished, retention, sum).Scan(&polls, &started, &key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // the record is past this already
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", p.SagaID, err)
	}
	if state != "" {
		if err := s.tellCompletion(ctx, tx, p, key, state); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.rec.pollForget, p.SagaID); err != nil {
			return fmt.Errorf("polls of %s: %w", p.SagaID, err)
		}
		s.count.ended(state)
		s.meter.observeEnd(p.SagaType, state, polls, finished.Sub(started))
	}
	return nil
}

// defaultRetention is for types this process does not know.
const defaultRetention = 365 * 24 * time.Hour

// RetentionOf is how long the final answer of a type is kept, by what is configured: what its handlers must at least retain
// (spec D1). For a type that is not declared here it is a year.
func (s *Sagas) RetentionOf(typ string) time.Duration { return s.retention(typ) }

func (s *Sagas) retention(typ string) time.Duration {
	if t := s.types[typ]; t != nil {
		return t.Retention
	}
	return defaultRetention
}

// insertRecord makes the record of an operation that another saga started. No request stands behind it: its
// fingerprint is that of no body, so a partner's request with the same key is a mismatch.
func (s *Sagas) insertRecord(ctx context.Context, tx *outbox.Tx, m events.Received, p Progress) error {
	print := sha256.Sum256([]byte("started by another operation"))
	if _, err := tx.Exec(ctx, s.rec.insertKey, p.Tenant, p.SagaType, p.Record.Key, print[:], p.Record.Attempt, p.SagaID); err != nil {
		return fmt.Errorf("key of %s: %w", p.SagaID, err)
	}
	r := p.Record
	partial, partialErr := s.restPartial(p.SagaID, r.Partial)
	o, originErr := s.restJSON(p.SagaID, placeOrigin, origin{CorrelationID: m.Metadata.CorrelationID, Actor: m.Actor})
	if err := errors.Join(partialErr, originErr); err != nil {
		return err
	}
	steps := r.Steps
	if steps == nil {
		steps = []string{}
	}
	if _, err := tx.Exec(ctx, s.rec.insertRecord, p.SagaID, p.Tenant, p.SagaType, r.Key, internalKey(r.Key, r.Attempt), r.Attempt, r.BusinessKey,
		`{}`, o, steps, partial, r.StartedAt, r.TimeoutAt, r.EstimatedAt); err != nil {
		return fmt.Errorf("record %s: %w", p.SagaID, err)
	}
	return nil
}
