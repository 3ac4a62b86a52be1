package worker

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/internal/crash"
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
	before := true // a statement before COMMIT is still to be answered
	if n := len(b.QueuedQueries); n > 0 {
		last := b.QueuedQueries[n-1]
		fn := last.Fn
		last.Fn = func(br pgx.BatchResults) (err error) {
			if fn != nil {
				err = fn(br)
			} else {
				_, err = br.Exec()
			}
			before = err != nil
			return err
		}
	} else {
		before = false
	}
	var tag string
	b.Queue("COMMIT").Exec(func(t pgconn.CommandTag) error { tag = t.String(); return nil })
	err := conn.SendBatch(ctx, b).Close()
	f := fateOf(tag, before, err)
	if f == notCommitted && err == nil {
		err = errors.New("the transaction was aborted: COMMIT answered ROLLBACK")
	}
	return f, err
}

// fateOf reads what came back. [M] A server error of severity FATAL proves nothing: 57P01 came back from a batch whose COMMIT
// had succeeded. pgconn.SafeToRetry said yes to committed work.
func fateOf(tag string, before bool, err error) fate {
	if rule.Off(2) {
		if err == nil {
			return committed
		}
		return notCommitted
	}
	switch tag {
	case "COMMIT":
		return committed
	case "ROLLBACK":
		return notCommitted
	}
	var pg *pgconn.PgError
	if before && errors.As(err, &pg) && severity(pg) == "ERROR" {
		return notCommitted
	}
	return unknownFate
}

func severity(pg *pgconn.PgError) string {
	if pg.SeverityUnlocalized != "" {
		return pg.SeverityUnlocalized
	}
	return pg.Severity
}

// rollback ends a transaction; a connection on which that does not work is closed, so that the pool drops it.
func rollback(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = conn.Close(ctx)
	}
}
