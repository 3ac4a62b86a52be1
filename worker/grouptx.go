package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// mate is a task that shares a transaction. Its result stays apart until the transaction ended well.
type mate struct {
	t   *task
	ctx context.Context // with the job's span
	res result

	won  bool // its claim
	gate func() error

	tx    *outbox.Tx
	doc   json.RawMessage
	err   error // as the handler gave it
	w     write
	batch *pgx.Batch // what it alone adds to the second round trip; nil = it ends without an outcome
	keys  []string
	msgs  *outbox.Staged // to be staged with those of others; nil = in batch, or none
}

var apartResult = result{kind: apart}

// group is one shared transaction.
type group struct {
	r    *Runtime
	conn *pgx.Conn
	gc   *groupConn
	all  []*mate
	at   string          // savepoint of the handler that runs; "" = the first
	used map[int64]int64 // bytes completed by process instance, those of earlier mates included
}

// errSplit says that a shared transaction cannot go on: its tasks run singly.
var errSplit = errors.New("split")

// runGroup runs tasks in one transaction, with a savepoint before each handler (path rule 26). Refusals stay; an SQL error
// rolls all back. What a mate's result says holds when this returns; apart = nothing was done, run it singly.
func (r *Runtime) runGroup(ctx context.Context, mates []*mate) {
	slices.SortFunc(mates, func(a, b *mate) int { return cmp.Compare(a.t.meta.OperationID, b.t.meta.OperationID) })
	for _, m := range mates {
		m.res = apartResult
		m.t.shared = true
		defer func() { m.t.shared = false }()
	}
	pc, err := r.pool.Acquire(ctx)
	if err != nil {
		return
	}
	defer pc.Release()
	g := &group{r: r, conn: pc.Conn(), gc: &groupConn{conn: pc.Conn()}, all: mates, used: map[int64]int64{}}
	clean := context.WithoutCancel(ctx)
	if err := g.enter(ctx); err != nil {
		rollback(clean, g.conn)
		g.split(nil, err)
		return
	}
	if batch := mates[0].t.spec.batch; batch != nil {
		err = g.runBatch(ctx, batch)
	} else {
		err = g.runEach()
	}
	if err == nil {
		err = g.commit(ctx)
	}
	if err != nil {
		rollback(clean, g.conn)
		for _, m := range mates {
			m.res = apartResult
		}
	}
}

// split notes that the mates run singly, for a while: the culprit's type where it is known, or all.
func (g *group) split(culprit *mate, err error) {
	if g.all[0].t.spec.batch != nil {
		g.r.log.Warn().Err(err).Str("job_type", g.all[0].t.meta.Type).Int("jobs", len(g.all)).Msg("batch rolled back, its jobs run singly")
		return
	}
	types := map[string]bool{}
	for _, m := range g.all {
		if t := m.t.meta.Type; !types[t] && (culprit == nil || culprit.t.meta.Type == t) {
			types[t] = true
			g.r.paces[t].split()
		}
	}
	g.r.log.Info().Err(err).Int("jobs", len(g.all)).Msg("shared transaction rolled back, its jobs run singly")
}

// groupLockWait bounds the wait for a twin's claim: the other mates wait too.
const groupLockWait = 100 * time.Millisecond

// enter is the first round trip: all claims in order of their ids, gates, and the first savepoint.
func (g *group) enter(ctx context.Context) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	// A statement for several rows that was planned while the table was small would read all of it for ever after: plans are kept. One
	// that cannot do without a sequential scan counts as so dear then that it would be compiled each time, for milliseconds: no JIT.
	b.Queue("SELECT set_config('lock_timeout', $1, true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)", fmt.Sprintf("%dms", min(groupLockWait, g.r.cfg.LockTimeout).Milliseconds()))
	ids, instances := make([]string, len(g.all)), make([]int64, len(g.all))
	for i, m := range g.all {
		ids[i], instances[i] = m.t.meta.OperationID, m.t.meta.ProcessInstanceKey
	}
	won := g.r.store.QueueEnterAll(b, ids)
	for _, m := range g.all {
		m.gate = g.r.queueGate(b, m.t)
	}
	g.r.store.QueueUsedBy(b, g.r.cluster, instances, g.used)
	b.Queue("SET LOCAL enable_seqscan TO DEFAULT")
	b.Queue("SET LOCAL jit TO DEFAULT")
	g.r.enterEnd(b)
	if err := g.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	for i, m := range g.all {
		m.won = won[i]
	}
	return nil
}

