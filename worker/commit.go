package worker

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/rule"
)

// fate is what is known of a transaction whose COMMIT was sent.
type fate int

const (
	committed    fate = iota // the COMMIT tag reads COMMIT
	notCommitted             // a statement before it failed with severity ERROR, or the tag reads ROLLBACK
	unknownFate              // everything else: claim again, which waits for the truth (path rule 2)
)

// commit sends b, whose last statement it adds: COMMIT. The error says why it is not committed.
func commit(ctx context.Context, conn *pgx.Conn, b *pgx.Batch, operationID string) (fate, error) {
	crash.Point("worker.commit.before", operationID)
	f, err := commitQuietly(ctx, conn, b)
	if f == committed {
		crash.Point("worker.commit.after", operationID)
	}
	return f, err
}

// commitQuietly is commit without crash points, for transactions that record no outcome.
func commitQuietly(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) (fate, error) {
	f, err := postgres.Commit(ctx, conn, b)
	if rule.Off(2) && errors.Is(err, postgres.ErrAborted) {
		return committed, nil
	}
	switch {
	case rule.Off(2) && err == nil, f == postgres.Committed:
		return committed, err
	case rule.Off(2), f == postgres.NotCommitted:
		return notCommitted, err
	}
	return unknownFate, err
}

// rollback ends a transaction; a connection on which that does not work is closed, so that the pool drops it.
func rollback(ctx context.Context, conn *pgx.Conn) { postgres.Rollback(ctx, conn) }
