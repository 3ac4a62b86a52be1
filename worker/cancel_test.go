package worker

import (
	"context"
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

// TestCancel_W14: what cancelling an operation by its id does, whatever it is about to do.
func TestCancel_W14(t *testing.T) {
	t.Parallel()
	t.Run("never ran", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		mux := NewMux()
		mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
		wk, _ := w.start(mux, fast())
		c, err := wk.Runtime().Cancel(w.ctx, "op", "not wanted")
		if err != nil || c.Ended || c.Standing != "" || !c.Undo.Nothing {
			t.Errorf("cancelled: %+v, %v", c, err)
		}
		k := w.gw.add("flight.reserve", job("op", offer))
		w.wait(k, "error-thrown")
		if j := w.gw.job(k); j.code != CodeSagaGivenUp || w.rooms("op") != 0 || w.runs.Load() != 0 {
			t.Errorf("the job came later: %s, %d rooms", j.code, w.rooms("op"))
		}
	})
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		mux := NewMux()
		mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
		wk, _ := w.start(mux, fast())
		w.wait(w.gw.add("flight.reserve", job("op", offer)), "completed")
		c, err := wk.Runtime().Cancel(w.ctx, "op", "too late")
		if err != nil || !c.Ended || c.Outcome != outcome.Success || w.rooms("op") != 1 {
			t.Errorf("cancelled: %+v, %v; %d rooms", c, err, w.rooms("op"))
		}
		op, ok, err := wk.Runtime().Lookup(w.ctx, "op") // status by operation id
		if err != nil || !ok || op.State != dedup.Done || op.Class != outcome.Success {
			t.Errorf("status: %s %s, %v, %v", op.State, op.Class, ok, err)
		}
		if _, ok, err := wk.Runtime().Lookup(w.ctx, "nobody"); ok || err != nil {
			t.Errorf("status of nothing: %v, %v", ok, err)
		}
	})
	t.Run("transaction runs", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		mux := NewMux()
		mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
		rt := w.runtime(mux, fast())
		reached, release := stopAt(t, "worker.commit.before", "cancel-running")
		go rt.execute(w.ctx, w.jobTask(rt, "flight.reserve", job("cancel-running", offer)))
		reach(t, "commit", reached)
		short, stop := context.WithTimeout(w.ctx, time.Second)
		defer stop()
		if _, err := rt.Cancel(short, "cancel-running", "now"); outcome.ClassOf(err) != outcome.Retryable {
			t.Errorf("cancelled while it runs: %v, want that it is not certain yet", err)
		}
		release()
		c, err := rt.Cancel(w.ctx, "cancel-running", "now")
		if err != nil || !c.Ended || w.rooms("cancel-running") != 1 {
			t.Errorf("cancelled after it ran: %+v, %v", c, err)
		}
	})
	t.Run("call under way", func(t *testing.T) {
		t.Parallel()
		w, s := newWorld(t), newSupplier()
		s.hold = make(chan struct{})
		rt := w.runtime(s.mux(), fast())
		done := make(chan result, 1)
		a := w.jobTask(rt, "hotel.reserve", job("op", offer))
		go func() { done <- rt.execute(w.ctx, a) }()
		reach(t, "call", s.reached)
		c, err := rt.Cancel(w.ctx, "op", "now")
		if err != nil || c.Ended || c.Undo.Nothing || c.Undo.Outcome != outcome.Success {
			t.Errorf("cancelled: %+v, %v", c, err)
		}
		again, err := rt.Cancel(w.ctx, "op", "now")
		if err != nil || again.Undo.Outcome != outcome.Success {
			t.Errorf("cancelled twice: %+v, %v", again, err)
		}
		close(s.hold)
		if r := <-done; r.left.Code != CodeSagaGivenUp && r.kind != dropped {
			t.Errorf("the call's own run ended %+v", r)
		}
		if n := s.counts("op"); n.held != 1 || n.undone != 1 || w.rooms("op") != 0 {
			t.Errorf("supplier saw %+v, %d rooms", n, w.rooms("op"))
		}
	})
	t.Run("nothing compensates the call", func(t *testing.T) {
		t.Parallel()
		w, s := newWorld(t), newSupplier()
		s.hold = make(chan struct{})
		m := NewMux()
		m.Handle("hotel.reserve", External(s.remote(), NotCompensable("no refunds"), KeyValidFor(time.Hour)))
		rt := w.runtime(m, fast())
		done := make(chan result, 1)
		a := w.jobTask(rt, "hotel.reserve", job("op", offer))
		go func() { done <- rt.execute(w.ctx, a) }()
		reach(t, "call", s.reached)
		c, err := rt.Cancel(w.ctx, "op", "now")
		if err != nil || c.Ended || c.Standing == "" {
			t.Errorf("cancelled: %+v, %v", c, err)
		}
		close(s.hold)
		if r := <-done; r.left.Class != outcome.Success || w.rooms("op") != 1 {
			t.Errorf("it went on to %+v, %d rooms", r, w.rooms("op"))
		}
	})
}

