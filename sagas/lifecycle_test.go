package sagas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

func (w *world) mustRun(id string, steps ...step) {
	w.Helper()
	for _, st := range steps {
		if err := w.run(id, st); err != nil {
			w.Fatalf("%s: %v", st.element, err)
		}
	}
}

// confirm is the pivot step: it takes the decision.
func (w *world) confirm(id string) step {
	return step{element: "confirm", pivot: true, handler: func(tx *outbox.Tx) error { return w.s.Decide(w.ctx, tx, id, Completed) }}
}

// undoAll runs the job saga.undo-rest: its call, then its settle.
func (w *world) undoAll(id string) (undone []string, open int) {
	w.Helper()
	open, err := w.s.undoRest(w.ctx, id, w.undo(&undone), false)
	if err != nil {
		w.Fatal(err)
	}
	m := w.meta(id, "undoRest", JobUndoRest)
	err = w.machinery(m, func(tx *outbox.Tx) error {
		_, err := w.s.settleUndoRest(w.ctx, tx, worker.Job[undoRestIn]{Meta: m}, undoRestOut{UndoOpen: open})
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return undone, open
}

func (w *world) mustClose(id string, in closeIn) closeOut {
	w.Helper()
	out, err := w.close(id, in)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func TestCompleted(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	if err := w.bind(id, instance); err != nil {
		t.Fatal(err)
	}
	w.mustRun(id, step{element: "hotel", undo: "hotel.cancel"})
	w.deliver(false)
	r, err := w.s.readOperation(w.ctx, id)
	if err != nil || r.currentStep() != "flight" || len(r.Completed) != 1 || string(r.Partial["hotel"]) != `{"status": "SUCCESS"}` || r.LastProgressEventID == "" {
		t.Fatalf("record after one step: got %+v, %v", r, err)
	}
	w.mustRun(id, step{element: "flight", undo: "flight.cancel"}, w.confirm(id))
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); r.status != http.StatusAccepted || strings.Contains(string(r.body), `"completed"`) {
		t.Errorf("before the close: got %d %s", r.status, r.body)
	}
	if out := w.mustClose(id, closeIn{}); out.SagaState != "completed" {
		t.Errorf("closed as %s", out.SagaState)
	}
	w.deliver(false)
	first := w.post(srv, "a", "k", goodTrip)
	if first.status != http.StatusOK || first.header.Get(HeaderReplayed) != "true" || first.header.Get("Retry-After") != "" {
		t.Fatalf("final answer: got %d %s", first.status, first.body)
	}
	m := first.json(t)
	if m["state"] != "completed" || m["outcome_class"] != "SUCCESS" || m["result"].(map[string]any)["booking"] != "B-1" || m["undone"] != nil {
		t.Errorf("final answer: got %s", first.body)
	}
	// Everything is delivered again; the answer stays, byte for byte, for its whole retention, and as fast as one likes.
	w.deliver(true)
	w.advance(29 * 24 * time.Hour)
	for range 5 {
		if again := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); again.status != http.StatusOK || !bytes.Equal(again.body, first.body) {
			t.Errorf("later answer: got %d %s, want %s", again.status, again.body, first.body)
		}
	}
	if r := w.post(srv, "a", "k", goodTrip, HeaderForceRetry, "true"); r.status != http.StatusConflict {
		t.Errorf("force retry of a completed operation: got %d, want 409", r.status)
	}
	if r := w.do(srv, http.MethodPost, "/v1/operations/"+id+"/cancel", "a", ""); r.status != http.StatusOK || !bytes.Equal(r.body, first.body) {
		t.Errorf("cancel after the end: got %d %s", r.status, r.body)
	}
	w.advance(2 * 24 * time.Hour)
	for _, r := range []reply{w.post(srv, "a", "k", goodTrip), w.post(srv, "a", "k", goodTrip, HeaderForceRetry, "true"), w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "")} {
		if r.status != http.StatusGone {
			t.Errorf("past retention: got %d %s, want 410", r.status, r.body)
		}
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 1 {
		t.Errorf("sagas: got %d, want 1", n)
	}
}

func TestFailedAndRetried(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	if err := w.bind(id, instance); err != nil {
		t.Fatal(err)
	}
	w.mustRun(id, step{element: "flight", undo: "flight.cancel"}, step{element: "hotel", class: outcome.Business, code: "SOLD_OUT"})
	out, err := w.giveUp(id, Failed)
	if err != nil || !out.GaveUp || out.SagaDecision != Failed {
		t.Fatalf("give-up: got %+v, %v", out, err)
	}
	w.deliver(false)
	// While the undo runs the operation is in progress, and a forced retry starts nothing (spec I4, I7).
	r := w.post(srv, "a", "k", goodTrip, HeaderForceRetry, "true")
	if r.status != http.StatusAccepted || r.json(t)["operation_id"] != id || r.json(t)["progress"].(map[string]any)["current_step"] != "compensation" {
		t.Errorf("during the undo: got %d %s", r.status, r.body)
	}
	if undone, open := w.undoAll(id); len(undone) != 1 || open != 0 {
		t.Fatalf("undone %v, open %d", undone, open)
	}
	w.mustClose(id, closeIn{})
	w.deliver(false)
	r = w.post(srv, "a", "k", goodTrip)
	m := r.json(t)
	if r.status != http.StatusOK || m["state"] != "failed" || m["outcome_class"] != "BUSINESS_ERROR" || m["reason"].(map[string]any)["code"] != "SOLD_OUT" {
		t.Errorf("final answer: got %d %s", r.status, r.body)
	}
	if diff := cmp.Diff([]any{"flight"}, m["undone"]); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
	if r := w.post(srv, "a", "k", strings.Replace(goodTrip, "EUR", "USD", 1), HeaderForceRetry, "true"); r.status != http.StatusUnprocessableEntity {
		t.Errorf("force retry with another payload: got %d, want 422", r.status)
	}
	// Sixteen forced retries at once start one new attempt.
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		ids = map[any]bool{}
	)
	for range 16 {
		wg.Go(func() {
			r := w.post(srv, "a", "k", goodTrip, HeaderForceRetry, "true")
			mu.Lock()
			defer mu.Unlock()
			if r.status == http.StatusAccepted {
				ids[r.json(t)["operation_id"]] = true
			} else if r.status != http.StatusTooManyRequests {
				t.Errorf("force retry: got %d %s", r.status, r.body)
			}
		})
	}
	wg.Wait()
	second := OperationID("agency", "trip", "k", 2)
	if len(ids) != 1 || !ids[second] {
		t.Errorf("attempts: got %v, want %s", ids, second)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 2 {
		t.Errorf("sagas: got %d, want 2", n)
	}
	old, err := w.s.readOperation(w.ctx, id)
	if err != nil || old.Next != second || old.State != "failed" {
		t.Errorf("archived attempt: got %+v, %v", old, err)
	}
	now, err := w.s.readOperation(w.ctx, second)
	if err != nil || now.Previous != id || now.InternalKey != "k@retry-1" || now.Attempt != 2 {
		t.Errorf("new attempt: got %+v, %v", now, err)
	}
	if g := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); !bytes.Equal(g.body, r.body) {
		t.Errorf("answer of the archived attempt changed: %s", g.body)
	}
}