// admit says whether a mate's handler runs here; a refusal by the saga's gate is given as its end.
func (g *group) admit(m *mate) (end *outcome.Error, ok bool) {
	if !m.won {
		return nil, false // seen before, or twice in this group: that is a matter for a transaction of its own
	}
	if m.gate != nil {
		if end = outcome.Classify(m.gate()); notMine(end) {
			return nil, false
		}
	}
	return end, true
}

func (g *group) runEach() error {
	start := time.Now()
	for i, m := range g.all {
		p := g.r.paces[m.t.meta.Type]
		if i > 0 && (g.gc.touched || time.Since(start)+p.most() > g.r.cfg.groupBudget) {
			if m.won && !g.gc.touched {
				m.res.kind = later
			}
			continue
		}
		end, ok := g.admit(m)
		if !ok {
			continue
		}
		m.tx = outbox.NewTx(g.gc)
		if end == nil {
			crash.Point("worker.claimed", m.t.meta.OperationID)
			hctx, cancel := context.WithTimeout(m.ctx, g.r.limitOf(m.t))
			began := time.Now()
			m.doc, m.err = guarded(g.r.logOf(m.t), func() (json.RawMessage, error) { return m.t.spec.run(hctx, m.tx, m.t.meta, m.t.input) })
			p.record(time.Since(began))
			end = classify(hctx, m.err)
			cancel()
		}
		if g.gc.touched {
			p.settings() // they end with the transaction, and the next handler must not see them
		}
		if err := g.broken(m.err); err != nil {
			g.split(m, err)
			return errSplit
		}
		g.settle(m, end)
	}
	return nil
}

// broken gives the SQL error after which the transaction cannot be trusted any more.
func (g *group) broken(err error) error {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return err
	case g.conn.IsClosed() || g.conn.PgConn().IsBusy() || g.conn.PgConn().TxStatus() != 'T':
		return errors.Join(errors.New("the transaction is not usable after a handler"), err)
	}
	return nil
}

// settle decides what a mate adds to the second round trip, and what stands between its handler and the next one.
func (g *group) settle(m *mate, end *outcome.Error) {
	attached := eventsOf(m.err)
	w, end := g.r.judge(m.t, g.conn, m.tx, m.doc, end, g.used[m.t.meta.ProcessInstanceKey])
	w.effect, w.attached = dedup.EffectNone, attached
	if end != nil && end.Class == outcome.Retryable {
		m.res = result{kind: retry, err: end, wait: end.After}
		g.between(false)
		return
	}
	keep := end == nil || end.Keep
	if !keep {
		m.tx.Truncate(0)
	}
	if !g.write(m, w, end) { // the refusal of an event, decided before the commit
		keep = false
	}
	g.between(keep)
}

// write makes the mate's part of the second round trip; false = its messages were refused, and that is recorded instead.
func (g *group) write(m *mate, w write, end *outcome.Error) bool {
	w.msgs = m.tx.Messages()
	if end != nil && end.Class == outcome.Business {
		w.msgs = append(w.msgs[:len(w.msgs):len(w.msgs)], w.attached...)
	}
	b := &pgx.Batch{}
	var msgs *outbox.Staged
	var err error
	if together, ok := g.r.cfg.Stager.(stagesTogether); ok && len(w.msgs) > 0 && m.t.meta.SagaID == "" { // each step of a saga draws a number of its own
		if msgs, err = together.Prepare(m.t.origin(), w.msgs); err != nil {
			err = outcome.Fatalf("events", "events: %w", err)
		}
		w.msgs = nil
	}
	if err == nil {
		_, err = g.r.queueWrite(b, m.t, w)
	}
	if err != nil {
		bad := outcome.Classify(err)
		m.tx.Truncate(0)
		if end != nil && end.Class == outcome.Fatal {
			m.res = result{kind: retry, err: bad}
			return false
		}
		g.write(m, write{effect: w.effect, out: outcomeOf(bad)}, bad)
		return false
	}
	m.w, m.batch, m.msgs = w, b, msgs
	m.keys = g.keysOf(m, w.msgs)
	g.used[m.t.meta.ProcessInstanceKey] += int64(len(w.out.Variables))
	m.res = result{kind: answered, left: w.out, err: o2err(w.out), unsent: true}
	return true
}

// between puts the end of a handler's savepoint before the next statement. One that is kept is not released by itself: the next one
// nests in it, and the release of the first ends them all. It is half the statements.
func (g *group) between(keep bool) {
	switch {
	case len(g.gc.head) > 0: // it sent nothing
	case !keep:
		g.gc.head = append(g.gc.head, "ROLLBACK TO SAVEPOINT "+cmp.Or(g.at, savepoint))
	case !rule.Off(26):
		g.at = nextSavepoint
		g.gc.head = append(g.gc.head, "SAVEPOINT "+nextSavepoint)
	}
}

