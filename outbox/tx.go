package outbox

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/events"
)

// Tx is the one transaction type that handlers of workers, consumers and sagas
// get: statements and Emit, nothing that ends it. Commit and rollback belong to
// the runtime, which writes the outcome, the events and the engine command in
// the same transaction.
//
// Emit only buffers (path rule 21). The runtime stages the buffer after the
// handler returned. A Tx must not be used by two goroutines at once, nor after
// the handler returned.
type Tx struct {
	tx     pgx.Tx // or anything with these methods
	buffer []events.Message
}

// Exec, Query, QueryRow and SendBatch work as in pgx. A statement that would end the transaction is refused.
func (t *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.tx.Exec(ctx, sql, args...)
}

// Emit buffers messages to be published after the commit, in this order.
func (t *Tx) Emit(msgs ...events.Message) { t.buffer = append(t.buffer, msgs...) }