// TestProgress: what a long call says of itself is what a look-up shows meanwhile.
func TestProgress(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	said, gate := make(chan struct{}), make(chan struct{})
	r := s.remote()
	r.Call = func(_ context.Context, c Call[reserve]) (reserved, error) {
		for range 1000 {
			c.Progress("asking")
		}
		c.Progress("2 of 3 segments")
		close(said)
		<-gate
		return reserved{ID: "R"}, nil
	}
	m := NewMux()
	m.Handle("hotel.reserve", External(r, s.undo(), KeyValidFor(time.Hour)))
	rt := w.runtime(m, fast())
	done := make(chan result, 1)
	a := w.jobTask(rt, "hotel.reserve", job("op", offer))
	go func() { done <- rt.execute(w.ctx, a) }()
	reach(t, "call", said)
	w.until("shown", func() bool {
		op, _, err := rt.Lookup(w.ctx, "op")
		return err == nil && op.State == dedup.Calling && op.Message == "2 of 3 segments"
	})
	close(gate)
	if res := <-done; res.left.Class != outcome.Success {
		t.Errorf("ended %+v", res)
	}
	if op := w.op("op"); op.Message != "" {
		t.Errorf("the end still says %q", op.Message)
	}
}

// TestWaitBy: an error brings the waits of its own kind; bounds that make no sense are FATAL.
func TestWaitBy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow := outcome.Backoff{Min: time.Minute, Max: time.Minute, Factor: 1, Floor: time.Minute}
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(_ context.Context, _ *Tx, j Job[reserve]) (reserved, error) {
		w.runs.Add(1)
		if j.OperationID == "bad" {
			return reserved{}, Retryable(errBoom, WaitBy(outcome.Backoff{}))
		}
		return reserved{}, Retryable(errBoom, WaitBy(slow))
	}, NoEffect()))
	waits := make(chan time.Duration, 10)
	w.gw.failed = func(d time.Duration) { waits <- d }
	w.start(mux, fast())
	w.gw.add("flight.reserve", job("op", offer))
	if d := <-waits; d != time.Minute {
		t.Errorf("waited %s, want the error's own minute", d)
	}
	w.wait(w.gw.add("flight.reserve", job("bad", offer)), "failed")
}

// TestClaimCheck_W12: a large payload stays in the database, the process carries its reference. It comes and goes with its
// transaction, and what was changed or is gone is FATAL.
func TestClaimCheck_W12(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cc, err := NewClaimChecks("", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewClaimChecks("", 0); err == nil {
		t.Error("no time to keep: want an error")
	}
	big := map[string]string{"body": string(make([]byte, 200<<10))}
	type kept struct {
		Report CheckRef `json:"report"`
	}
	var refuse, other bool
	mux := NewMux()
	mux.Handle("report.write", Transactional(func(ctx context.Context, tx *Tx, j Job[struct{}]) (kept, error) {
		v := big
		if other {
			v = map[string]string{"body": "another"}
		}
		ref, err := cc.Keep(ctx, tx, j.Meta, "report", v)
		if err == nil && refuse {
			err = BusinessError("NO", "no")
		}
		return kept{ref}, err
	}, NoEffect()))
	rt := w.runtime(mux, fast())
	refuse = true
	rt.execute(w.ctx, w.jobTask(rt, "report.write", job("refused", "")))
	refuse = false
	res := rt.execute(w.ctx, w.jobTask(rt, "report.write", job("op", "")))
	out, err := decode[kept](res.left.Variables)
	if err != nil || res.left.Class != outcome.Success || len(res.left.Variables) > 300 || out.Report.Bytes < 200<<10 {
		t.Fatalf("ended %s %s with %d bytes, %v", res.left.Class, res.left.Message, len(res.left.Variables), err)
	}
	var back map[string]string
	if err := cc.Fetch(w.ctx, w.pool, out.Report, &back); err != nil || back["body"] != big["body"] {
		t.Errorf("fetched %d bytes, %v", len(back["body"]), err)
	}
	fatal := func(what string, ref CheckRef) {
		t.Helper()
		if err := cc.Fetch(w.ctx, w.pool, ref, &back); outcome.ClassOf(err) != outcome.Fatal {
			t.Errorf("%s: %v, want FATAL", what, err)
		}
	}
	fatal("refused with its transaction", CheckRef{ID: "refused/report", Sum: out.Report.Sum})
	fatal("another checksum", CheckRef{ID: out.Report.ID, Sum: "00" + out.Report.Sum[2:]})
	fatal("no reference", CheckRef{})
	other = true
	if r := rt.execute(w.ctx, w.jobTask(rt, "report.write", job("op2", ""))); r.left.Class != outcome.Success {
		t.Errorf("another operation's payload: %+v", r)
	}
	if _, err := w.pool.Exec(w.ctx, `DELETE FROM journeyman.operation WHERE operation_id = 'op'`); err != nil {
		t.Fatal(err)
	}
	if r := rt.execute(w.ctx, w.jobTask(rt, "report.write", job("op", ""))); r.left.Class != outcome.Fatal {
		t.Errorf("another payload under a reference that is out: %+v", r)
	}
	w.advance(25 * time.Hour)
	if _, err := rt.Purge(w.ctx); err != nil {
		t.Fatal(err)
	}
	fatal("its time is over", out.Report)
}
