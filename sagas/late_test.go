package sagas

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/worker"
)

// A forward step is inside its transaction when its saga closes: a timer ended its element, say. The close waits for it, finds
// the effect that its process does not hold, and the sweep undoes that one, once; what the process holds stands.
func TestRule10_CloseWaitsForRunningStep(t *testing.T) {
	var log []string
	var w *world
	w = setupWith(t, func(c *Config) {
		c.Undo = func(ctx context.Context, id, reason string) (worker.UndoResult, error) {
			return w.undo(&log)(ctx, id, reason)
		}
	})
	id := w.begun("k")
	w.mustRun(id, step{element: "hotel", undo: "hotel.cancel"}, w.confirm(id))
	inside, release, stepped, closed := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		stepped <- w.run(id, step{element: "transfer", undo: "transfer.cancel", before: func() { close(inside); <-release }})
	}()
	<-inside
	held := id + ":hotel"
	go func() {
		_, err := w.close(id, closeIn{Held: []*string{&held}})
		closed <- err
	}()
	select {
	case err := <-closed:
		t.Errorf("the saga closed beside a step that was about to commit: %v", err)
		close(release)
	case <-w.waits(w.domain, "advisory"):
		close(release)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	}
	if err := <-stepped; err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.s.Sweep(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"transfer"}, log); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
	if err := w.run(id, step{element: "flight", undo: "flight.cancel"}); code(err) != CodeGivenUp {
		t.Errorf("a step after the close: got %v", err)
	}
}

// A call lands long after its saga was undone and closed: it is undone once, through the ledger, and the answer does not change.
func TestRule11_CallLandsAfterTheSagaIsClosed(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := id1("after-the-end")
	called, land := make(chan struct{}), make(chan struct{})
	st.sup.before = func(key string) {
		if key == id+":hotel" {
			close(called)
			<-land
		}
	}
	st.post(srv, "a", "after-the-end", trips("after"))
	<-called
	if r := st.do(srv, http.MethodPost, "/v1/operations/"+id+"/cancel", "a", ""); r.status != http.StatusAccepted {
		t.Fatalf("cancel: got %d %s", r.status, r.body)
	}
	st.eventually(func() bool { // the call's lease runs out: only then is it believed not to have happened
		st.advance(time.Minute)
		st.eng.AdvanceClock(time.Minute) //nolint:errcheck // the clock of a running engine moves
		return st.saga(id).ClosedAt != nil
	})
	st.deliver(false)
	before := st.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "")
	if before.status != http.StatusOK || st.sup.has(id+":hotel") {
		t.Fatalf("at the end: got %d %s, room held %v", before.status, before.body, st.sup.has(id+":hotel"))
	}
	close(land)
	st.settled(func() bool {
		return !st.sup.has(id+":hotel") && st.count(st.domain, `SELECT count(*) FROM journeyman.saga_step WHERE saga_id = $1 AND undo_state = 'done'`, id) == 1
	},
		"what landed late is not undone in the ledger")
	for range 3 { // nobody undoes it again
		if err := st.s.Sweep(st.ctx); err != nil {
			t.Fatal(err)
		}
		if err := st.rt.SweepLeases(st.ctx); err != nil {
			t.Fatal(err)
		}
	}
	st.deliver(true)
	after := st.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "")
	if n := st.sup.undone[id+":hotel"]; n != 1 || !slices.Equal(before.body, after.body) {
		t.Errorf("undone %d times, answer %s, was %s; want once and the same", n, after.body, before.body)
	}
}

// A call is lost, its repeat is refused, and the saga fails of that and is closed. Then the lost call lands: it is undone once, the ledger
// shows it, and the answer does not change.
func TestRule11_CallLandsAfterItsRepeatWasRefused(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := id1("refused")
	var calls atomic.Int32
	st.sup.refuses = func() error {
		if calls.Add(1) == 1 {
			return worker.Unknown(errors.New("time-out after send"))
		}
		return worker.BusinessError("SOLD_OUT", "no room left")
	}
	st.post(srv, "a", "refused", trips("refused"))
	st.eventually(func() bool { // until the job comes back
		st.advance(time.Second)
		st.eng.AdvanceClock(time.Second) //nolint:errcheck // the clock of a running engine moves
		return st.saga(id).ClosedAt != nil
	})
	row := st.saga(id)
	st.deliver(false)
	before := st.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "")
	if row.State != "failed" || row.Reason != "SOLD_OUT" || calls.Load() != 2 || st.sup.undone[id+":hotel"] != 0 {
		t.Fatalf("at the end: %s because %s after %d calls: %s", row.State, row.Reason, calls.Load(), before.body)
	}
	st.sup.reserve(id + ":hotel")
	st.advance(2 * time.Minute)
	st.settled(func() bool {
		return !st.sup.has(id+":hotel") && st.count(st.domain, `SELECT count(*) FROM journeyman.saga_step WHERE saga_id = $1 AND undo_state = 'done'`, id) == 1
	}, "what landed after the refusal is not undone in the ledger")
	for range 3 { // nobody undoes it again
		st.advance(24 * time.Hour)
		if err := errors.Join(st.s.Sweep(st.ctx), st.rt.SweepLeases(st.ctx), st.rt.AskAgain(st.ctx)); err != nil {
			t.Fatal(err)
		}
	}
	st.deliver(true)
	after := st.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "")
	if n := st.sup.undone[id+":hotel"]; n != 1 || st.sup.cancels != 1 || !slices.Equal(before.body, after.body) {
		t.Errorf("undone %d times by %d cancels, answer %s, was %s; want once and the same", n, st.sup.cancels, after.body, before.body)
	}
}