func TestExpiredWithAPersonsHelp(t *testing.T) {
	w := setup(t)
	id := w.begun("k")
	w.mustRun(id, step{element: "flight", undo: "flight.cancel"}, step{element: "payment", undo: "payment.void", amount: `{"minor":125000,"currency":"EUR"}`})
	if _, err := w.giveUp(id, Expired); err != nil {
		t.Fatal(err)
	}
	var log []string
	partly := func(ctx context.Context, op, reason string) (worker.UndoResult, error) {
		if strings.HasSuffix(op, ":payment") {
			return worker.UndoResult{Outcome: outcome.Success, Parked: true, Standing: "money is left to a person"}, nil
		}
		return w.undo(&log)(ctx, op, reason)
	}
	open, err := w.s.undoRest(w.ctx, id, partly, false)
	if err != nil || open != 1 {
		t.Fatalf("undo-rest: got %d open, %v, want 1", open, err)
	}
	if diff := cmp.Diff([]string{"flight"}, log); diff != "" {
		t.Errorf("undone beside the parked one (-want +got):\n%s", diff)
	}
	if _, open := w.undoAll(id); open != 1 {
		t.Errorf("undo-rest again: got %d open, want 1", open)
	}
	if got := w.saga(id).State; got != "manual" {
		t.Errorf("state: got %s, want manual", got)
	}
	risk, err := w.s.AtRisk(w.ctx, 10)
	if err != nil || len(risk.Totals) != 1 || risk.Totals[0].Minor != 125000 {
		t.Errorf("at risk: got %+v, %v", risk, err)
	}
	if out := w.mustClose(id, closeIn{Remediation: json.RawMessage(`{"note":"voided by phone"}`)}); out.SagaState != "expired" {
		t.Errorf("closed as %s, want expired", out.SagaState)
	}
	d, err := w.s.Show(w.ctx, id)
	if err != nil || d.State != "expired" || d.Steps[1].UndoState != "remediated" || len(d.Timeline) < 5 {
		t.Errorf("show: got %+v, %v", d, err)
	}
	if risk, err := w.s.AtRisk(w.ctx, 10); err != nil || len(risk.Steps) != 0 {
		t.Errorf("at risk after the remediation: got %+v, %v", risk, err)
	}
}

