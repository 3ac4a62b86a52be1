package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// Trial runs one job of one handler by hand, without engine and without the records of operations: no claim, no replay, no
// command. It has no [Mux], so that no [Middleware] runs. Package worker/workertest is made of it; use that in tests.
type Trial struct {
	rt   *Runtime
	task *task
}

// TrialEnd is what a piece of a handler came to, as a worker would record and answer it.
type TrialEnd struct {
	Outcome   *outcome.Error   // nil = SUCCESS
	Output    json.RawMessage  // variables that complete the job, or that are thrown with a BPMN error; nil = none
	Messages  []events.Message // to be staged
	Result    json.RawMessage  // SUCCESS: the document the handler gave, before it is made variables of
	Discarded bool             // what the handler wrote is rolled back
}

// NewTrial checks a handler as [New] does and its job as a worker would on activation: correlation variables, declared input.
// job.Variables is the job's variable document. The error of a bad job is an *outcome.Error with class FATAL.
func NewTrial(h Handler, job zeebe.Job, opts ...Option) (*Trial, error) {
	cfg := Config{}.withDefaults()
	mux := NewMux()
	mux.Handle(job.Type, h, opts...)
	if err := mux.check(cfg.HandlerTimeout); err != nil {
		return nil, err
	}
	s := mux.forward[job.Type]
	rt := &Runtime{mux: mux, plans: map[string]*plan{job.Type: planOf(s.in)}, paces: map[string]*pace{}, undo: mux.undoTypes(), cfg: cfg, cluster: zeebe.DefaultCluster}
	t := &Trial{rt: rt, task: &task{spec: s}}
	vars, err := parseVariables(job.Variables)
	if err != nil {
		return t, err
	}
	if t.task.meta, err = metaOf(job, rt.cluster, vars); err != nil {
		return t, err
	}
	t.task.meta.Attempt = 1
	return t, rt.takeInput(t.task, vars, []byte(job.Variables))
}

// Meta is what the handler sees beside its input.
func (t *Trial) Meta() Meta { return t.task.meta }

// External says whether the handler calls another system; Resolves, whether it can ask it.
func (t *Trial) External() bool { return t.task.spec.shape == shapeExternal }

// Resolves says whether the handler has a Resolve.
func (t *Trial) Resolves() bool { return t.task.spec.resolve != nil }

// UndoType is the job type of the declared compensation, "" when there is none.
func (t *Trial) UndoType() string {
	if u := t.task.spec.opt.undo; u != nil {
		return u.jobType
	}
	return ""
}

// Handle runs a transactional handler on conn, which must be in a transaction. What a worker would roll back is rolled back.
func (t *Trial) Handle(ctx context.Context, conn *pgx.Conn) (TrialEnd, error) {
	return t.inside(ctx, conn, t.task, func(ctx context.Context, tx *Tx) (json.RawMessage, error) {
		return t.task.spec.run(ctx, tx, t.task.meta, t.task.input)
	})
}

// Call runs the call of an external handler. again says that an earlier attempt may have acted.
func (t *Trial) Call(ctx context.Context, again bool, undo func(ctx context.Context, forwardOperationID, reason string) (UndoResult, error)) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, t.rt.cfg.CallTimeout)
	defer cancel()
	return guarded(func() *zerolog.Logger { return &t.rt.log }, func() (json.RawMessage, error) {
		return t.task.spec.call(ctx, remoteCall{meta: t.task.meta, input: t.task.input, again: again, undo: undo})
	})
}

// Resolve asks the other system. The handler must have a Resolve.
func (t *Trial) Resolve(ctx context.Context, undo func(ctx context.Context, forwardOperationID, reason string) (UndoResult, error)) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, t.rt.cfg.CallTimeout)
	defer cancel()
	return guarded(func() *zerolog.Logger { return &t.rt.log }, func() (json.RawMessage, error) {
		return t.task.spec.resolve(ctx, remoteCall{meta: t.task.meta, input: t.task.input, again: true, undo: undo})
	})
}

// Refuse judges an error of Call as a worker would: an ordinary error means that the result is unknown.
func (t *Trial) Refuse(err error) TrialEnd {
	var said *outcome.Error
	if !errors.As(err, &said) {
		said = outcome.NewUnknown(err)
	}
	if said.Class == outcome.Business {
		if bad := t.rt.checkBusiness(t.task, said, 0); bad != nil {
			said = bad
		}
	}
	return TrialEnd{Outcome: said, Output: outcomeOf(said).Variables, Messages: eventsOf(err)}
}

