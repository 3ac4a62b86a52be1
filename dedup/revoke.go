package dedup

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// UndoSuffix makes the id of an undo from that of its forward operation (path rule 12).
const UndoSuffix = ":undo"

type pgconnTag = pgconn.CommandTag

// Revocation is what revoking found.
type Revocation struct {
	Absent    bool // there was no row: the operation never ran and never will
	Operation Operation
}

// QueueRevoke adds the claim of a forward operation by its undo (path rule 11): it waits for a running twin, enters a
// revoked row where there is none, and reads and locks the row otherwise. Follow it with QueueRevokeRow when the effect is to be undone.
func (s *Store) QueueRevoke(b *pgx.Batch, operationID, tenant, businessKey, sagaID, reason string, retain time.Duration, to *Revocation) {
	b.Queue(s.q.revoke, operationID, tenant, businessKey, sagaID, reason, retain).Query(func(rows pgx.Rows) error {
		to.Absent = rows.Next()
		return nil
	})
	var ok bool
	s.QueueReadLocked(b, operationID, &to.Operation, &ok)
}

// QueueRevokeRow adds the change of the row that was read to revoked, fence + 1.
func (s *Store) QueueRevokeRow(b *pgx.Batch, operationID string, fence int64, reason string, retain time.Duration) {
	b.Queue(s.q.revokeRow, operationID, fence, reason, retain)
}

// Found records what Resolve found behind a revoked operation: EffectKnown with its result, or EffectNone. again is when the other
// system is to be asked once more, nil = never (see [Store.AskDue]).
func (s *Store) Found(ctx context.Context, db DB, operationID string, fence int64, effect Effect, result json.RawMessage, again *time.Duration) (bool, error) {
	return exec(ctx, db, "record what the other system says", s.q.found, operationID, fence, string(effect), doc(result), again)
}

// QueueUndone adds the mark on the forward operation that its effect is undone.
func (s *Store) QueueUndone(b *pgx.Batch, operationID string) { b.Queue(s.q.undone, operationID) }

// Orphan marks an operation whose element was terminated before the answer came: OrphanOpen, OrphanUndone, OrphanParked.
func (s *Store) Orphan(ctx context.Context, db DB, operationID, state string) error {
	_, err := exec(ctx, db, "mark orphan", s.q.orphan, operationID, state)
	return err
}

// Lookup gives the operation with this id; false = there is none.
func (s *Store) Lookup(ctx context.Context, db DB, operationID string) (Operation, bool, error) {
	rows, err := db.Query(ctx, s.q.lookup, operationID)
	if err != nil {
		return Operation{}, false, fmt.Errorf("look up operation: %w", err)
	}
	ops, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return Operation{}, false, fmt.Errorf("look up operation: %w", err)
	}
	if len(ops) == 0 {
		return Operation{}, false, nil
	}
	return ops[0], true, nil
}

// Filters of [Store.List].
const (
	ListAll       = ""
	ListUnknown   = "unknown"    // the other system may have acted
	ListLeased    = "leased"     // external work under way or to be swept
	ListRevoked   = "revoked"    // their undo came
	ListOrphans   = "orphans"    // their element was terminated before the answer
	ListAsked     = "asked"      // the other system is asked whether their call landed late
	ListAsksOver  = "asks-over"  // it is asked no more and nobody has dismissed it: that the call lands later cannot be ruled out
	ListUndo      = "undo"       // undo running
	ListUndoStuck = "undo-stuck" // undo failed, or tried more than three times
)

// List gives operations for operators, youngest first. sagaID "" = all.
func (s *Store) List(ctx context.Context, db DB, filter, sagaID string, limit int) ([]Operation, error) {
	rows, err := db.Query(ctx, s.q.list, filter, sagaID, limit)
	if err != nil {
		return nil, fmt.Errorf("list operations: %w", err)
	}
	ops, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("list operations: %w", err)
	}
	return ops, nil
}

// Counts are figures for operators. Orphans counts all that were found, OrphansOpen those not undone.
type Counts struct {
	Leased, Unknown, Revoked, Orphans, OrphansOpen, UndoRunning, UndoStuck int64
}

// Counts counts the table. It reads all of it: for operators, not for the hot path.
func (s *Store) Counts(ctx context.Context, db DB) (c Counts, err error) {
	if err := db.QueryRow(ctx, s.q.counts).Scan(&c.Leased, &c.Unknown, &c.Revoked, &c.Orphans, &c.OrphansOpen, &c.UndoRunning, &c.UndoStuck); err != nil {
		return c, fmt.Errorf("count operations: %w", err)
	}
	return c, nil
}