// Past the pivot nothing is rolled back: a refused capture goes to a person, who decides how it ends (spec Z5).
func TestPastThePivot(t *testing.T) {
	w := setup(t)
	id := w.begun("k")
	w.mustRun(id, step{element: "hotel", undo: "hotel.cancel"}, w.confirm(id), step{element: "capture", class: outcome.Business, code: "CAPTURE_REFUSED"})
	if out, err := w.giveUp(id, Expired); err != nil || out.GaveUp || out.SagaDecision != Completed {
		t.Errorf("deadline past the pivot: got %+v, %v", out, err)
	}
	if _, err := w.s.undoRest(w.ctx, id, nil, false); outcome.ClassOf(err) != outcome.Fatal {
		t.Errorf("undo of a completed saga: got %v, want FATAL", err)
	}
	if out := w.mustClose(id, closeIn{Remediation: json.RawMessage(`{"outcome":"failed"}`)}); out.SagaState != "failed" {
		t.Errorf("closed as %s, want failed", out.SagaState)
	}
	if err := w.run(id, step{element: "late"}); code(err) != CodeGivenUp {
		t.Errorf("step after the close: got %v, want %s", err, CodeGivenUp)
	}
}

func TestCancel(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	for range 2 {
		if r := w.do(srv, http.MethodPost, "/v1/operations/"+id+"/cancel", "a", ""); r.status != http.StatusAccepted {
			t.Fatalf("cancel: got %d %s, want 202", r.status, r.body)
		}
	}
	if n := w.count(w.domain, `SELECT count(DISTINCT message_id) FROM journeyman.zeebe_command WHERE name = 'saga.cancel' AND correlation_key = $1`, id); n != 1 {
		t.Errorf("cancel messages: got %d ids, want 1", n)
	}
	if err := w.bind(id, instance); err != nil {
		t.Fatal(err)
	}
	if _, err := w.giveUp(id, Cancelled); err != nil {
		t.Fatal(err)
	}
	w.undoAll(id)
	w.mustClose(id, closeIn{})
	w.deliver(false)
	m := w.post(srv, "a", "k", goodTrip).json(t)
	if m["state"] != "failed" || m["reason"].(map[string]any)["code"] != "cancelled" {
		t.Errorf("final answer: got %v, want failed because cancelled (spec Z16)", m)
	}
}

