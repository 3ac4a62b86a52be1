package worker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// Runtime executes operations, undoes them by forward operation id, sweeps up expired leases and resolves answers that are
// gone, without a connection of its own. A [Worker] has one; a process that only undoes can make one with [NewRuntime]. Safe
// for concurrent use.
type Runtime struct {
	pool    *pgxpool.Pool
	control *pgxpool.Pool
	own     bool // control is ours to close
	mux     *Mux
	plans   map[string]*plan
	undo    map[string]bool // compensation job types
	cfg     Config
	cluster string
	store   *dedup.Store
	queue   *zeebe.Queue
	process dedup.Process
	paces   map[string]*pace // by job type of transactional handlers
	log     zerolog.Logger

	lockWait string // the bound of a wait for a twin, as PostgreSQL spells it

	send   func(ctx context.Context, q *zeebe.Queued)            // fast path after a commit; nil = the sweep does it
	direct func(ctx context.Context, c zeebe.Command) error      // tells what is recorded, without a row for it; nil = there is always one
	active func(ctx context.Context, jobKey int64) (bool, error) // is the job activated at the engine now (path rule 5)
}

// NewRuntime makes a runtime for the tables in cfg.Schema and the jobs of one cluster. Answers are queued; a [zeebe.Sender]
// somewhere sends them. All mistakes in mux and cfg are reported at once. Close it.
func NewRuntime(pool *pgxpool.Pool, mux *Mux, cfg Config, cluster string) (*Runtime, error) {
	cfg = cfg.withDefaults()
	var errs []error
	if pool == nil {
		errs = append(errs, errors.New("pool: nil"))
	}
	if mux == nil {
		mux = NewMux()
	}
	errs = append(errs, cfg.check(), mux.check(cfg.HandlerTimeout), cfg.checkRetention(mux))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cluster == "" {
		cluster = zeebe.DefaultCluster
	}
	mux = mux.wrapped()
	r := &Runtime{pool: pool, control: cfg.Control, mux: mux, plans: map[string]*plan{}, paces: map[string]*pace{}, undo: mux.undoTypes(), lockWait: fmt.Sprintf("%dms", cfg.LockTimeout.Milliseconds()), cfg: cfg, cluster: cluster, log: cfg.Log}
	var err error
	if r.store, err = dedup.New(cfg.Schema); err != nil {
		return nil, err
	}
	if r.queue, err = zeebe.NewQueue(cfg.Schema, cluster); err != nil {
		return nil, err
	}
	for t, s := range mux.forward {
		r.plans[t], r.paces[t] = planOf(s.in), &pace{skip: cfg.Concurrency}
	}
	host, _ := os.Hostname()
	r.process = dedup.Process{ID: uuid(), Name: fmt.Sprintf("%s@%s/%d", cfg.Name, host, os.Getpid())}
	if r.control == nil {
		pc := pool.Config()
		pc.MaxConns, pc.MinConns, pc.MinIdleConns = 4, 0, 0
		if r.control, err = pgxpool.NewWithConfig(context.Background(), pc); err != nil {
			return nil, fmt.Errorf("control pool: %w", err)
		}
		r.own = true
	}
	return r, nil
}

// Close releases the connections that the runtime opened itself.
func (r *Runtime) Close() {
	if r.own {
		r.control.Close()
	}
}

// Lookup gives an operation by its id: state, outcome, attempts (spec W14). false = there is none.
func (r *Runtime) Lookup(ctx context.Context, operationID string) (dedup.Operation, bool, error) {
	return r.store.Lookup(ctx, r.control, operationID)
}

// Queue is the command queue that the runtime's answers go through.
func (r *Runtime) Queue() *zeebe.Queue { return r.queue }

// task is one operation to execute: of a job, of a sweep, or of an undo.
type task struct {
	spec    *spec
	meta    Meta
	input   json.RawMessage // declared input, canonical
	raw     []byte          // the whole variable document, for stored fingerprints of other versions; nil = input
	fp      dedup.Fingerprint
	owner   string // of its lease; unique for this run
	job     bool   // there is a job to answer
	control bool   // passes no saga gate, leaves no ledger row
	entered bool   // its id was claimed in this transaction, and the end writes its row
	shared  bool   // its outcome is recorded with those of others (see group)
	leaves  bool   // its answer is left to whoever waits for the result
	undo    *undoWork
	reason  string // recorded with SUCCESS

	progress func(text string) // of a call under way; nil = nobody listens

	retries   int   // of an operator, so far
	commitErr error // the server said ERROR to a COMMIT: claiming again tells whether that is the truth (path rule 2)
	probe     bool  // rule 5 may apply: activated by the engine just now
	received  time.Time
}

// undoWork is what makes a task the undo of a forward operation.
type undoWork struct {
	forward string
	retries int // of an operator, of the operation that asks for the undo
	reason  string
	op      dedup.Operation // the forward operation as revoked
}

// result is what executing a task came to.
type result struct {
	kind   resultKind
	err    *outcome.Error // of retry; of answered when it was no success
	queued *zeebe.Queued  // the answer to send, nil when there is no job
	direct *zeebe.Command // the answer to tell without a row, instead of queued; only with unsent
	wait   time.Duration  // asked for by retry
	keep   bool           // retry: nothing was tried, the retries stay as they are
	left   dedup.Outcome  // the recorded outcome, when answered
	reason string
	unsent bool // answered, and whoever waits for the result sends the answer: slot and connection are free by then
}

