package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Dismiss records that a person settled a call that the other system never showed: it leaves [ListAsksOver] and [LateCounts]; row and
// retention stay. over is the AsksOverAt that the person saw. It gives the database's time of the mark; false = the operation is not,
// or no more, what was seen: dismissed already, asked about again, or landed. What lands after all is undone as before (path rule 11).
// Run it in the transaction that writes down who and why.
func (s *Store) Dismiss(ctx context.Context, db DB, operationID string, over time.Time) (at time.Time, ok bool, err error) {
	return moment(db.QueryRow(ctx, s.q.dismiss, operationID, over), "dismiss a call that was never seen")
}

// AskFurther has the other system asked again about a call that it never showed, at once and then as [Store.AskDue] does, for as long as
// further says, from now by the database's clock. over is as for [Store.Dismiss]; a dismissed call may be asked about too, and is on
// neither list meanwhile. It gives when asking ends; false = the operation is not, or no more, what was seen, or its input went with its
// retention, so that nothing can be asked.
func (s *Store) AskFurther(ctx context.Context, db DB, operationID string, over time.Time, further time.Duration) (until time.Time, ok bool, err error) {
	return moment(db.QueryRow(ctx, s.q.askFurther, operationID, over, further), "ask again about a call that was never seen")
}

// moment reads the time that a conditional update returns.
func moment(row pgx.Row, what string) (at time.Time, ok bool, err error) {
	err = row.Scan(&at)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return time.Time{}, false, nil
	case err != nil:
		return time.Time{}, false, fmt.Errorf("%s: %w", what, err)
	}
	return at, true, nil
}
