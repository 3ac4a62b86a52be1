package zeebe

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres"
)

// Kind is what a command tells the engine.
type Kind string

// The kinds. The first three answer a job; there is at most one undelivered answer per job.
const (
	KindComplete     Kind = "complete"
	KindFail         Kind = "fail" // recorded failures only: FailJob with the given retries, normally 0
	KindThrow        Kind = "throw"
	KindPublish      Kind = "publish"
	KindCancel       Kind = "cancel"
	KindResolve      Kind = "resolve" // UpdateJobRetries when JobKey and Retries are set, then ResolveIncident
	KindSetVariables Kind = "set-variables"
)

func (k Kind) answer() bool { return k == KindComplete || k == KindFail || k == KindThrow }

// Command is one thing to tell the engine. Which fields count depends on the kind.
type Command struct {
	Cluster            string // "" = the queue's own (path rule 9)
	Kind               Kind
	JobKey             int64
	ElementInstanceKey int64 // of the job's task, to find out later what became of it; target of set-variables
	ProcessInstanceKey int64
	IncidentKey        int64
	OperationID        string // whose outcome this is; "" = none
	Retries            int32
	Code               string // BPMN error code
	Message            string // error or incident text
	Variables          string // JSON object, "" = none
	Name               string // message name
	CorrelationKey     string
	MessageID          string
	TTL                time.Duration
	Local              bool // set-variables only
}

// State is where an undelivered command stands.
type State string

// The states of a command row.
const (
	StatePending State = "pending" // to be sent, or sent without an answer so far
	StateGone    State = "gone"    // NOT_FOUND came back for an answer: that proves nothing (path rule 14)
	StateParked  State = "parked"  // a person must decide: the engine will never accept it, or an orphan is left as it is
)

// Queue writes commands into table zeebe_command. Safe for concurrent use.
type Queue struct {
	cluster string
	q       queries
}

// NewQueue makes a queue for the tables in schema ("" = "journeyman") and for commands of cluster ("" = "default").
func NewQueue(schema, cluster string) (*Queue, error) {
	if cluster == "" {
		cluster = DefaultCluster
	}
	if err := postgres.CheckSchema(postgres.SchemaOr(schema)); err != nil {
		return nil, err
	}
	return &Queue{cluster: cluster, q: render(postgres.SchemaOr(schema))}, nil
}

// Cluster is the cluster whose commands this queue writes by default and its sender sends.
func (q *Queue) Cluster() string { return q.cluster }

// Queued is a command in a batch. ID is known once the batch has been read.
type Queued struct {
	Command
	ID  int64
	Rev int32
}

// grace is how long a fresh row is left to the fast path before the sweep looks at it.
const grace = 2 * time.Second

// Queue adds the command's INSERT to a batch that runs inside the caller's transaction. An undelivered answer for the
// same job is replaced. Pass the result to [Sender.Send] after the commit; without that the sweep sends it in about two seconds.
func (q *Queue) Queue(b *pgx.Batch, c Command) *Queued {
	if c.Cluster == "" {
		c.Cluster = q.cluster
	}
	out := &Queued{Command: c}
	b.Queue(q.q.insert, c.Cluster, string(c.Kind), c.JobKey, c.ElementInstanceKey, c.ProcessInstanceKey, c.IncidentKey,
		c.OperationID, c.Retries, c.Code, c.Message, c.Name, c.CorrelationKey, c.MessageID, c.TTL.Milliseconds(), c.Local,
		c.Variables, grace).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&out.ID, &out.Rev); err != nil {
			return fmt.Errorf("queue %s command: %w", c.Kind, err)
		}
		return nil
	})
	return out
}

