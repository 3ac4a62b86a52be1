package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

// The process dies between the 202's record and the start: the sweep of another one starts it, once.
func TestSweepStarts(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.refuse = errors.New("domain database is away")
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 0 {
		t.Fatalf("sagas: got %d, want none yet", n)
	}
	w.refuse = nil
	other := w.another(nil)
	if err := other.Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 0 {
		t.Error("the sweep did not leave the fast path its time")
	}
	w.advance(10 * time.Minute)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := other.Sweep(w.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command WHERE message_id = $1`, id); n != 1 {
		t.Errorf("start messages: got %d, want 1", n)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command WHERE variables ~ '"timeout":"PT(20M|11[0-9]{2}S)"'`); n != 1 {
		t.Error("a start ten minutes late does not leave the model twenty minutes")
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record WHERE start_state = 'pending'`); n != 0 {
		t.Errorf("records pending: got %d, want 0", n)
	}
}

// No instance ever takes the saga up: it is shown as stuck, expires at its deadline, and an instance that comes later ends.
func TestAbandoned(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	w.advance(2 * time.Minute)
	if stuck, err := w.s.Stuck(w.ctx, 10); err != nil || len(stuck) != 1 || stuck[0].Why != "not begun" {
		t.Errorf("stuck: got %+v, %v", stuck, err)
	}
	w.advance(time.Hour)
	if err := w.s.Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.deliver(false)
	if m := w.post(srv, "a", "k", goodTrip).json(t); m["state"] != "expired" {
		t.Errorf("final answer: got %v, want expired", m)
	}
	if err := w.bind(id, instance); code(err) != CodeNotMine {
		t.Errorf("late instance: got %v, want %s", err, CodeNotMine)
	}
}

// The instance is cancelled from outside: the runtime gives up, undoes from the ledger and closes (path rule 13).
func TestRule13_InstanceCancelledFromOutside(t *testing.T) {
	var log []string
	var w *world
	w = setupWith(t, func(c *Config) {
		c.Undo = func(ctx context.Context, id, reason string) (worker.UndoResult, error) {
			return w.undo(&log)(ctx, id, reason)
		}
		c.InstanceEnded = func(context.Context, string, int64) (bool, error) { return true, nil }
	})
	id := w.begun("k")
	w.mustRun(id, step{element: "flight", undo: "flight.cancel"}, step{element: "hotel", undo: "hotel.cancel"})
	w.advance(5 * time.Minute)
	if err := w.s.Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hotel", "flight"}, log); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
	if row := w.saga(id); row.State != "failed" || row.Reason != "instance-ended" {
		t.Errorf("saga: got %s because %s", row.State, row.Reason)
	}
}

// Without an instance, what is left to a person keeps the saga open until the person says that it is settled.
func TestRemediatedWithoutInstance(t *testing.T) {
	ended := false
	w := setupWith(t, func(c *Config) {
		c.Undo = func(context.Context, string, string) (worker.UndoResult, error) {
			return worker.UndoResult{Outcome: outcome.Success, Parked: true, Standing: "money"}, nil
		}
		c.InstanceEnded = func(context.Context, string, int64) (bool, error) { return ended, nil }
	})
	id := w.begun("k")
	w.mustRun(id, step{element: "payment", undo: "payment.void"})
	for range 2 {
		if err := w.s.EndWithoutInstance(w.ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.saga(id).State; got != "manual" {
		t.Fatalf("state: got %s, want manual", got)
	}
	if err := w.s.Remediated(w.ctx, id, nil); err == nil {
		t.Error("remediated although its instance runs")
	}
	ended = true
	if err := w.s.Remediated(w.ctx, id, json.RawMessage(`{"note":"voided"}`)); err != nil {
		t.Fatal(err)
	}
	if row := w.saga(id); row.State != "failed" || row.Reason != "instance-ended" {
		t.Errorf("got %s because %s", row.State, row.Reason)
	}
	if err := w.s.Remediated(w.ctx, id, nil); err == nil {
		t.Error("remediated twice")
	}
}

// An undo without an instance that ends FATAL has no incident: its effect is left to a person, and the others are undone.
func TestFatalUndoWithoutInstance(t *testing.T) {
	var undone []string
	w := setupWith(t, func(c *Config) {
		c.Undo = func(_ context.Context, id, _ string) (worker.UndoResult, error) {
			if strings.HasSuffix(id, ":hotel") {
				return worker.UndoResult{Outcome: outcome.Fatal}, outcome.Fatalf("undo", "the supplier refuses")
			}
			undone = append(undone, id)
			return worker.UndoResult{Outcome: outcome.Success}, nil
		}
		c.InstanceEnded = func(context.Context, string, int64) (bool, error) { return true, nil }
	})
	id := w.begun("k")
	w.mustRun(id, step{element: "flight", undo: "flight.cancel"}, step{element: "hotel", undo: "hotel.cancel"})
	w.advance(5 * time.Minute)
	if err := w.s.Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.saga(id).State; got != "manual" || len(undone) != 1 {
		t.Fatalf("state %s, undone %v; want manual and the flight", got, undone)
	}
	if err := w.s.Remediated(w.ctx, id, json.RawMessage(`{"note":"cancelled by phone"}`)); err != nil {
		t.Fatal(err)
	}
	if row := w.saga(id); row.State != "failed" {
		t.Errorf("closed as %s, want failed", row.State)
	}
}

// An instance that is cancelled from outside past the pivot is not rolled back: the saga waits for a person, who closes it.
func TestInstanceEndedPastThePivot(t *testing.T) {
	w := setupWith(t, func(c *Config) {
		c.Undo = func(context.Context, string, string) (worker.UndoResult, error) {
			return worker.UndoResult{}, errors.New("nothing may be undone")
		}
		c.InstanceEnded = func(context.Context, string, int64) (bool, error) { return true, nil }
	})
	id := w.begun("k")
	w.mustRun(id, step{element: "hotel", undo: "hotel.cancel"}, w.confirm(id))
	for range 2 {
		w.advance(5 * time.Minute)
		if err := w.s.Sweep(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.saga(id).State; got != "manual" {
		t.Fatalf("state: got %s, want manual", got)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.outbox WHERE type = $1`, EventParked); n != 1 {
		t.Errorf("events %s: got %d, want 1", EventParked, n)
	}
	if err := w.s.Remediated(w.ctx, id, json.RawMessage(`{"outcome":"done"}`)); err != nil {
		t.Fatal(err)
	}
	if row := w.saga(id); row.State != "completed" {
		t.Errorf("closed as %s, want completed", row.State)
	}
}

