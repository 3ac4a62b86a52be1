package workertest

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

// Run runs a handler once, as a worker's first attempt would: a transactional
// one inside the transaction, an external one with Call outside and Settle
// inside it. A handler that [worker.New] would refuse ends the test.
func (b *Bench) Run(h worker.Handler, job Job) Result {
	b.t.Helper()
	return b.run(h, job, firstAttempt)
}

// RunBatch runs a handler of [worker.Batch] once for all jobs, and gives their results in order. When the call itself fails,
// everything is taken back and each job is run by itself, as a worker does. A bad job ends the test: a worker never gives one
// to the handler.
func (b *Bench) RunBatch(h worker.Handler, jobs ...Job) []Result {
	b.t.Helper()
	trials := make([]*worker.Trial, len(jobs))
	for i, job := range jobs {
		trial, err := b.trial(h, job)
		if err != nil {
			b.t.Fatalf("workertest: job %d: %v", i, err)
		}
		trials[i] = trial
	}
	ends, err := worker.TrialBatch(b.ctx, b.Tx.Conn(), trials...)
	if err != nil {
		b.t.Fatalf("workertest: batch of %d: %v", len(jobs), err)
	}
	results := make([]Result, len(ends))
	for i, end := range ends {
		results[i] = b.result(trials[i], end, nil, nil)
	}
	return results
}

// RunAfterLostAnswer is the second attempt of an external handler whose first
// Call acted and whose answer was lost: Call runs and its result is thrown
// away; then Resolve is asked, Call is repeated where Resolve says that it did
// not happen or there is no Resolve, and Settle writes the result down.
func (b *Bench) RunAfterLostAnswer(h worker.Handler, job Job) Result {
	b.t.Helper()
	return b.run(h, job, lostAnswer)
}

// RunAfterLostCall is the second attempt of an external handler whose first
// Call never reached the other system, which nobody here knows.
func (b *Bench) RunAfterLostCall(h worker.Handler, job Job) Result {
	b.t.Helper()
	return b.run(h, job, lostCall)
}

type mode int

const (
	firstAttempt mode = iota
	lostAnswer
	lostCall
)

func (b *Bench) run(h worker.Handler, job Job, m mode) Result {
	b.t.Helper()
	trial, err := b.trial(h, job)
	if err != nil {
		return b.refused(err)
	}
	if !trial.External() {
		if m != firstAttempt {
			b.t.Fatalf("workertest: job type %q: the handler is transactional, it has no answer to lose", job.Type)
		}
		end, err := trial.Handle(b.ctx, b.Tx.Conn())
		return b.result(trial, end, err, nil)
	}
	undo := job.Undo
	if undo == nil {
		undo = func(context.Context, string, string) (worker.UndoResult, error) {
			return worker.UndoResult{}, errors.New("Call.Undo was used, and the test's Job says nothing of it: set Undo")
		}
	}
	var doc json.RawMessage
	known := false
	if m == lostAnswer {
		_, _ = trial.Call(b.ctx, false, undo) // its answer is lost, whatever it was
	}
	if m != firstAttempt && trial.Resolves() {
		doc, err = trial.Resolve(b.ctx, undo)
		switch {
		case err == nil:
			known = true
		case !errors.Is(err, worker.ErrNotHappened):
			return b.result(trial, trial.Refuse(outcome.NewUnknown(err)), nil, nil)
		}
	}
	if !known {
		if doc, err = trial.Call(b.ctx, m != firstAttempt, undo); err != nil {
			return b.result(trial, trial.Refuse(err), nil, nil)
		}
	}
	end, err := trial.Settle(b.ctx, b.Tx.Conn(), doc)
	return b.result(trial, end, err, doc)
}

// Undo runs the compensation that the handler of a result declares, for what it
// did: its Call, if it has one, and what it does inside the transaction.
func (b *Bench) Undo(forward Result) Result {
	b.t.Helper()
	if forward.trial == nil {
		b.t.Fatalf("workertest: undo of a job that never ran: %v", forward)
	}
	end, err := forward.trial.Undo(b.ctx, b.Tx.Conn(), forward.effect, "compensation")
	return b.result(forward.trial, end, err, nil)
}

// refused gives the outcome of a bad job; a bad handler ends the test.
func (b *Bench) refused(err error) Result {
	b.t.Helper()
	var said *outcome.Error
	if !errors.As(err, &said) {
		b.t.Fatalf("workertest: the handler is refused: %v", err)
	}
	return Result{Class: said.Class, Reason: said.Reason, Message: said.Message, Discarded: true, t: b.t}
}

func (b *Bench) result(trial *worker.Trial, end worker.TrialEnd, err error, called json.RawMessage) Result {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("workertest: %v", err)
	}
	r := Result{Class: outcome.Success, Output: end.Output, Messages: end.Messages, Discarded: end.Discarded, UndoType: trial.UndoType(), t: b.t, trial: trial}
	r.effect = called
	if called == nil {
		r.effect = end.Result
	}
	if b.Stager != nil {
		if bad := b.Stager.Check(end.Messages...); bad != nil {
			end.Outcome = outcome.Fatalf("events", "events: %w", bad)
		}
	}
	if o := end.Outcome; o != nil {
		r.Class, r.Reason, r.Code, r.Message, r.After = o.Class, o.Reason, o.Code, o.Message, o.After
	}
	return r
}
