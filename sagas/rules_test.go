package sagas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

// Rule 10: a step between its claim and its commit holds the gate, and give-up waits for it: what the step did
// is in the ledger when the undo looks. A step that comes after the give-up does not get in.
func TestRule10_GiveUpWaitsForRunningStep(t *testing.T) {
	w := setup(t)
	id := w.begun("r10")
	inside, release := make(chan struct{}), make(chan struct{})
	stepDone := make(chan error, 1)
	go func() {
		stepDone <- w.run(id, step{element: "hotel", undo: "hotel.cancel", before: func() { close(inside); <-release }})
	}()
	<-inside
	type answer struct {
		out    giveUpOut
		ledger []StepRow // as the undo finds it
		err    error
	}
	gaveUp := make(chan answer, 1)
	go func() {
		out, err := w.giveUp(id, Failed)
		ledger, lerr := collectSteps(w.ctx, w.domain, w.s.sql.openSteps, id)
		gaveUp <- answer{out, ledger, errors.Join(err, lerr)}
	}()
	var got answer
	select {
	case got = <-gaveUp:
		t.Error("give-up did not wait for the step that is inside the gate")
		close(release)
	case <-w.waits(w.domain, "advisory"):
		close(release)
		got = <-gaveUp
	}
	if err := <-stepDone; err != nil {
		t.Fatal(err)
	}
	if got.err != nil || !got.out.GaveUp {
		t.Fatalf("give-up: got %+v, %v", got.out, got.err)
	}
	if len(got.ledger) != 1 || got.ledger[0].Name != "hotel" {
		t.Errorf("ledger after the give-up: got %v, want the hotel", got.ledger)
	}
	if err := w.run(id, step{element: "flight", undo: "flight.cancel"}); code(err) != CodeGivenUp {
		t.Errorf("step after the give-up: got %v, want %s", err, CodeGivenUp)
	}
}

// Rule 10: confirmation, deadline and cancel race; exactly one decision stands and the losers learn it.
func TestRule10_OneDecision(t *testing.T) {
	w := setup(t)
	wins := map[Decision]int{}
	for i := range 12 {
		id := w.begun(fmt.Sprintf("race-%d", i))
		var (
			mu      sync.Mutex
			wg      sync.WaitGroup
			winners []Decision
			seen    []Decision
		)
		start := make(chan struct{})
		wg.Go(func() {
			<-start
			err := w.run(id, step{element: "confirm", pivot: true, handler: func(tx *outbox.Tx) error { return w.s.Decide(w.ctx, tx, id, Completed) }})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				winners = append(winners, Completed)
			case code(err) != CodeGivenUp:
				t.Errorf("confirm: got %v, want %s", err, CodeGivenUp)
			}
		})
		for _, d := range []Decision{Expired, Cancelled} {
			wg.Go(func() {
				<-start
				out, err := w.giveUp(id, d)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("%s: %v", d, err)
				}
				seen = append(seen, out.SagaDecision)
				if out.GaveUp {
					winners = append(winners, d)
				}
			})
		}
		close(start)
		wg.Wait()
		stands := w.saga(id).Decision
		if len(winners) != 1 || winners[0] != stands {
			t.Fatalf("winners: got %v, saga says %s; want one", winners, stands)
		}
		if slices.ContainsFunc(seen, func(d Decision) bool { return d != stands }) {
			t.Errorf("give-ups were told %v, want %s", seen, stands)
		}
		wins[stands]++
	}
	t.Logf("decisions: %v", wins)
}

// Rule 13: the ledger undoes in reverse commit order. The step that began first and commits last is undone first.
func TestRule13_BeganFirstCommitsLastIsUndoneFirst(t *testing.T) {
	w := setup(t)
	id := w.begun("r13")
	inside, release := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	go func() {
		slow <- w.run(id, step{element: "flight", undo: "flight.cancel", before: func() { close(inside); <-release }})
	}()
	<-inside
	for _, e := range []string{"hotel", "transfer"} {
		if err := w.run(id, step{element: e, undo: e + ".cancel"}); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-slow; err != nil {
		t.Fatal(err)
	}
	if _, err := w.giveUp(id, Failed); err != nil {
		t.Fatal(err)
	}
	var undone []string
	if _, err := w.s.undoRest(w.ctx, id, w.undo(&undone), false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"flight", "transfer", "hotel"}, undone); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}