// A step that maps another business key would draw its commit order from another key's lock.
func TestGateRefusesAnotherBusinessKey(t *testing.T) {
	w := setup(t)
	id := w.begun("k")
	m := w.meta(id, "hotel", "hotel.do")
	m.BusinessKey = "agency:other"
	b := &pgx.Batch{}
	check := w.s.Hook().QueueEnter(b, m)
	if err := w.domain.SendBatch(w.ctx, b).Close(); err != nil {
		t.Fatal(err)
	}
	if err := check(); outcome.ClassOf(err) != outcome.Fatal {
		t.Errorf("got %v, want FATAL", err)
	}
}

// A completed process does not hold an effect that was committed: it is an orphan, found at the close (path rule 14).
func TestOrphanAtClose(t *testing.T) {
	var log []string
	var w *world
	w = setupWith(t, func(c *Config) {
		c.Undo = func(ctx context.Context, id, reason string) (worker.UndoResult, error) {
			return w.undo(&log)(ctx, id, reason)
		}
	})
	id := w.begun("k")
	w.mustRun(id, step{element: "hotel", undo: "hotel.cancel"}, step{element: "hotelAgain", undo: "hotel.cancel"}, w.confirm(id))
	held := id + ":hotelAgain"
	w.mustClose(id, closeIn{Held: []*string{nil, &held}})
	if err := w.s.Sweep(w.ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hotel"}, log); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}

// A person's act is audited in the transaction that closes the saga, once, and undone when it cannot be.
func TestRemediateIsAudited(t *testing.T) {
	w := setupWith(t, func(c *Config) {
		c.Undo = func(context.Context, string, string) (worker.UndoResult, error) {
			return worker.UndoResult{Outcome: outcome.Success, Parked: true, Standing: "money"}, nil
		}
		c.InstanceEnded = func(context.Context, string, int64) (bool, error) { return true, nil }
	})
	id := w.begun("k")
	w.mustRun(id, step{element: "payment", undo: "payment.void"})
	if err := w.s.EndWithoutInstance(w.ctx, id); err != nil {
		t.Fatal(err)
	}
	var acts []Remediated
	audit := func(_ context.Context, tx *outbox.Tx, before, after Remediated) error {
		acts = append(acts, before, after)
		_, err := tx.Exec(w.ctx, `SELECT 1`)
		return err
	}
	act := Remediation{Actor: "ann", Reason: "voided by phone", Report: json.RawMessage(`{"note":"voided"}`)}
	for name, r := range map[string]Remediation{"nobody": {Reason: "x"}, "no reason": {Actor: "ann"}, "no JSON": {Actor: "ann", Reason: "x", Report: json.RawMessage(`{`)}} {
		if err := w.s.Remediate(w.ctx, id, r, audit); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	if err := w.s.Remediate(w.ctx, id, act, func(context.Context, *outbox.Tx, Remediated, Remediated) error { return errors.New("no audit") }); err == nil || w.saga(id).ClosedAt != nil {
		t.Errorf("closed without an audit record: %v", err)
	}
	if err := w.s.Remediate(w.ctx, id, act, audit); err != nil {
		t.Fatal(err)
	}
	want := []Remediated{{SagaID: id, Tenant: "agency", State: "manual", Decision: Failed, Open: []string{"payment"}}, {SagaID: id, Tenant: "agency", State: "failed", Decision: Failed}}
	if diff := cmp.Diff(want, acts); diff != "" {
		t.Errorf("audited (-want +got):\n%s", diff)
	}
	if err := w.s.Remediate(w.ctx, id, act, audit); err == nil || len(acts) != 2 {
		t.Errorf("a second time: %v, %d acts", err, len(acts))
	}
}
