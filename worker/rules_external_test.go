package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

func TestExternal_completes(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	w.start(s.mux(), fast())
	k := w.gw.add("hotel.reserve", job("op-1", offer))
	if j := w.wait(k, "completed"); j.answer != `{"id":"R-op-1"}` {
		t.Errorf("completed with %s", j.answer)
	}
	if c := s.counts("op-1"); c != (counts{calls: 1, settles: 1, held: 1}) {
		t.Errorf("supplier saw %+v", c)
	}
	if op := w.op("op-1"); op.State != dedup.Done || op.Effect != dedup.EffectKnown || string(op.CallResult) != `{"id":"R-op-1"}` || w.rooms("op-1") != 1 {
		t.Errorf("operation: %+v", op)
	}
	w.wait(w.gw.add("hotel.reserve", job("op-1", offer)), "completed") // a repeat
	if c := s.counts("op-1"); c.calls != 1 || c.settles != 1 {
		t.Errorf("after a repeat the supplier saw %+v", c)
	}
}

// TestRule11_undoFirst: the undo comes before the operation ran. It finds nothing, and the operation never has an effect.
func TestRule11_undoBeforeDo(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	rt := w.runtime(s.mux(), fast())
	u, err := rt.Undo(w.ctx, "rule11", "timer")
	if err != nil || !u.Nothing {
		t.Fatalf("undo: %+v, %v", u, err)
	}
	r := rt.execute(w.ctx, w.jobTask(rt, "hotel.reserve", job("rule11", offer)))
	if r.left.Code != CodeSagaGivenUp || s.counts("rule11").held != 0 {
		t.Errorf("operation after its undo: %+v, supplier saw %+v", r, s.counts("rule11"))
	}
}

// TestRule11_twinRuns: the undo comes while the operation's transaction is open. It waits, and undoes what was committed.
func TestRule11_undoWaitsForTheTwin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("room.hold", Transactional(w.insertRoom, CompensatedByTx("room.free", func(ctx context.Context, tx *Tx, u UndoOf[reserve, reserved]) error {
		if u.Res.ID != "R-rule11-tx" || u.In.Seats != 2 {
			return Fatal(errors.New("undo was given something else"))
		}
		_, err := tx.Exec(ctx, `DELETE FROM room WHERE operation_id = $1`, u.OperationID)
		return err
	})))
	rt := w.runtime(mux, fast())
	reached, release := stopAt(t, "worker.commit.before", "rule11-tx")
	done := make(chan result, 1)
	a := w.jobTask(rt, "room.hold", job("rule11-tx", offer))
	go func() { done <- rt.execute(w.ctx, a) }()
	reach(t, "commit", reached)
	type undone struct {
		u   UndoResult
		err error
	}
	undo := make(chan undone, 1)
	go func() { u, err := rt.Undo(w.ctx, "rule11-tx", "timer"); undo <- undone{u, err} }()
	select {
	case u := <-undo:
		t.Errorf("the undo did not wait: %+v, %v", u.u, u.err)
		release()
	case <-time.After(time.Second): // longer than the lock time-out: it tries again
		release()
		if u := <-undo; u.err != nil || u.u.Nothing || u.u.Outcome != outcome.Success {
			t.Errorf("undo: %+v, %v", u.u, u.err)
		}
	}
	if r := <-done; r.left.Class != outcome.Success {
		t.Errorf("operation: %+v", r)
	}
	if n := w.rooms("rule11-tx"); n != 0 {
		t.Errorf("%d rooms held for ever", n)
	}
}