// nextSavepoint is the name of all savepoints of a group but the first; a name means the innermost.
const nextSavepoint = "journeyman_next"

// keysOf lists the keys that a mate's part will lock.
func (g *group) keysOf(m *mate, msgs []events.Message) []string {
	var keys []string
	for _, e := range msgs {
		keys = append(keys, cmp.Or(e.BusinessKey, m.t.meta.BusinessKey))
	}
	if m.t.inSaga() && g.r.cfg.Saga != nil {
		keys = append(keys, m.t.meta.BusinessKey)
	}
	return keys
}

// commit sends the second round trip of all: keys of all, sorted, before anything that waits for one of them.
func (g *group) commit(ctx context.Context) error {
	b, _ := g.gc.with()
	b.Queue("RELEASE SAVEPOINT " + savepoint)
	var keys []string
	var last *mate
	for _, m := range g.all {
		if m.batch != nil {
			last, keys = m, append(keys, m.keys...)
		}
	}
	if last == nil {
		rollback(context.WithoutCancel(ctx), g.conn)
		return nil
	}
	// As in enter; the floor of outbox_key is such a statement. The plans need not depend on how many there are.
	b.Queue("SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)")
	if err := g.stage(b, last, keys); err != nil {
		g.split(nil, err)
		return err
	}
	var ends []dedup.Record
	var answers []zeebe.Command
	var told []*mate
	for _, m := range g.all {
		if m.batch != nil {
			c, err := m.t.claim(dedup.Claimed, g.r)
			if err != nil {
				g.split(m, err)
				return errSplit
			}
			ends = append(ends, dedup.Record{Claim: c, Outcome: m.w.out, Retention: m.t.spec.opt.retention(g.r.cfg.Retain)})
			answers, told = append(answers, m.t.command(m.w.out)), append(told, m)
			b.QueuedQueries = append(b.QueuedQueries, m.batch.QueuedQueries...)
			if m != last {
				crash.Point("worker.commit.before", m.t.meta.OperationID)
			}
		}
	}
	g.r.store.QueueRecordAll(b, g.r.cluster, ends)
	for i, q := range g.r.queue.QueueAnswers(b, answers) {
		told[i].res.queued = q
	}
	f, err := commit(ctx, g.conn, b, last.t.meta.OperationID)
	switch f {
	case committed:
	case notCommitted:
		g.split(nil, err)
		return errors.Join(errSplit, err)
	default: // each claims again, which waits for the truth (path rule 2)
		_ = g.conn.Close(context.WithoutCancel(ctx))
		g.r.reachable(ctx)
		return errors.Join(errSplit, err)
	}
	if g.r.cfg.Stager != nil {
		g.r.cfg.Stager.Wake()
	}
	for _, m := range g.all {
		if m.batch == nil {
			continue
		}
		if m != last {
			crash.Point("worker.commit.after", m.t.meta.OperationID)
		}
		g.r.paces[m.t.meta.Type].done()
		g.r.logEnd(m.t, m.w.out)
	}
	return nil
}

// stagesTogether is a stager that takes the messages of several operations at once; [outbox.Stager] is one.
type stagesTogether interface {
	Prepare(o events.Origin, msgs []events.Message) (*outbox.Staged, error)
	QueueStaged(b *pgx.Batch, staged []*outbox.Staged, keys ...string) error
}

// stage locks the keys of all, sorted, and stages what can be staged together.
func (g *group) stage(b *pgx.Batch, last *mate, keys []string) error {
	var all []*outbox.Staged
	for _, m := range g.all {
		if m.batch != nil && m.msgs != nil {
			all = append(all, m.msgs)
		}
	}
	switch {
	case len(all) > 0:
		return g.r.cfg.Stager.(stagesTogether).QueueStaged(b, all, keys...) //nolint:forcetypeassert // it prepared them
	case len(keys) > 0 && g.r.cfg.Stager != nil:
		return g.r.cfg.Stager.Queue(b, last.t.origin(), nil, keys...)
	}
	return nil
}

// limitOf is how long one run of a task's transaction may take.
func (r *Runtime) limitOf(t *task) time.Duration {
	if t.spec.opt.timeout > 0 {
		return t.spec.opt.timeout
	}
	return r.cfg.HandlerTimeout
}
