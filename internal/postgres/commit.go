package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Fate is what is known of a transaction whose COMMIT was sent (path rule 2).
type Fate int

const (
	// Committed means that the tag of COMMIT reads COMMIT.
	Committed Fate = iota
	// NotCommitted means that a statement before COMMIT failed with severity ERROR, or the tag reads ROLLBACK.
	NotCommitted
	// RefusedAtCommit means that the server answered COMMIT itself with severity ERROR, a deferred constraint say. Whether that counts as
	// knowledge is the caller's: a claim can wait for the truth, a delivery has only its own row.
	RefusedAtCommit
	// Unknown is everything else.
	Unknown
)

// ErrAborted says that COMMIT ended a transaction that an earlier failure had aborted.
var ErrAborted = errors.New("the transaction was aborted: COMMIT answered ROLLBACK")

// Commit sends b, whose last statement it adds: COMMIT. The error says why it is not Committed; beside Committed it may still name
// a failure that came after it.
func Commit(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) (Fate, error) {
	before := false // a statement before COMMIT is still to be answered
	if n := len(b.QueuedQueries); n > 0 {
		before = true
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
	}
	var tag string
	b.Queue("COMMIT").Exec(func(t pgconn.CommandTag) error { tag = t.String(); return nil })
	err := conn.SendBatch(ctx, b).Close()
	if tag == "ROLLBACK" {
		err = errors.Join(ErrAborted, err)
	}
	return fateOf(tag, before, err), err
}

// fateOf reads what came back. [M] A server error of severity FATAL proves nothing: 57P01 came back from a batch whose COMMIT
// had succeeded. pgconn.SafeToRetry said yes to committed work.
func fateOf(tag string, before bool, err error) Fate {
	switch tag {
	case "COMMIT":
		return Committed
	case "ROLLBACK":
		return NotCommitted
	}
	switch {
	case !IsRefusal(err):
		return Unknown
	case before:
		return NotCommitted
	}
	return RefusedAtCommit
}

// IsRefusal says that err is the server's answer with severity ERROR, as the protocol spells it: servers with messages in another
// language translate the other spelling.
func IsRefusal(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	if pg.SeverityUnlocalized != "" {
		return pg.SeverityUnlocalized == "ERROR"
	}
	return pg.Severity == "ERROR"
}

// Rollback ends a transaction within five seconds; a connection on which that does not work is closed, so that its pool drops it.
func Rollback(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = conn.Close(ctx)
	}
}
