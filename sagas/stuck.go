package sagas

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// EventStuck is an operational event: a saga makes no progress and somebody should look (spec S5). It is emitted once for
// each reason, by whichever process sees it first.
const EventStuck = "platform.operation.stuck"

// StuckNews is the data of [EventStuck].
type StuckNews struct {
	SagaID   string `json:"sagaId"`
	SagaType string `json:"sagaType"`
	Tenant   string `json:"tenant"`
	Why      string `json:"why"` // see Stuck.Why
}

// sweepStuck tells of sagas that have become stuck.
func (s *Sagas) sweepStuck(ctx context.Context) error {
	rows, err := s.cfg.Domain.Query(ctx, s.sql.stuckUntold, s.cfg.BeginWithin, s.cfg.UndoWithin, sweepBatch)
	if err != nil {
		return fmt.Errorf("stuck sagas: %w", err)
	}
	type found struct{ id, why string }
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) { return f, row.Scan(&f.id, &f.why) })
	if err != nil {
		return fmt.Errorf("stuck sagas: %w", err)
	}
	var errs []error
	for _, f := range all {
		told, typ := false, ""
		err := s.inSaga(ctx, f.id, "stuck:"+f.why, func(tx *outbox.Tx, row Saga) error {
			tag, err := tx.Exec(ctx, s.sql.tellStuck, f.id, f.why)
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			tx.Emit(events.Message{Type: EventStuck, Version: 1, Kind: events.KindEvent, BusinessKey: row.BusinessKey,
				Data: StuckNews{SagaID: row.ID, SagaType: row.Type, Tenant: row.Tenant, Why: f.why}})
			told, typ = true, row.Type
			return nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("tell that saga %s is stuck: %w", f.id, err))
		} else if told {
			s.meter.inc(metricStuck, typ, f.why)
			s.cfg.Log.Warn().Str("operation_id", f.id).Str("why", f.why).Msg("saga is stuck")
		}
	}
	return errors.Join(errs...)
}