// Settle writes down the result of a call, on conn as [Trial.Handle] does.
func (t *Trial) Settle(ctx context.Context, conn *pgx.Conn, result json.RawMessage) (TrialEnd, error) {
	return t.inside(ctx, conn, t.task, func(ctx context.Context, tx *Tx) (json.RawMessage, error) {
		return t.task.spec.settle(ctx, tx, t.task.meta, t.task.input, result)
	})
}

// Undo runs the declared compensation for a forward operation that gave result: its call, if it has one, then what it does
// inside the transaction of conn.
func (t *Trial) Undo(ctx context.Context, conn *pgx.Conn, result json.RawMessage, reason string) (TrialEnd, error) {
	us := t.task.spec.opt.undo
	if us == nil {
		return TrialEnd{}, fmt.Errorf("job type %q: no compensation declared with CompensatedBy", t.task.meta.Type)
	}
	u := undoOf{operationID: t.task.meta.OperationID, in: t.task.input, res: result, reason: reason, meta: t.task.meta}
	u.meta.Type, u.meta.OperationID = us.jobType, undoID(t.task.meta.OperationID)
	if us.call != nil {
		cctx, cancel := context.WithTimeout(ctx, t.rt.cfg.CallTimeout)
		_, err := guarded(func() *zerolog.Logger { return &t.rt.log }, func() (struct{}, error) { return struct{}{}, us.call(cctx, u.meta.OperationID, u) })
		cancel()
		if err != nil {
			return t.Refuse(undoRefused(err)), nil
		}
	}
	undo := &task{spec: &spec{shape: shapeTx, opt: options{noEffect: true}}, meta: u.meta}
	return t.inside(ctx, conn, undo, func(ctx context.Context, tx *Tx) (json.RawMessage, error) {
		switch {
		case us.run != nil:
			return nil, undoRefused(us.run(ctx, tx, u))
		case us.settle != nil:
			return nil, us.settle(ctx, tx, u)
		}
		return nil, nil
	})
}

// inside runs f at a savepoint and keeps or discards what it wrote, as a worker's transaction would.
func (t *Trial) inside(ctx context.Context, conn *pgx.Conn, on *task, f func(context.Context, *Tx) (json.RawMessage, error)) (TrialEnd, error) {
	if conn.PgConn().TxStatus() != 'T' {
		return TrialEnd{}, errors.New("the connection is in no usable transaction; want one that was begun")
	}
	if _, err := conn.Exec(ctx, "SAVEPOINT "+savepoint); err != nil {
		return TrialEnd{}, err
	}
	tx := outbox.NewTx(conn)
	hctx, cancel := context.WithTimeout(ctx, t.rt.cfg.HandlerTimeout)
	doc, err := guarded(func() *zerolog.Logger { return &t.rt.log }, func() (json.RawMessage, error) { return f(hctx, tx) })
	end := classify(hctx, err)
	cancel()
	w, end := t.rt.judge(on, conn, tx, doc, end, 0)
	out := TrialEnd{Outcome: end, Output: w.out.Variables, Result: w.result}
	keep := end == nil || end.Keep && end.Class == outcome.Business
	if keep {
		out.Messages = tx.Messages()
	}
	if end != nil && end.Class == outcome.Business {
		out.Messages = append(out.Messages[:len(out.Messages):len(out.Messages)], eventsOf(err)...)
	}
	if s := conn.PgConn().TxStatus(); conn.IsClosed() || s != 'T' && s != 'E' {
		out.Discarded = true
		return out, nil
	}
	if !keep {
		out.Discarded = true
		if _, err := conn.Exec(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
			return out, err
		}
	}
	_, err = conn.Exec(ctx, "RELEASE SAVEPOINT "+savepoint)
	return out, err
}

// undoRefused turns a compensation's refusal into what a worker makes of it.
func undoRefused(err error) error {
	if e := outcome.Classify(err); e != nil && e.Class == outcome.Business {
		return outcome.Fatalf(outcome.ReasonUndo, "the compensation was refused with %s: %s", e.Code, e.Message)
	}
	return err
}
