package sagas

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// gaugesEvery is how often the gauges are counted. They read all open sagas.
const gaugesEvery = 15 * time.Second

// sweepGauges counts what is open and what is stuck, over all processes: each process shows the same figures (spec V3).
func (s *Sagas) sweepGauges(ctx context.Context) error {
	if !s.gaugesDue(time.Now()) {
		return nil
	}
	for _, g := range []struct {
		family family
		sql    string
		args   []any
	}{{metricActive, s.sql.countOpen, nil}, {metricStuckNow, s.sql.countStuck, []any{s.cfg.BeginWithin, s.cfg.UndoWithin}}} {
		rows, err := s.cfg.Domain.Query(ctx, g.sql, g.args...)
		if err != nil {
			return fmt.Errorf("count sagas: %w", err)
		}
		type count struct {
			labels [2]string
			n      int64
		}
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c count, err error) {
			return c, row.Scan(&c.labels[0], &c.labels[1], &c.n)
		})
		if err != nil {
			return fmt.Errorf("count sagas: %w", err)
		}
		s.meter.reset(g.family)
		for _, c := range all {
			s.meter.set(g.family, float64(c.n), c.labels[:]...)
		}
	}
	return nil
}

func (s *Sagas) gaugesDue(now time.Time) bool {
	s.gaugesMu.Lock()
	defer s.gaugesMu.Unlock()
	if now.Sub(s.gaugesAt) < gaugesEvery {
		return false
	}
	s.gaugesAt = now
	return true
}