// Rule 13: undo-rest undoes what the drawn compensation did not reach, and an operation in flight at the other
// system first, although no ledger row shows it. What was undone by the model is not undone again.
func TestRule13_UndoRestIsComplete(t *testing.T) {
	w := setup(t)
	id := w.begun("rest")
	for _, e := range []string{"flight", "hotel", "transfer"} {
		if err := w.run(id, step{element: e, undo: e + ".cancel"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.run(id, step{element: "notify"}); err != nil { // nothing to undo
		t.Fatal(err)
	}
	w.inFlight(id, "insurance", "undoing") // refused after its effect, the undo behind the refusal has not ended
	w.inFlight(id, "payment", "calling")
	w.inFlight(id, "payment:undo", "calling")
	if _, err := w.giveUp(id, Cancelled); err != nil {
		t.Fatal(err)
	}
	var drawn, undone []string
	if _, err := w.undo(&drawn)(w.ctx, id+":transfer", "model"); err != nil {
		t.Fatal(err)
	}
	open, err := w.s.undoRest(w.ctx, id, w.undo(&undone), false)
	if err != nil || open != 0 {
		t.Fatalf("undo-rest: got %d open, %v", open, err)
	}
	if diff := cmp.Diff([]string{"payment", "insurance", "hotel", "flight"}, undone); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}

// Rule 15: one start message and one instance, however often the start is repeated. A second instance of the
// same operation ends at saga.begin, and its steps do not get in.
func TestRule15_StartOnce(t *testing.T) {
	w := setup(t)
	id := w.begun("r15")
	row := w.saga(id)
	a := attempt{ID: id, Tenant: row.Tenant, Type: row.Type, Key: row.Key, Number: 1, Plan: Plan{BusinessKey: row.BusinessKey}, origin: origin{}.withDefaults(id)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := w.s.start(w.ctx, a); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command WHERE name = 'saga.start.trip' AND correlation_key = $1 AND message_id = $1`, id); n != 1 {
		t.Errorf("start messages under the operation's id: got %d, want 1", n)
	}
	if err := w.bind(id, instance+1); code(err) != CodeNotMine {
		t.Errorf("second instance: got %v, want %s", err, CodeNotMine)
	}
	if err := w.bind(id, instance); err != nil {
		t.Errorf("the same instance again: %v", err)
	}
	if got := w.saga(id).ProcessInstanceKey; got != instance {
		t.Errorf("bound to %d, want %d", got, instance)
	}
}

// waits gives a channel that is closed when somebody waits for a lock of that kind.
func (w *world) waits(db *pgxpool.Pool, locktype string) <-chan struct{} {
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var n int
			err := db.QueryRow(w.ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = $1`, locktype).Scan(&n)
			if n > 0 || err != nil {
				return
			}
			<-tick.C
		}
	}()
	return seen
}

// inFlight makes the row of an external operation that was sent and not settled.
func (w *world) inFlight(sagaID, name, state string) {
	w.Helper()
	if _, err := w.domain.Exec(w.ctx, `INSERT INTO journeyman.operation (operation_id, saga_id, job_type, state, effect, created_at)
		VALUES ($1, $2, $3, $4, 'maybe', journeyman.now())`, sagaID+":"+name, sagaID, name+".do", state); err != nil {
		w.Fatal(err)
	}
}

// A failing undo is tried again and, on the model's last try, shown as stuck; the effects before it wait: order holds.
func TestUndoStuck(t *testing.T) {
	w := setup(t)
	id := w.begun("stuck")
	if err := w.run(id, step{element: "flight", undo: "flight.cancel", amount: `{"minor":80000,"currency":"EUR"}`}); err != nil {
		t.Fatal(err)
	}
	if err := w.run(id, step{element: "hotel", undo: "hotel.cancel", amount: `{"minor":45000,"currency":"EUR"}`}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.giveUp(id, Failed); err != nil {
		t.Fatal(err)
	}
	broken := func(context.Context, string, string) (worker.UndoResult, error) {
		return worker.UndoResult{}, errors.New("hotel is down")
	}
	for i, last := range []bool{false, true} {
		_, err := w.s.undoRest(w.ctx, id, broken, last)
		if outcome.ClassOf(err) != outcome.Retryable {
			t.Fatalf("failing undo: got %v, want RETRYABLE", err)
		}
		d, err := w.s.Show(w.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"open", map[bool]string{false: "running", true: "stuck"}[last]}
		if got := []string{d.Steps[0].UndoState, d.Steps[1].UndoState}; !slices.Equal(got, want) || d.Steps[1].UndoAttempts != i+1 || d.Steps[1].UndoError == "" {
			t.Errorf("ledger: got %v after %d attempts (%q), want %v", got, d.Steps[1].UndoAttempts, d.Steps[1].UndoError, want)
		}
	}
	stuck, err := w.s.Stuck(w.ctx, 10)
	if err != nil || len(stuck) != 1 || stuck[0].Why != "undo stuck" {
		t.Errorf("stuck: got %+v, %v", stuck, err)
	}
	risk, err := w.s.AtRisk(w.ctx, 10)
	if err != nil || len(risk.Totals) != 1 || risk.Totals[0] != (Money{45000, "EUR"}) {
		t.Errorf("at risk: got %+v, %v, want the hotel's 45000 EUR", risk, err)
	}
	if _, err := w.close(id, closeIn{}); outcome.ClassOf(err) != outcome.Fatal {
		t.Errorf("close over an open undo: got %v, want FATAL", err)
	}
	var undone []string
	if _, err := w.s.undoRest(w.ctx, id, w.undo(&undone), false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hotel", "flight"}, undone); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}

// The policy of a failing undo is declared by step: left to a person, the others are undone and the amount stands at risk.
func TestUndoFailurePolicy(t *testing.T) {
	w := setup(t)
	w.s.types["trip"].OnUndoFailure = map[string]UndoFailure{"hotel.do": UndoParks}
	id := w.begun("k")
	w.mustRun(id, step{element: "flight", undo: "flight.cancel"}, step{element: "hotel", undo: "hotel.cancel", amount: `{"minor":45000,"currency":"EUR"}`})
	if _, err := w.giveUp(id, Failed); err != nil {
		t.Fatal(err)
	}
	var undone []string
	works := w.undo(&undone)
	broken := func(ctx context.Context, op, reason string) (worker.UndoResult, error) {
		if op == id+":hotel" {
			return worker.UndoResult{}, errors.New("hotel is down")
		}
		return works(ctx, op, reason)
	}
	if _, err := w.s.undoRest(w.ctx, id, broken, false); outcome.ClassOf(err) != outcome.Retryable || undone != nil {
		t.Fatalf("the model may try again: got %v, undone %v", err, undone)
	}
	open, err := w.s.undoRest(w.ctx, id, broken, true)
	if err != nil || open != 1 || !slices.Equal(undone, []string{"flight"}) {
		t.Errorf("on its last try: got %d open, %v, undone %v; want the hotel left to a person and the flight undone", open, err, undone)
	}
	risk, err := w.s.AtRisk(w.ctx, 10)
	if err != nil || len(risk.Steps) != 1 || risk.Steps[0].UndoState != "parked" || risk.Totals[0] != (Money{45000, "EUR"}) {
		t.Errorf("at risk: got %+v, %v", risk, err)
	}
	w.mustClose(id, closeIn{Remediation: []byte(`{"note":"cancelled by phone"}`)})
	w.deliver(false)
}