// TestRule11_callLandsLate: the call is on its way while the operation is revoked, its lease runs out, the undo finds nothing —
// and then the call acts. It is undone all the same.
func TestRule11_callLandsAfterTheRevoke(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.late = make(chan struct{})
	cfg := fast()
	cfg.Lease, cfg.CallTimeout = 900*time.Millisecond, 600*time.Millisecond
	rt := w.runtime(s.mux(), cfg)
	done := make(chan result, 1)
	a := w.jobTask(rt, "hotel.reserve", job("rule11-late", offer))
	go func() { done <- rt.execute(w.ctx, a) }()
	reach(t, "call", s.reached)
	u, err := rt.Undo(w.ctx, "rule11-late", "timer")
	if err != nil || !u.Nothing {
		t.Errorf("undo before the call acted: %+v, %v", u, err)
	}
	close(s.late)
	if r := <-done; r.left.Code != CodeSagaGivenUp {
		t.Errorf("operation: %+v", r)
	}
	if c := s.counts("rule11-late"); c.held != 1 || c.undone != 1 {
		t.Errorf("supplier saw %+v, want the effect undone once", c)
	}
	if op := w.op("rule11-late"); op.UndoneAt.IsZero() || op.State != dedup.Revoked {
		t.Errorf("operation %s, undone at %v", op.State, op.UndoneAt)
	}
}