type resultKind int

const (
	answered resultKind = iota // recorded; the answer is queued
	retry                      // rolled back: tell the engine, if the attempt is ours
	busy                       // somebody else has it now: wait and claim again
	dropped                    // not ours to answer
	again                      // the fate of a commit is unknown (internal)
	apart                      // nothing was done in the shared transaction: run it singly
	later                      // the shared transaction's budget was used up before its turn: with the next one
)

// notStarted is a failure of the database before anything was tried: an outage must not use up a job's retries.
func notStarted(err error) result {
	e := outcome.Classify(err)
	return result{kind: retry, err: e, keep: e.Reason == outcome.ReasonUnavailable || e.Reason == outcome.ReasonCanceled || e.Reason == outcome.ReasonDeadline}
}

func (r *Runtime) taskLog(t *task) *zerolog.Logger {
	l := r.log.With().Str("correlation_id", t.meta.CorrelationID).Str("trace_id", events.TraceID(t.meta.Traceparent)).
		Int64("process_instance_id", t.meta.ProcessInstanceKey).Str("business_key", t.meta.BusinessKey).
		Str("operation_id", t.meta.OperationID).Str("job_type", t.meta.Type).Int64("job_key", t.meta.Key).Logger()
	return &l
}

// logOf is taskLog, made when it is needed.
func (r *Runtime) logOf(t *task) func() *zerolog.Logger {
	return func() *zerolog.Logger { return r.taskLog(t) }
}

// execute runs a task to an end that is recorded, or to a reason why not.
func (r *Runtime) execute(ctx context.Context, t *task) result {
	if t.spec.shape == shapeExternal {
		return r.runExternal(ctx, t)
	}
	return r.runTx(ctx, t)
}

func (t *task) jobContext() dedup.JobContext {
	return dedup.JobContext{
		Cluster: t.meta.Cluster, JobKey: t.meta.Key, ProcessInstanceKey: t.meta.ProcessInstanceKey,
		ElementInstanceKey: t.meta.ElementInstanceKey, ElementID: t.meta.ElementID,
	}
}

func (t *task) inSaga() bool { return t.meta.SagaID != "" && !t.control && t.undo == nil }

func (t *task) origin() events.Origin {
	return events.Origin{
		OperationID: t.meta.OperationID, BusinessKey: t.meta.BusinessKey, CorrelationID: t.meta.CorrelationID,
		ProcessInstanceKey: t.meta.ProcessInstanceKey, Traceparent: t.meta.Traceparent,
		HTTPIdempotencyKey: t.meta.HTTPIdempotencyKey, Actor: t.meta.Actor,
	}
}

// command is the answer that an outcome means for the job.
func (t *task) command(o dedup.Outcome) zeebe.Command {
	c := zeebe.Command{
		Cluster: t.meta.Cluster, JobKey: t.meta.Key, ElementInstanceKey: t.meta.ElementInstanceKey, ProcessInstanceKey: t.meta.ProcessInstanceKey,
		OperationID: t.meta.OperationID, Variables: string(o.Variables),
	}
	switch o.Class {
	case outcome.Success:
		c.Kind = zeebe.KindComplete
	case outcome.Business:
		c.Kind, c.Code, c.Message = zeebe.KindThrow, o.Code, clip(o.Message)
	default:
		c.Kind, c.Message, c.Variables = zeebe.KindFail, clip(incidentText(o)), ""
	}
	return c
}

// incidentText is what an operator reads first.
func incidentText(o dedup.Outcome) string {
	s := string(o.Class)
	if o.Reason != "" {
		s += " (" + o.Reason + ")"
	}
	if o.Message != "" {
		s += ": " + o.Message
	}
	return s
}

// maxMessage bounds texts that cross the wire to the engine.
const maxMessage = 4000

func clip(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD") // PostgreSQL takes neither
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// uuid draws a random UUID, version 4.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// answerOnly queues an answer that is no operation's outcome: bad input, a conflict, a revoked operation. The stored row, if
// there is one, is not touched (path rule 4).
func (r *Runtime) answerOnly(ctx context.Context, t *task, o dedup.Outcome) result {
	if !t.job {
		return result{kind: answered, left: o, err: o2err(o)}
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	q := r.queue.Queue(b, t.command(o))
	r.store.QueueDropAttempts(b, t.meta.Cluster, t.meta.Key)
	b.Queue("COMMIT")
	if err := r.control.SendBatch(ctx, b).Close(); err != nil {
		return notStarted(err)
	}
	return result{kind: answered, queued: q, left: o, err: o2err(o), unsent: r.tell(ctx, t, q)}
}

// tell sends a task's answer now, unless it is left to whoever waits for the result.
func (r *Runtime) tell(ctx context.Context, t *task, q *zeebe.Queued) (unsent bool) {
	if t.leaves {
		return true
	}
	r.sendNow(ctx, q)
	return false
}

func (r *Runtime) sendNow(ctx context.Context, q *zeebe.Queued) {
	if q != nil && r.send != nil {
		r.send(ctx, q)
	}
}

// o2err turns a recorded outcome into an error, nil for SUCCESS.
func o2err(o dedup.Outcome) *outcome.Error {
	if o.Class == outcome.Success {
		return nil
	}
	return &outcome.Error{Class: o.Class, Reason: o.Reason, Code: o.Code, Message: o.Message}
}