// The domain refuses the start: the 202 has been given, so the operation ends failed, with nothing of OnStart left.
func TestRefusedStart(t *testing.T) {
	w := setup(t)
	w.refuse = worker.BusinessError("BOOKING_BUSY", "another saga works on this booking")
	srv := w.server(w.s)
	if r := w.post(srv, "a", "k", goodTrip); r.status != http.StatusAccepted {
		t.Fatalf("got %d, want 202", r.status)
	}
	w.deliver(false)
	m := w.post(srv, "a", "k", goodTrip).json(t)
	if m["state"] != "failed" || m["reason"].(map[string]any)["code"] != "BOOKING_BUSY" {
		t.Errorf("final answer: got %v", m)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command`); n != 0 {
		t.Errorf("start messages: got %d, want none", n)
	}
}

// An operation started inside another one's transaction commits or vanishes with it, and gets its record by event.
func TestStartTx(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	req := StartRequest{Tenant: "agency", Type: "trip", Key: "inner", Plan: Plan{BusinessKey: "agency:B-9", Variables: map[string]any{"booking": "B-9"}}}
	outer := w.begun("outer")
	var id string
	fail := errors.New("the handler failed after the start")
	start := func(end error) func(tx *outbox.Tx) error {
		return func(tx *outbox.Tx) (err error) {
			if id, err = w.s.StartTx(w.ctx, tx, req); err != nil {
				return err
			}
			return end
		}
	}
	if err := w.run(outer, step{element: "confirm", handler: start(fail)}); !errors.Is(err, fail) {
		t.Fatalf("got %v", err)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga WHERE key = 'inner'`); n != 0 {
		t.Fatalf("sagas after the rollback: got %d", n)
	}
	w.mustRun(outer, step{element: "confirm", handler: start(nil)}, step{element: "confirmAgain", handler: start(nil)})
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command WHERE message_id = $1`, id); n != 1 {
		t.Errorf("start messages: got %d, want 1", n)
	}
	w.deliver(false)
	w.deliver(true)
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); r.status != http.StatusAccepted {
		t.Errorf("status: got %d %s, want 202", r.status, r.body)
	}
	if err := w.bind(id, instance); err != nil {
		t.Fatal(err)
	}
	w.mustRun(id, w.confirm(id))
	w.mustClose(id, closeIn{})
	w.deliver(false)
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); r.status != http.StatusOK {
		t.Errorf("final answer: got %d %s, want 200", r.status, r.body)
	}
}

// An event that comes again after later ones moves nothing back.
func TestApplyNeverGoesBack(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	apply := func(typ string, seq int64, p Progress) {
		t.Helper()
		p.SagaID, p.SagaType, p.Tenant = id, "trip", "agency"
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		err = pgx.BeginFunc(w.ctx, w.records, func(tx pgx.Tx) error {
			return w.s.Apply(w.ctx, outbox.NewTx(tx), events.Received{Envelope: events.Envelope{
				MessageID: events.NewID(), MessageType: typ, MessageVersion: 1, Data: data, Metadata: events.Metadata{BusinessKey: "agency:B-1", Sequence: seq},
			}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(EventStepCompleted, 7, Progress{Step: "flight"})
	apply(EventStepCompleted, 5, Progress{Step: "hotel"})
	if r, err := w.s.readOperation(w.ctx, id); err != nil || len(r.Completed) != 1 || r.Sequence != 7 {
		t.Errorf("after an older event: got %v at %d, %v", r.Completed, r.Sequence, err)
	}
	at := time.Now()
	apply(EventFailed, 9, Progress{Final: []byte(`{"state":"failed"}`), FinishedAt: &at})
	apply(EventCompleted, 11, Progress{Final: []byte(`{"state":"completed"}`), FinishedAt: &at})
	if r, err := w.s.readOperation(w.ctx, id); err != nil || r.State != "failed" || string(r.Final) != `{"state":"failed"}` {
		t.Errorf("after a second end: got %s %s, %v", r.State, r.Final, err)
	}
}

// The record store may live in the domain database too, in its own schema (spec Z6).
func TestOneDatabase(t *testing.T) {
	w := setupWith(t, func(c *Config) { c.Records = nil })
	if err := MigrateRecords(w.ctx, w.domain, ""); err != nil {
		t.Fatal(err)
	}
	w.records = w.domain
	srv := w.server(w.s)
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	if err := w.bind(id, instance); err != nil {
		t.Fatal(err)
	}
	w.mustRun(id, w.confirm(id))
	w.mustClose(id, closeIn{})
	w.deliver(false)
	if r := w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", ""); r.status != http.StatusOK {
		t.Errorf("got %d %s, want 200", r.status, r.body)
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Schema: "same", RecordSchema: "same", SweepEvery: -1}, Type{Name: "Bad Name"}, Type{Name: "twice"}, Type{Name: "twice"})
	for _, want := range []string{"Domain", "Stager", "Commands", "Cluster", "RecordSchema", "SweepEvery", "Name", "Timeout", "Retention", "Parse", "declared twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mistakes do not name %s: %v", want, err)
		}
	}
}

// Every statement is valid against the migrated schema.
func TestStatements(t *testing.T) {
	w := setup(t)
	if w.stager.SeqSQL() == "" || postgres.DefaultSchema == "" {
		t.Fatal("no schema")
	}
	for db, all := range map[*pgxpool.Pool][]string{
		w.domain: {
			w.s.sql.lockShared, w.s.sql.lockExclusive, w.s.sql.readGate, w.s.sql.insertSaga, w.s.sql.readSaga, w.s.sql.begin, w.s.sql.decide, w.s.sql.setState,
			w.s.sql.closeSaga, w.s.sql.now, w.s.sql.insertStep, w.s.sql.stepUndone, w.s.sql.setUndo, w.s.sql.steps, w.s.sql.openSteps, w.s.sql.failure,
			w.s.sql.parkStep, w.s.sql.parked, w.s.sql.pivot, w.s.sql.remediate, w.s.sql.inFlight, w.s.sql.orphan, w.s.sql.orphans,
			w.s.sql.list, w.s.sql.stuck, w.s.sql.stuckUntold, w.s.sql.tellStuck, w.s.sql.risk, w.s.sql.abandoned, w.s.sql.overdue, w.s.sql.timeline,
		},
		w.records: {
			w.s.rec.claim, w.s.rec.read, w.s.rec.readByID, w.s.rec.retry, w.s.rec.due, w.s.rec.started, w.s.rec.startFailed,
			w.s.rec.insertKey, w.s.rec.insertRecord, w.s.rec.progress, w.s.rec.polls, w.s.rec.lead, w.s.rec.unlead, w.s.rec.now, w.s.rec.tombstone, w.s.rec.tombstoneByID,
			w.s.rec.archivable, w.s.rec.archived, w.s.rec.remove, w.s.rec.removeMoney, w.s.rec.partitionThere, w.s.rec.oldPartitions,
		},
	} {
		conn, err := db.Acquire(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range all {
			if _, err := conn.Conn().Prepare(w.ctx, "", sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
		conn.Release()
	}
}