// TestExternal_landsAfterTheTakeover: the lease runs out while the call is on its way, the sweep asks and learns that nothing
// happened — and then the call lands. Its effect is not forgotten: the operation goes on from it, and an undo finds it.
func TestExternal_landsAfterTheTakeover(t *testing.T) {
	t.Parallel()
	for _, undo := range []bool{false, true} {
		w, s := newWorld(t), newSupplier()
		s.late = make(chan struct{})
		rt := w.runtime(s.mux(), fast())
		done := make(chan result, 1)
		a := w.jobTask(rt, "hotel.reserve", job("taken", offer))
		go func() { done <- rt.execute(w.ctx, a) }()
		reach(t, "call", s.reached)
		if err := postgres.AdvanceClock(w.ctx, w.pool, postgres.DefaultSchema, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := rt.SweepLeases(w.ctx); err != nil {
			t.Fatal(err)
		}
		if op := w.op("taken"); op.State != dedup.Claimed || op.Effect != dedup.EffectNone {
			t.Fatalf("after the takeover: %s, effect %s", op.State, op.Effect)
		}
		close(s.late)
		if r := <-done; r.kind != dropped {
			t.Errorf("call that landed late: %+v", r)
		}
		want, held := counts{calls: 1, asks: 1, settles: 1, held: 1}, 1
		if undo {
			u, err := rt.Undo(w.ctx, "taken", "timer")
			if err != nil || u.Nothing {
				t.Errorf("undo: %+v, %v", u, err)
			}
			want.settles, want.undone, held = 0, 1, 0
		}
		w.until("settled or undone", func() bool {
			op := w.op("taken")
			return rt.SweepLeases(w.ctx) == nil && (op.State == dedup.Done && op.Class == outcome.Success || !op.UndoneAt.IsZero())
		})
		if c := s.counts("taken"); c != want || w.rooms("taken") != held {
			t.Errorf("supplier saw %+v, want %+v; %d rooms, want %d", c, want, w.rooms("taken"), held)
		}
	}
}

// TestRule12: the model's compensation and the runtime undo the same operation; the second replays.
func TestRule12_oneUndoPerEffect(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	wk, _ := w.start(s.mux(), fast())
	w.wait(w.gw.add("hotel.reserve", job("rule12", offer)), "completed")
	vars := job("rule12:undo", `"forwardOperationId":"rule12"`)
	w.wait(w.gw.add("hotel.cancel", vars), "completed")
	for range 2 {
		if u, err := wk.Runtime().Undo(w.ctx, "rule12", "undo-rest"); err != nil || u.Outcome != outcome.Success || u.Nothing {
			t.Errorf("undo: %+v, %v", u, err)
		}
	}
	w.wait(w.gw.add("hotel.cancel", vars), "completed")
	if c := s.counts("rule12"); c.undone != 1 {
		t.Errorf("undone %d times, want once", c.undone)
	}
	if j := w.wait(w.gw.add("hotel.cancel", job("other", `"forwardOperationId":"rule12"`)), "failed"); !strings.Contains(j.message, `want "rule12:undo"`) {
		t.Errorf("another id for the undo: %q", j.message)
	}
}

// TestRule14: the answer arrived and its reply was lost; the repeat gets NOT_FOUND. That proves nothing: the booking goes on.
func TestRule14_notFoundProvesNothing(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	lost := false
	w.gw.after = func(call string, _ int64) error {
		if call == "complete" && !lost {
			lost = true
			return &zeebe.Error{Call: call, Code: zeebe.Unavailable, Detail: "reply lost"}
		}
		return nil
	}
	w.start(s.mux(), fast())
	w.wait(w.gw.add("hotel.reserve", job("rule14", offer)), "completed")
	w.until("the fate of the answer is known", func() bool { return w.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
	if c := s.counts("rule14"); c.undone != 0 {
		t.Error("the room of a booking that goes on was cancelled")
	}
	if op := w.op("rule14"); op.State != dedup.Done || op.Orphan != "" {
		t.Errorf("operation %s, orphan %q", op.State, op.Orphan)
	}
}

// TestOrphans: the element was terminated before the answer. Policy undo undoes, policy park parks, no proof does nothing.
func TestOrphans(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	mux := s.mux()
	mux.Handle("pay", Transactional(w.insertRoom, CompensatedByTx("pay.void", func(context.Context, *Tx, UndoOf[reserve, reserved]) error { return nil })))
	rt := w.runtime(mux, fast())
	unproved := map[int64]bool{}
	rt.cfg.Elements = ElementsFunc(func(ctx context.Context, key int64) (string, error) {
		if unproved[key] {
			return "", nil
		}
		return w.gw.ElementState(ctx, key)
	})
	for _, tt := range []struct {
		id, jobType, orphan, command string
		proved                       bool
	}{
		{"undo", "hotel.reserve", dedup.OrphanUndone, "", true},
		{"park", "pay", dedup.OrphanParked, "parked", true},
		{"unproved", "hotel.reserve", "", "gone", false},
	} {
		j := w.jobTask(rt, tt.jobType, job(tt.id, offer))
		unproved[j.meta.ElementInstanceKey] = !tt.proved
		w.gw.terminate(j.meta.Key)
		rt.execute(w.ctx, j)
		w.until("gone", func() bool {
			return w.count(`SELECT count(*) FROM journeyman.zeebe_command WHERE operation_id = $1 AND state = 'gone'`, tt.id) == 1
		})
		if err := rt.ResolveGone(w.ctx); err != nil {
			t.Fatal(err)
		}
		var state string
		_ = w.pool.QueryRow(w.ctx, `SELECT state FROM journeyman.zeebe_command WHERE operation_id = $1`, tt.id).Scan(&state)
		if op := w.op(tt.id); op.Orphan != tt.orphan || state != tt.command {
			t.Errorf("%s: orphan %q, command %q; want %q, %q", tt.id, op.Orphan, state, tt.orphan, tt.command)
		}
	}
	if c := s.counts("undo"); c.undone != 1 {
		t.Errorf("orphan undone %d times", c.undone)
	}
}

// TestRule16: the supplier acted, the process stopped for ever before it could settle, and a timer ended the element: nobody
// else comes back. The sweep asks, settles, and finds the orphan.
func TestRule16_expiredLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	dead := w.runtime(s.mux(), fast())
	j := w.jobTask(dead, "hotel.reserve", job("rule16", offer))
	reached, release := stopAt(t, "worker.call.after", "rule16")
	_, renew := stopAt(t, "worker.lease.renew", "rule16") // a dead process renews nothing
	gone := make(chan struct{})
	go func() { defer close(gone); _ = dead.execute(w.ctx, j) }()
	defer func() { renew(); release(); <-gone }()
	reach(t, "call", reached)
	w.gw.terminate(j.meta.Key)
	rt := w.runtime(s.mux(), fast())
	if err := rt.SweepLeases(w.ctx); err != nil || w.op("rule16").State != dedup.Calling {
		t.Fatalf("a live lease was taken: %v", err)
	}
	if err := postgres.AdvanceClock(w.ctx, w.pool, "journeyman", time.Minute); err != nil { // not waited for
		t.Fatal(err)
	}
	w.until("settled by the sweep and undone as an orphan", func() bool {
		return errors.Join(rt.SweepLeases(w.ctx), rt.ResolveGone(w.ctx)) == nil && w.op("rule16").Orphan == dedup.OrphanUndone
	})
	if c := s.counts("rule16"); c != (counts{calls: 1, asks: 1, settles: 1, held: 1, undone: 1}) {
		t.Errorf("supplier saw %+v", c)
	}
}

// TestRule17: Settle refuses after the effect. The undo runs under its id, and only then the refusal is thrown.
func TestRule17_refusalAfterTheEffectUndoesFirst(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.refuse = true
	thrown := false
	w.gw.before = func(call string, _ int64) error {
		if call == "throw" {
			thrown = true
			if c := s.counts("rule17"); c.undone != 1 {
				t.Errorf("thrown with the effect undone %d times, want once before", c.undone)
			}
		}
		return nil
	}
	w.start(s.mux(), fast())
	if j := w.wait(w.gw.add("hotel.reserve", job("rule17", offer)), "error-thrown"); j.code != "NOT_WANTED" || !thrown {
		t.Errorf("thrown %q", j.code)
	}
	if op := w.op("rule17"); op.State != dedup.Done || op.Code != "NOT_WANTED" || w.rooms("rule17") != 0 || w.op("rule17:undo").Class != outcome.Success {
		t.Errorf("operation %s %s, %d rooms, undo %s", op.State, op.Code, w.rooms("rule17"), w.op("rule17:undo").Class)
	}
}

// TestRule17_retried: a person resolves the refusal. Its effect was undone and the other system would answer the same key with
// what is cancelled: the refusal is told again, the job does not hang.
func TestRule17_refusalResolvedByAPersonIsToldAgain(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.refuse = true
	w.start(s.mux(), fast())
	k := w.gw.add("hotel.reserve", job("rule17c", offer))
	w.wait(k, "error-thrown")
	w.until("acknowledgement recorded", func() bool { return !w.op("rule17c").AnsweredAt.IsZero() })
	w.gw.resolve(k)
	w.until("activated again", func() bool { return w.gw.job(k).times == 2 })
	w.wait(k, "error-thrown")
	if c := s.counts("rule17c"); c.calls != 1 || c.undone != 1 {
		t.Errorf("supplier saw %+v", c)
	}
}

// TestRule17_killed stops the process after the refusal is stored: the sweep undoes and throws.
func TestRule17_refusalIsFinishedBySweep(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.refuse = true
	dead := w.runtime(s.mux(), fast())
	j := w.jobTask(dead, "hotel.reserve", job("rule17b", offer))
	reached, release := stopAt(t, "worker.claimed", "rule17b:undo")
	_, renew := stopAt(t, "worker.lease.renew", "rule17b")
	gone := make(chan struct{})
	go func() { defer close(gone); _ = dead.execute(w.ctx, j) }()
	defer func() { renew(); release(); <-gone }()
	reach(t, "undo claimed", reached)
	rt := w.runtime(s.mux(), fast())
	if err := postgres.AdvanceClock(w.ctx, w.pool, "journeyman", time.Minute); err != nil {
		t.Fatal(err)
	}
	w.until("undone and thrown", func() bool { return rt.SweepLeases(w.ctx) == nil && w.op("rule17b").State == dedup.Done })
	w.wait(j.meta.Key, "error-thrown")
	if c := s.counts("rule17b"); c.undone != 1 {
		t.Errorf("undone %d times", c.undone)
	}
}

// TestRule18: Settle fails once. The next attempt resumes with the stored result and does not call again.
func TestRule18_resultStoredBeforeSettle(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.fail = 1
	mux := NewMux()
	mux.Handle("hotel.reserve", External(Remote[reserve, reserved, reserved]{Call: s.call, Settle: s.settle}, s.undo(), KeyValidFor(time.Hour)))
	w.start(mux, fast())
	if j := w.wait(w.gw.add("hotel.reserve", job("rule18", offer)), "completed"); j.Retries != 2 {
		t.Errorf("retries %d, want 2: the failure of Settle is told", j.Retries)
	}
	if c := s.counts("rule18"); c.calls != 1 || c.settles != 2 {
		t.Errorf("supplier saw %+v, want one call and two settles", c)
	}
}

// TestRule18_key: past the time for which the other side honours the key, the call is not repeated.
func TestRule18_keyNoLongerValid(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.deaf = true
	mux := NewMux()
	mux.Handle("hotel.reserve", External(Remote[reserve, reserved, reserved]{Call: s.call, Settle: s.settle}, s.undo(), KeyValidFor(30*time.Minute), SLA(24*time.Hour)))
	rt := w.runtime(mux, fast())
	j := w.jobTask(rt, "hotel.reserve", job("rule18-key", offer))
	if r := rt.execute(w.ctx, j); r.kind != retry || r.err.Reason != outcome.ReasonUnknown {
		t.Fatalf("first attempt: %+v", r)
	}
	if r := rt.execute(w.ctx, w.taskOf(rt, j.meta.Key)); r.kind != retry || s.counts("rule18-key").calls != 2 {
		t.Fatalf("within its time the call is repeated with the same key: %+v, %+v", r, s.counts("rule18-key"))
	}
	if err := postgres.AdvanceClock(w.ctx, w.pool, "journeyman", time.Hour); err != nil {
		t.Fatal(err)
	}
	r := rt.execute(w.ctx, w.taskOf(rt, j.meta.Key))
	if r.left.Class != outcome.Fatal || r.left.Reason != outcome.ReasonKeyExpired || s.counts("rule18-key").calls != 2 {
		t.Errorf("past it: %+v, supplier saw %+v", r, s.counts("rule18-key"))
	}
}

// TestRule19: a time-out after the call acted. Retries stay, the next attempt asks first, and past the SLA the model is told.
func TestRule19_unknownAsksFirst(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.deaf = true
	w.start(s.mux(), fast())
	if j := w.wait(w.gw.add("hotel.reserve", job("rule19", offer)), "completed"); j.Retries != 3 {
		t.Errorf("retries %d, want 3 unchanged", j.Retries)
	}
	if c := s.counts("rule19"); c != (counts{calls: 1, asks: 1, settles: 1, held: 1}) {
		t.Errorf("supplier saw %+v", c)
	}
}

func TestRule19_pastTheSLA(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.deaf, s.mute = true, true
	rt := w.runtime(s.mux(SLA(10*time.Minute)), fast())
	j := w.jobTask(rt, "hotel.reserve", job("rule19-sla", offer))
	if r := rt.execute(w.ctx, j); r.kind != retry || r.err.Reason != outcome.ReasonUnknown {
		t.Fatalf("first attempt: %+v", r)
	}
	if err := postgres.AdvanceClock(w.ctx, w.pool, "journeyman", 11*time.Minute); err != nil {
		t.Fatal(err)
	}
	if r := rt.execute(w.ctx, w.taskOf(rt, j.meta.Key)); r.left.Code != CodeOutcomeUnknown || r.left.Reason != outcome.ReasonUnknown {
		t.Errorf("past the SLA: %+v", r)
	}
	if c := s.counts("rule19-sla"); c.undone != 0 || c.calls != 1 {
		t.Errorf("supplier saw %+v: nothing is compensated before, nothing called again", c)
	}
	s.mu.Lock()
	s.mute = false
	s.mu.Unlock()
	if u, err := rt.Undo(w.ctx, "rule19-sla", "follow-up"); err != nil || u.Nothing || s.counts("rule19-sla").undone != 1 {
		t.Errorf("undo of what turned out to be there: %+v, %v, %+v", u, err, s.counts("rule19-sla"))
	}
}

// TestRule20: a paused process wakes up after its lease was taken over. Its settle is refused.
func TestRule20_staleFenceCannotSettle(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	paused, other := w.runtime(s.mux(), fast()), w.runtime(s.mux(), fast())
	j := w.jobTask(paused, "hotel.reserve", job("rule20", offer))
	stored, wakeUp := stopAt(t, "worker.call.stored", "rule20")
	_, renew := stopAt(t, "worker.lease.renew", "rule20")
	first := make(chan result, 1)
	go func() { first <- paused.execute(w.ctx, j) }()
	defer renew()
	reach(t, "result stored", stored)
	if err := postgres.AdvanceClock(w.ctx, w.pool, "journeyman", time.Minute); err != nil {
		t.Fatal(err)
	}
	claimed, goOn := stopAt(t, "worker.claimed", "rule20")
	second := make(chan result, 1)
	twin := w.taskOf(other, j.meta.Key)
	go func() { second <- other.execute(w.ctx, twin) }()
	reach(t, "taken over", claimed)
	wakeUp()
	renew()
	if r := <-first; r.kind != dropped || s.counts("rule20").settles != 0 {
		t.Errorf("the paused run: %+v, %d settles; want it to be refused", r, s.counts("rule20").settles)
	}
	goOn()
	if r := <-second; r.left.Class != outcome.Success {
		t.Errorf("the other run: %+v", r)
	}
	if c := s.counts("rule20"); c.settles != 1 || c.calls != 1 || w.rooms("rule20") != 1 {
		t.Errorf("supplier saw %+v, %d rooms", c, w.rooms("rule20"))
	}
}

// TestLeaseRenewed lets a call take longer than its lease: renewals keep it, and nobody takes over.
func TestLeaseRenewed(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	s.hold = make(chan struct{})
	cfg := fast()
	cfg.Lease, cfg.CallTimeout = 900*time.Millisecond, 800*time.Millisecond
	renewals := make(chan struct{}, 100)
	remove := crash.Hook("worker.lease.renew", func(d string) {
		if d == "renewed" {
			renewals <- struct{}{}
		}
	})
	defer remove()
	w.start(s.mux(), cfg)
	k := w.gw.add("hotel.reserve", job("renewed", offer))
	reach(t, "call", s.reached)
	for range 5 {
		reach(t, "renewal", renewals)
	}
	close(s.hold)
	w.wait(k, "completed")
	if c := s.counts("renewed"); c.calls != 1 || c.asks != 0 {
		t.Errorf("supplier saw %+v", c)
	}
}

// TestRule28_external: an output over the budget is never refused after its effect; the engine gets a claim check.
func TestRule28_externalGetsAClaimCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	big := map[string]string{"blob": strings.Repeat("x", 200<<10)}
	mux.Handle("big", External(Remote[reserve, map[string]string, map[string]string]{
		Call: func(context.Context, Call[reserve]) (map[string]string, error) { return big, nil },
	}, NotCompensable("test"), KeyValidFor(time.Hour)))
	w.start(mux, fast())
	if j := w.wait(w.gw.add("big", job("rule28-ext", offer)), "completed"); j.answer != `{"claimCheck":"rule28-ext"}` {
		t.Errorf("completed with %.60s", j.answer)
	}
	if op := w.op("rule28-ext"); len(op.Payload) < 200<<10 {
		t.Errorf("payload of %d bytes", len(op.Payload))
	}
}
