package dedup

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Renew extends a lease by its length from now; false = it is lost.
func (s *Store) Renew(ctx context.Context, db DB, operationID string, fence int64, owner string, lease time.Duration) (bool, error) {
	return exec(ctx, db, "renew lease", s.q.renew, operationID, fence, owner, lease)
}

// Progress stores how far a call is, for whoever looks the operation up; nothing happens once the call has come back.
func (s *Store) Progress(ctx context.Context, db DB, operationID string, fence int64, text string) error {
	_, err := exec(ctx, db, "store progress", s.q.progress, operationID, fence, text)
	return err
}

// Release gives a lease back. Until the time is over only a job may take the operation; then the sweep may, too.
func (s *Store) Release(ctx context.Context, db DB, operationID string, fence int64, until time.Duration, reason, message string) (bool, error) {
	return exec(ctx, db, "release lease", s.q.release, operationID, fence, until, reason, message)
}

// StoreResult stores a call's result before it is settled (path rule 18); false = the lease is lost.
func (s *Store) StoreResult(ctx context.Context, db DB, operationID string, fence int64, result json.RawMessage, lease time.Duration) (bool, error) {
	return exec(ctx, db, "store call result", s.q.called, operationID, fence, doc(result), lease)
}

// Late says what became of a result that came back when the lease was lost.
type Late int

// A late result is of no use to anybody, was taken up by the operation, or has to be undone.
const (
	LateDropped Late = iota
	LateResumed      // the operation had not ended: it goes on from the result, the sweep settles it
	LateUndo         // the operation was revoked: there is something to undo now
	LateRefused      // the same of an operation that a repeat of the call had ended refused: its stored answer stands
)

// StoreLate stores the result of a call that came back after its lease was lost. It opens the undo of a revoked operation again if
// that had found nothing (path rule 11), has the effect of one that ended refused undone, and lets one that goes on resume from the
// result, which nobody else may know. When the caller has not undone it within grace, [Store.AskDue] gives it to somebody else.
func (s *Store) StoreLate(ctx context.Context, db DB, operationID string, result json.RawMessage, grace time.Duration) (late Late, err error) {
	b := &pgx.Batch{}
	is := func(l Late) func(pgconnTag) error {
		return func(t pgconnTag) error {
			if t.RowsAffected() > 0 {
				late = l
			}
			return nil
		}
	}
	b.Queue(s.q.late, operationID, doc(result), grace).Exec(is(LateUndo))
	b.Queue(s.q.lateRefused, operationID, doc(result), grace).Exec(is(LateRefused))
	b.Queue(s.q.resumed, operationID, doc(result)).Exec(is(LateResumed))
	b.Queue(s.q.reopen, operationID+UndoSuffix)
	if err := db.SendBatch(ctx, b).Close(); err != nil {
		return LateDropped, fmt.Errorf("store late result: %w", err)
	}
	return late, nil
}

// NotHappened records that the call certainly did nothing: it may be made again by the job; false = the lease is lost. again is
// when the other system is to be asked once more, should no job have come by then; nil = never: no call of the operation is on its way.
func (s *Store) NotHappened(ctx context.Context, db DB, operationID string, fence int64, reason, message string, again *time.Duration) (bool, error) {
	return exec(ctx, db, "record that nothing happened", s.q.notHappened, operationID, fence, reason, message, again)
}

// Refuse stores an outcome that refuses after the effect: the undo runs before it is told (path rule 17).
func (s *Store) Refuse(ctx context.Context, db DB, operationID string, fence int64, o Outcome, lease time.Duration) (bool, error) {
	return exec(ctx, db, "store refusal", s.q.refuse, operationID, fence, string(o.Class), o.Reason, o.Code, o.Message, doc(o.Variables), lease)
}

// Expired takes up to limit operations of these job types and this cluster whose lease ran out (path rule 16). Any number of
// callers may run at once.
func (s *Store) Expired(ctx context.Context, db DB, jobTypes []string, cluster string, limit int, owner string, lease time.Duration) ([]Operation, error) {
	rows, err := db.Query(ctx, s.q.expired, jobTypes, cluster, limit, owner, lease)
	if err != nil {
		return nil, fmt.Errorf("take expired leases: %w", err)
	}
	ops, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("take expired leases: %w", err)
	}
	return ops, nil
}

// AskDue takes up to limit operations of these job types and this cluster about which the other system is to be asked again, or
// whose late effect nobody has undone. Each is left alone by others for the length of lease.
func (s *Store) AskDue(ctx context.Context, db DB, jobTypes []string, cluster string, limit int, lease time.Duration) ([]Operation, error) {
	rows, err := db.Query(ctx, s.q.askDue, jobTypes, cluster, limit, lease)
	if err != nil {
		return nil, fmt.Errorf("take operations to ask about: %w", err)
	}
	ops, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("take operations to ask about: %w", err)
	}
	return ops, nil
}

// Asked records that the other system was asked: times is 1 when it said that nothing happened. again is when it is asked next, nil
// = never: what there was to find out is known.
func (s *Store) Asked(ctx context.Context, db DB, operationID string, times int, again *time.Duration) error {
	_, err := exec(ctx, db, "record that the other system was asked", s.q.asked, operationID, times, again)
	return err
}

// AsksOver records that the other system is asked no more about a call that it never showed: that it lands later cannot be ruled out.
// times is as for [Store.Asked]. The row stays for retain from now, for people to see.
func (s *Store) AsksOver(ctx context.Context, db DB, operationID string, times int, retain time.Duration) error {
	_, err := exec(ctx, db, "record that the other system is asked no more", s.q.asksOver, operationID, times, retain)
	return err
}

// LateCounts are calls that the other system had not seen when their undo asked. Asked are those it is asked about still, Over those it is
// asked about no more and that nobody has dismissed.
type LateCounts struct{ Asked, Over int64 }

// LateCounts counts them by index, without reading the table.
func (s *Store) LateCounts(ctx context.Context, db DB) (c LateCounts, err error) {
	if err := db.QueryRow(ctx, s.q.lateCounts).Scan(&c.Asked, &c.Over); err != nil {
		return c, fmt.Errorf("count calls that are asked about: %w", err)
	}
	return c, nil
}
