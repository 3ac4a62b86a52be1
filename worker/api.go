package worker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Tx is the transaction a handler works in. See [outbox.Tx].
type Tx = outbox.Tx

// Job is one activated job with its decoded input.
type Job[In any] struct {
	Meta
	In In
}

// Meta is what every job carries beside its input (spec W2).
type Meta struct {
	Key                int64
	Type               string
	Cluster            string // configured cluster name (path rule 9)
	ProcessID          string // bpmnProcessId
	ProcessInstanceKey int64
	ElementID          string
	ElementInstanceKey int64
	Retries            int32
	Deadline           time.Time         // on our monotonic clock
	Headers            map[string]string // zeebe:taskHeaders

	Tenant             string
	BusinessKey        string
	OperationID        string
	CorrelationID      string
	Traceparent        string
	SagaID             string // operation id of the saga attempt; "" outside a saga
	Actor              events.Actor
	HTTPIdempotencyKey string
	Attempt            int // 1 for the first run of this operation
}

// Handler is a job handler of either shape; make one with Transactional or External.
type Handler interface{ handler() *spec }

// Func is a transactional handler: everything it does happens inside tx. A nil error is SUCCESS.
type Func[In, Out any] func(ctx context.Context, tx *Tx, job Job[In]) (Out, error)

// Call is one call of an external handler outside any transaction.
type Call[In any] struct {
	Job[In]
	Key   string // idempotency key for the other system: the operation id
	Again bool   // an earlier attempt may have reached the other system
	// Undo runs the compensation of a forward operation, once per effect, and waits for its end (path rules 11, 12).
	Undo func(ctx context.Context, forwardOperationID, reason string) (UndoResult, error)
	// Progress says how far a long call is, for whoever looks the operation up meanwhile: [Runtime.Lookup] shows the text as the
	// operation's Message. It never blocks; of texts that come quickly only the last is kept. No payload, no secret.
	Progress func(text string)
}

// Remote is an external handler (spec W9, path rules 16 to 20).
type Remote[In, Res, Out any] struct {
	// Call acts at the other system. It must be idempotent by c.Key, or the handler says KeyIgnored.
	Call func(ctx context.Context, c Call[In]) (Res, error)
	// Resolve asks the other system whether an earlier Call took effect.
	// ErrNotHappened = it is certain that it did not and will not; any other error = still unknown.
	Resolve func(ctx context.Context, c Call[In]) (Res, error)
	// Settle writes the effect down, in one transaction with outcome, events and command. It may only succeed or fail (rule 17).
	Settle func(ctx context.Context, tx *Tx, job Job[In], res Res) (Out, error)
}

// UndoOf is what a compensation is given: the forward operation as it was recorded.
type UndoOf[In, Res any] struct {
	OperationID string // of the forward operation
	In          In     // its input
	Res         Res    // result of its Call (External) or its output variables (Transactional)
	Reason      string
	Meta        Meta // the undo's own meta: OperationID is "<forward>:undo"
}

// RemoteUndo compensates an external effect.
type RemoteUndo[In, Res any] struct {
	Call    func(ctx context.Context, key string, u UndoOf[In, Res]) error
	Resolve func(ctx context.Context, key string, u UndoOf[In, Res]) error // nil = undone; ErrNotHappened = not yet
	Settle  func(ctx context.Context, tx *Tx, u UndoOf[In, Res]) error     // may be nil
}

// UndoResult says how an undo ended.
type UndoResult struct {
	OperationID string // of the undo
	Outcome     outcome.Class
	Nothing     bool   // the forward operation had no effect; it is revoked now
	Parked      bool   // policy or declaration leaves it to a person
	Standing    string // why it was left, when Parked
}

// Saga is the seam between a job's transaction and a saga library (path rules 10 to 13).
// Only jobs with a SagaID come here.
type Saga interface {
	// QueueEnter adds to the first round trip: take the saga's lock shared, read its state. The returned
	// function is called after the batch ran and gives nil, or a BUSINESS outcome (SAGA_GIVEN_UP, SAGA_NOT_MINE).
	QueueEnter(b *pgx.Batch, m Meta) (check func() error)
	// QueueStep adds to the second round trip, after the key lock of the saga's business key is held: the ledger row of a committed effect.
	QueueStep(b *pgx.Batch, s Step)
	// QueueUndone marks the ledger row of the forward operation as undone, in the undo's transaction.
	QueueUndone(b *pgx.Batch, m Meta, forwardOperationID string)
	// Messages gives the saga-class events of this step (spec S6), staged with the handler's own.
	Messages(m Meta, s Step) []events.Message
}

// Step is what the ledger must know of a forward effect.
type Step struct {
	Meta
	Undo   string // job type of the compensation; "" = none
	Policy string // "undo", "park", "none:<reason>", "manual:<task>"
	Pivot  bool
	Input  json.RawMessage
	Result json.RawMessage
	Amount json.RawMessage // amount at risk where the handler says one
	Class  outcome.Class
	Code   string
}
