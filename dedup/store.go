package dedup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/rule"
)

// Store is the tables of one schema. Safe for concurrent use. Its Queue methods only add statements to a batch that runs in
// the caller's transaction; what they read arrives when the batch is read.
type Store struct {
	q   queries
	rec recordQueries
}

// New makes a store for the tables in schema, "" = "journeyman".
func New(schema string) (*Store, error) {
	if schema == "" {
		schema = postgres.DefaultSchema
	}
	if err := postgres.CheckSchema(schema); err != nil {
		return nil, err
	}
	return &Store{q: render(schema), rec: renderRecord(schema)}, nil
}

// Claim is what a new operation is entered with.
type Claim struct {
	OperationID string
	Tenant      string
	BusinessKey string
	JobType     string
	SagaID      string
	Fingerprint Fingerprint
	State       State  // Claimed, or Calling for external work
	Owner       string // of the lease, "" = no lease
	Lease       time.Duration
	Input       json.RawMessage
	Meta        json.RawMessage
	JobContext
	UndoType string
	Policy   string
}

// Fenced is what a claim, a take-over or a re-run gave: the fence when it was won.
type Fenced struct {
	Won   bool
	Fence int64
}

func (f *Fenced) row(row pgx.Row) error {
	err := row.Scan(&f.Fence)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	f.Won = err == nil
	return err
}

// QueueClaim adds the claim: INSERT … ON CONFLICT DO NOTHING. It waits for a twin whose transaction is open.
func (s *Store) QueueClaim(b *pgx.Batch, c Claim) *Fenced {
	f := &Fenced{}
	if c.Fingerprint.Sum == nil {
		c.Fingerprint.Sum = []byte{}
	}
	effect := EffectNone
	if c.State == Calling {
		effect = EffectMaybe
	}
	b.Queue(s.q.claim, c.OperationID, c.Tenant, c.BusinessKey, c.JobType, c.SagaID, c.Fingerprint.Sum, list(c.Fingerprint.Fields), string(c.State), string(effect),
		c.Owner, c.Lease, doc(c.Input), doc(c.Meta), c.Cluster, c.JobKey, c.ProcessInstanceKey, c.ElementInstanceKey, c.ElementID, c.UndoType, c.Policy).QueryRow(f.row)
	return f
}

// QueueRead adds a read of the row; ok says whether there is one.
func (s *Store) QueueRead(b *pgx.Batch, operationID string, to *Operation, ok *bool) {
	queueOne(b.Queue(s.q.read, operationID), to, ok)
}

// QueueReadLocked is QueueRead with the row locked.
func (s *Store) QueueReadLocked(b *pgx.Batch, operationID string, to *Operation, ok *bool) {
	queueOne(b.Queue(s.q.readLocked, operationID), to, ok)
}

// QueueUsed adds a count of the bytes that our workers completed for a process instance.
func (s *Store) QueueUsed(b *pgx.Batch, cluster string, processInstanceKey int64, to *int64) {
	b.Queue(s.q.used, cluster, processInstanceKey).QueryRow(func(row pgx.Row) error { return row.Scan(to) })
}

// Take is a take-over of external work whose lease nobody holds.
type Take struct {
	OperationID string
	Fence       int64 // that was read
	JobContext
	Owner string
	Lease time.Duration
	Meta  json.RawMessage // nil = as it is
	Call  bool            // a claimed row becomes calling: the taker is going to call
}

// QueueTake adds the take-over: fence + 1, unless somebody was faster.
func (s *Store) QueueTake(b *pgx.Batch, t Take) *Fenced {
	f := &Fenced{}
	b.Queue(s.q.take, t.OperationID, t.Fence, t.Cluster, t.JobKey, t.ProcessInstanceKey, t.ElementInstanceKey, t.ElementID,
		t.Owner, t.Lease, doc(t.Meta), t.Call).QueryRow(f.row)
	return f
}

// QueueRerun adds the re-run after an operator's retry (path rule 5). Owner "" = transactional; job key 0 = an undo of the
// runtime, whose retry was that of the job that asked for it.
func (s *Store) QueueRerun(b *pgx.Batch, t Take) *Fenced {
	f := &Fenced{}
	b.Queue(s.q.rerun, t.OperationID, t.Fence, t.Cluster, t.JobKey, t.ProcessInstanceKey, t.ElementInstanceKey, t.ElementID,
		doc(t.Meta), t.Owner, t.Lease, t.Call).QueryRow(f.row)
	return f
}

// QueueLock adds a lock on the row that holds only while fence and state are as expected.
func (s *Store) QueueLock(b *pgx.Batch, operationID string, fence int64, state State) *Fenced {
	f := &Fenced{}
	b.Queue(s.q.lockCall, operationID, fence, string(state), rule.Off(20)).QueryRow(func(row pgx.Row) error {
		err := f.row(row)
		f.Fence = fence
		return err
	})
	return f
}

// QueueFinish adds the outcome. bytes counts against the budget of the process instance.
func (s *Store) QueueFinish(b *pgx.Batch, operationID string, fence int64, effect Effect, o Outcome, bytes int, r Retention) {
	b.Queue(s.q.finish, operationID, fence, string(effect), string(o.Class), o.Reason, o.Code, o.Message, doc(o.Variables), Hash(o), bytes, r.For, rule.Off(20), r.keep())
}

// QueueAskRefused adds, after [Store.QueueFinish] of a refusal, that another call of the operation may land yet: the other system is asked
// about it, again from now for the first time ([Store.AskDue]). Nothing happens to an operation that ended otherwise; nil = never.
func (s *Store) QueueAskRefused(b *pgx.Batch, operationID string, again *time.Duration) {
	b.Queue(s.q.askRefused, operationID, again)
}

// QueuePayload keeps an output that was too large to send.
func (s *Store) QueuePayload(b *pgx.Batch, operationID string, payload json.RawMessage) {
	b.Queue(s.q.payload, operationID, doc(payload))
}

// Hash is the hash of what a repeat must be answered: class, code and variables.
func Hash(o Outcome) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00", o.Class, o.Code)
	h.Write(o.Variables)
	return h.Sum(nil)
}

// QueueAnswered records that the engine acknowledged an answer that stops the job until a person resolves it (path rule 5).
func (s *Store) QueueAnswered(b *pgx.Batch, operationIDs []string, jobKeys []int64) {
	b.Queue(s.q.answered, operationIDs, jobKeys)
}

// DB runs statements: a pool, a connection or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func queueOne(q *pgx.QueuedQuery, to *Operation, ok *bool) {
	q.Query(func(rows pgx.Rows) error {
		got, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return err
		}
		if *ok = len(got) == 1; *ok {
			*to = got[0]
		}
		return nil
	})
}

func exec(ctx context.Context, db DB, what, sql string, args ...any) (bool, error) {
	tag, err := db.Exec(ctx, sql, args...)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	return tag.RowsAffected() > 0, nil
}

func doc(d json.RawMessage) any {
	if d == nil {
		return nil
	}
	return string(d)
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
