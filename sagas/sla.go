package sagas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// EventSLABreached is an operational event: an operation, one of its steps or the person it waits for takes longer than was
// declared (spec S5, W14). Each breach is told once, by whichever process sees it first.
const EventSLABreached = "platform.operation.sla_breached"

// What a breach is about, in the order in which it escalates.
const (
	BreachStep      = "step"      // a step has not ended within Type.StepSLA
	BreachOperation = "operation" // the operation has not ended within Type.SLA
	BreachDeadline  = "deadline"  // its time-out has passed: it is being undone, goes forward past its pivot, or is stuck
	BreachManual    = "manual"    // it waits for a person for longer than Config.ManualWithin
)

// Breach is one breach of an SLA. It is the data of [EventSLABreached].
type Breach struct {
	SagaID   string    `json:"sagaId"`
	SagaType string    `json:"sagaType"`
	Tenant   string    `json:"tenant"`
	What     string    `json:"what"`
	Step     string    `json:"step,omitempty"` // of BreachStep: "<elementId>" or "<elementId>:<n>"
	JobType  string    `json:"jobType,omitempty"`
	Severity string    `json:"severity"` // warning, or critical from the deadline on
	Due      time.Time `json:"due"`      // when it should have ended

	operationID string
}

func (b Breach) key() string {
	if b.What == BreachStep {
		return b.What + ":" + b.operationID
	}
	return b.What
}

// Breaches lists what is late and has not ended, told or not, the longest first, at most limit.
func (s *Sagas) Breaches(ctx context.Context, limit int) ([]Breach, error) {
	return s.breaches(ctx, false, limit)
}

func (s *Sagas) breaches(ctx context.Context, untold bool, limit int) ([]Breach, error) {
	var (
		types, stepTypes, stepJobs []string
		slas, stepSLAs             []time.Duration
	)
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		t := s.types[name]
		types, slas = append(types, name), append(slas, t.SLA)
		for _, job := range slices.Sorted(maps.Keys(t.StepSLA)) {
			stepTypes, stepJobs, stepSLAs = append(stepTypes, name), append(stepJobs, job), append(stepSLAs, t.StepSLA[job])
		}
	}
	rows, err := s.cfg.Domain.Query(ctx, s.sql.breaches, untold, types, slas, orNone(stepTypes), orNone(stepJobs), orNone(stepSLAs), s.cfg.ManualWithin, limit)
	if err != nil {
		return nil, fmt.Errorf("SLA breaches: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Breach, error) {
		var b Breach
		err := row.Scan(&b.SagaID, &b.SagaType, &b.Tenant, &b.What, &b.operationID, &b.JobType, &b.Due)
		b.Severity = "warning"
		if b.What == BreachDeadline || b.What == BreachManual {
			b.Severity = "critical"
		}
		if b.What == BreachStep {
			b.Step = strings.TrimPrefix(b.operationID, b.SagaID+":")
		}
		return b, err
	})
}

func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// sweepBreaches tells of what has become late.
func (s *Sagas) sweepBreaches(ctx context.Context) error {
	all, err := s.breaches(ctx, true, sweepBatch)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range all {
		told := false
		err := s.inSaga(ctx, b.SagaID, "sla:"+b.key(), func(tx *outbox.Tx, row Saga) error {
			tag, err := tx.Exec(ctx, s.sql.tellBreach, b.SagaID, b.key())
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			tx.Emit(events.Message{Type: EventSLABreached, Version: 1, Kind: events.KindEvent, BusinessKey: row.BusinessKey, Data: b})
			told = true
			return nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("tell that saga %s is late: %w", b.SagaID, err))
		} else if told {
			s.meter.inc(metricBreaches, b.SagaType, b.What)
			s.cfg.Log.Warn().Str("operation_id", b.SagaID).Str("what", b.What).Str("step", b.Step).Time("due", b.Due).Msg("SLA breached")
		}
	}
	return errors.Join(errs...)
}
