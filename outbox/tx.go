package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/events"
)

// Queries is what a [Tx] needs: a pgx.Tx, or a connection on which a transaction was begun.
type Queries interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Tx is the one transaction type that handlers of workers, consumers and sagas
// get: statements and Emit, nothing that ends it. Commit and rollback belong to
// the runtime, which writes the outcome, the events and the engine command in
// the same transaction.
//
// Emit only buffers (path rule 21). The runtime stages the buffer after the
// handler returned. A Tx must not be used by two goroutines at once, nor after
// the handler returned.
type Tx struct {
	tx      Queries
	buffer  []events.Message
	refused error
}

// NewTx wraps a transaction for one handler. The caller keeps the right to end it.
func NewTx(tx Queries) *Tx { return &Tx{tx: tx} }

// ErrEndsTransaction is wrapped by the refusal of a statement that would end
// the transaction or meddle with the runtime's savepoints. Handlers may use
// savepoints whose names do not begin with "journeyman".
var ErrEndsTransaction = errors.New("the runtime ends the transaction, handlers must not")

// Exec runs a statement as in pgx. A statement that would end the transaction is refused with [ErrEndsTransaction].
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.check(sql); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.tx.Exec(ctx, sql, args...)
}

// Query runs a query as in pgx, with the refusals of [Tx.Exec]. Close the rows before the next statement.
func (t *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.check(sql); err != nil {
		return nil, err
	}
	return t.tx.Query(ctx, sql, args...)
}

// QueryRow runs a query for one row as in pgx, with the refusals of [Tx.Exec] as the error of Scan.
func (t *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.check(sql); err != nil {
		return refusedRow{err}
	}
	return t.tx.QueryRow(ctx, sql, args...)
}

// SendBatch sends a batch as in pgx. When one statement is refused none is sent. Close the results before the next statement.
func (t *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		if err := t.check(q.SQL); err != nil {
			return refusedBatch{err}
		}
	}
	return t.tx.SendBatch(ctx, b)
}

// Emit buffers messages to be published after the commit, in this order. It does not check them: the runtime does, before the commit.
func (t *Tx) Emit(msgs ...events.Message) { t.buffer = append(t.buffer, msgs...) }

// Messages gives the buffered messages in order. The slice must not be changed.
func (t *Tx) Messages() []events.Message { return t.buffer }

// Truncate drops the buffered messages after the first n: what a handler
// emitted before it refused goes with its savepoint (path rule 3). n must not
// be above the number buffered.
func (t *Tx) Truncate(n int) { t.buffer = t.buffer[:n] }

// Refused gives the first refusal of a statement, nil when there was none,
// also when the handler ignored it. For the runtime: such a handler is FATAL.
func (t *Tx) Refused() error { return t.refused }

func (t *Tx) check(sql string) error {
	word, bad := endsTransaction(sql)
	if !bad {
		return nil
	}
	err := fmt.Errorf("statement %q: %w", word, ErrEndsTransaction)
	if t.refused == nil {
		t.refused = err
	}
	return err
}

type refusedRow struct{ err error }

func (r refusedRow) Scan(...any) error { return r.err }

type refusedBatch struct{ err error }

func (r refusedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, r.err }
func (r refusedBatch) Query() (pgx.Rows, error)         { return nil, r.err }
func (r refusedBatch) QueryRow() pgx.Row                { return refusedRow(r) }
func (r refusedBatch) Close() error                     { return r.err }
func (r refusedBatch) Tx() pgx.Tx                       { return nil }
