package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vitrip/journeyman/outbox"
)

// archivedMoments tells which events of the saga stand only in the archive of the event log, because the database has dropped
// their days. What cannot be read is a problem of the saga, not the end of its page.
func (d *Desk) archivedMoments(ctx context.Context, s *Saga) ([]Moment, error) {
	days, err := outbox.NewLog(d.cfg.Schema).Days(ctx, d.cfg.Pool)
	if err != nil {
		return nil, fmt.Errorf("days of the event log: %w", err)
	}
	until := time.Now().Add(24 * time.Hour) // the archive has no day that is not over
	if s.ClosedAt != nil {
		until = s.ClosedAt.Add(time.Hour)
	}
	gone := map[string]bool{}
	for _, day := range days {
		if !day.Kept && day.Day.Before(until) && day.Day.AddDate(0, 0, 1).After(s.StartedAt) {
			gone[day.Day.Format(time.DateOnly)] = true
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	if d.cfg.Archive == nil {
		s.Problems = append(s.Problems, fmt.Sprintf("events of %d days stand only in the archive of the event log, and none is configured here", len(gone)))
		return nil, nil
	}
	var all []Moment
	err = d.cfg.Archive.Rows(ctx, outbox.LogCursor{At: s.StartedAt.Add(-time.Microsecond)}, until, func(l outbox.Logged) error {
		ours := l.BusinessKey == s.BusinessKey && (l.OperationID == s.ID || strings.HasPrefix(l.OperationID, s.ID+":"))
		if !ours || !gone[l.LoggedAt.UTC().Format(time.DateOnly)] {
			return nil
		}
		all = append(all, Moment{
			At: l.LoggedAt, Source: "event", What: fmt.Sprintf("%s.v%d", l.Type, l.Version), OperationID: l.OperationID,
			Step:   strings.TrimPrefix(strings.TrimPrefix(l.OperationID, s.ID), ":"),
			Detail: fmt.Sprintf("archived, sequence %d, event %s", l.Seq, l.EventID),
		})
		return nil
	})
	if err != nil {
		s.Problems = append(s.Problems, "archived events: "+err.Error())
	}
	return all, nil
}