// QueueAnswers is [Queue.Queue] for answers (complete, fail, throw) to several jobs of one cluster, each job once, in one statement.
func (q *Queue) QueueAnswers(b *pgx.Batch, cs []Command) []*Queued {
	n := len(cs)
	out := make([]*Queued, n)
	text := func() []string { return make([]string, n) }
	clusters, kinds, ops, codes, messages, vars := text(), text(), text(), text(), text(), text()
	jobs, elements, instances, retries := make([]int64, n), make([]int64, n), make([]int64, n), make([]int32, n)
	at := make(map[int64]*Queued, n)
	for i, c := range cs {
		if c.Cluster == "" {
			c.Cluster = q.cluster
		}
		out[i] = &Queued{Command: c}
		at[c.JobKey] = out[i]
		clusters[i], kinds[i], ops[i], codes[i], messages[i], vars[i] = c.Cluster, string(c.Kind), c.OperationID, c.Code, c.Message, c.Variables
		jobs[i], elements[i], instances[i], retries[i] = c.JobKey, c.ElementInstanceKey, c.ProcessInstanceKey, c.Retries
	}
	b.Queue(q.q.insertAll, clusters, kinds, jobs, elements, instances, ops, retries, codes, messages, vars, grace).Query(func(rows pgx.Rows) error {
		var id, job int64
		var rev int32
		_, err := pgx.ForEachRow(rows, []any{&id, &rev, &job}, func() error {
			at[job].ID, at[job].Rev = id, rev
			return nil
		})
		if err != nil {
			return fmt.Errorf("queue %d answers: %w", n, err)
		}
		return nil
	})
	return out
}

// Querier runs statements: a pool, a connection or a transaction.
type Querier interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Counts says how many commands of this cluster stand in each state and how old the oldest pending one is.
type Counts struct {
	Pending, Gone, Parked int64
	OldestPending         time.Duration
}

// Counts counts this cluster's rows.
func (q *Queue) Counts(ctx context.Context, db Querier) (Counts, error) {
	rows, err := db.Query(ctx, q.q.counts, q.cluster)
	if err != nil {
		return Counts{}, fmt.Errorf("count commands: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (c Counts, err error) {
		var age float64
		err = row.Scan(&c.Pending, &c.Gone, &c.Parked, &age)
		c.OldestPending = time.Duration(age * float64(time.Second))
		return c, err
	})
	if err != nil {
		return Counts{}, fmt.Errorf("count commands: %w", err)
	}
	return c, nil
}

// Row is an undelivered command as operators see it.
type Row struct {
	Queued
	State     State
	Reason    string
	Attempts  int32
	LastCode  ErrorCode
	LastError string
	NextAt    time.Time
	CreatedAt time.Time
	ChangedAt time.Time
}

// List gives undelivered commands of this cluster, oldest first, at most limit. state "" = all,
// operationID "" = all, jobKey 0 = all.
func (q *Queue) List(ctx context.Context, db Querier, state State, operationID string, jobKey int64, limit int) ([]Row, error) {
	rows, err := db.Query(ctx, q.q.list, q.cluster, string(state), operationID, jobKey, limit)
	if err != nil {
		return nil, fmt.Errorf("list commands: %w", err)
	}
	out, err := pgx.CollectRows(rows, scanRow)
	if err != nil {
		return nil, fmt.Errorf("list commands: %w", err)
	}
	return out, nil
}

// QueueRelease adds the statement that makes a gone or parked command pending again, now.
func (q *Queue) QueueRelease(b *pgx.Batch, id int64) { b.Queue(q.q.release, id) }

// QueuePark adds the statement that parks a pending or gone command with a reason.
func (q *Queue) QueuePark(b *pgx.Batch, id int64, reason string) { b.Queue(q.q.park, id, reason) }

// QueueDrop adds the statement that removes a gone or parked command: its fate is known.
func (q *Queue) QueueDrop(b *pgx.Batch, id int64) { b.Queue(q.q.drop, id) }

// QueueClaimGone adds a statement that takes up to limit gone rows that are due, leaving each alone for the given time.
func (q *Queue) QueueClaimGone(b *pgx.Batch, limit int, again time.Duration, to *[]Row) {
	b.Queue(q.q.claimGone, q.cluster, limit, again).Query(func(rows pgx.Rows) error {
		got, err := pgx.CollectRows(rows, scanRow)
		*to = got
		return err
	})
}

func scanRow(row pgx.CollectableRow) (Row, error) {
	var r Row
	var kind, state, code string
	var ttl int64
	err := row.Scan(&r.ID, &r.Rev, &r.Cluster, &kind, &state, &r.Reason, &r.NextAt, &r.Attempts, &code, &r.LastError, &r.CreatedAt,
		&r.ChangedAt, &r.JobKey, &r.ElementInstanceKey, &r.ProcessInstanceKey, &r.IncidentKey, &r.OperationID, &r.Retries,
		&r.Code, &r.Message, &r.Name, &r.CorrelationKey, &r.MessageID, &ttl, &r.Local, &r.Variables)
	r.Kind, r.State, r.LastCode, r.TTL = Kind(kind), State(state), ErrorCode(code), time.Duration(ttl)*time.Millisecond
	return r, err
}
