package workertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/engine/enginetest"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// What the tests of docs/changing-a-worker.md share: an old and a new build of a worker on one engine and one database.

const changing = `<?xml version="1.0"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<bpmn:process id="stay" isExecutable="true">
<bpmn:startEvent id="start"/><bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="reserve"/>
<bpmn:serviceTask id="reserve"><bpmn:extensionElements><zeebe:taskDefinition type="room.reserve" retries="3"/><zeebe:ioMapping>
<zeebe:input source="=&#34;op-&#34; + businessKey" target="operationId"/><zeebe:output source="=id" target="room"/></zeebe:ioMapping></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:boundaryEvent id="undoes" attachedToRef="reserve"><bpmn:compensateEventDefinition id="c1"/></bpmn:boundaryEvent>CATCH
<bpmn:serviceTask id="cancel" isForCompensation="true"><bpmn:extensionElements><zeebe:taskDefinition type="room.cancel" retries="3"/><zeebe:ioMapping>
<zeebe:input source="=&#34;op-&#34; + businessKey" target="forwardOperationId"/><zeebe:input source="=&#34;op-&#34; + businessKey + &#34;:undo&#34;" target="operationId"/></zeebe:ioMapping></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:association id="a1" associationDirection="One" sourceRef="undoes" targetRef="cancel"/>
<bpmn:sequenceFlow id="f2" sourceRef="reserve" targetRef="wait"/>
<bpmn:intermediateCatchEvent id="wait"><bpmn:messageEventDefinition id="m1" messageRef="Go"/></bpmn:intermediateCatchEvent>
<bpmn:sequenceFlow id="f3" sourceRef="wait" targetRef="undo"/>
<bpmn:intermediateThrowEvent id="undo"><bpmn:compensateEventDefinition id="c2" activityRef="reserve"/></bpmn:intermediateThrowEvent>
<bpmn:sequenceFlow id="f4" sourceRef="undo" targetRef="end"/><bpmn:endEvent id="end"/>
</bpmn:process><bpmn:message id="Go" name="go"><bpmn:extensionElements><zeebe:subscription correlationKey="=businessKey"/></bpmn:extensionElements></bpmn:message>
<bpmn:error id="Full" name="Full" errorCode="FULL"/></bpmn:definitions>`

const catchFull = `<bpmn:boundaryEvent id="full" attachedToRef="reserve"><bpmn:errorEventDefinition id="e1" errorRef="Full"/></bpmn:boundaryEvent>
<bpmn:sequenceFlow id="f5" sourceRef="full" targetRef="fullEnd"/><bpmn:endEvent id="fullEnd"/>`

func model(catch string) enginetest.Model {
	return enginetest.Text("stay.bpmn", modelText(catch))
}

func modelText(catch string) string { return strings.Replace(changing, "CATCH", catch, 1) }

// house is an engine and a database that builds of a worker share.
type house struct {
	*testing.T
	env    *enginetest.Env
	pool   *pgxpool.Pool
	conn   *zeebe.Conn
	builds atomic.Int64
	runs   atomic.Int64 // forward handlers that ran, of any build
	undos  chan string  // what compensations were given
	mute   atomic.Bool  // answers do not reach the engine
}

func newHouse(t *testing.T, models ...enginetest.Model) *house {
	t.Helper()
	h := &house{T: t, env: enginetest.Start(t, models...), pool: pgtest.Pool(t), undos: make(chan string, 4)}
	h.env.Wait = 20 * time.Second
	for _, err := range []error{dedup.Migrate(t.Context(), h.pool, ""), zeebe.Migrate(t.Context(), h.pool, "")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, answer := range []string{"CompleteJob", "ThrowError"} {
		h.env.Engine().Intercept(answer, func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
			if h.mute.Load() {
				return nil, errors.New("no way through")
			}
			return next(ctx)
		})
	}
	var err error
	if h.conn, err = zeebe.Dial(zeebe.Config{Address: h.env.Addr(), Plaintext: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.conn.Close() })
	return h
}

// build runs one build of the worker until stop or the end of the test.
func (h *house) build(fill func(mux *worker.Mux)) (stop func()) {
	h.Helper()
	mux := worker.NewMux()
	fill(mux)
	quick := outcome.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond, Factor: 2}
	name := fmt.Sprintf("build-%d", h.builds.Add(1))
	w, err := worker.New(h.conn, h.pool, mux, worker.Config{
		Name: name, MaxJobsActive: 4, Concurrency: 2, PollWait: time.Second, SweepEvery: 100 * time.Millisecond, DrainTimeout: 5 * time.Second, Backoff: quick, UnknownBackoff: quick, PollBackoff: quick,
	})
	if err != nil {
		h.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var stopped atomic.Bool
	stop = func() {
		if stopped.CompareAndSwap(false, true) {
			cancel()
			if err := <-done; err != nil {
				h.Errorf("worker: %v", err)
			}
		}
	}
	h.Cleanup(stop)
	h.until(name+" runs", func() bool {
		var n int
		err := h.pool.QueryRow(h.Context(), `SELECT count(*) FROM journeyman.worker_process WHERE name LIKE $1 || '@%'`, name).Scan(&n)
		return err == nil && n == 1
	})
	return stop
}

func (h *house) create(more map[string]any) *enginetest.Instance {
	h.Helper()
	return h.env.Create("stay", variables(more))
}

// variables are those of an instance, of business key B-1 unless more says another.
func variables(more map[string]any) map[string]any {
	vars := map[string]any{"businessKey": "B-1", "correlationId": "c", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "hotel": "H-1", "nights": 2}
	for name, v := range more {
		vars[name] = v
	}
	return vars
}

// served lets a build serve one instance, of business key B-1, and stops it.
func (h *house) served(fill func(mux *worker.Mux)) *enginetest.Instance {
	h.Helper()
	stop := h.build(fill)
	p := h.create(nil).WantActive("wait").WantNoIncidents()
	stop()
	return p
}

// waiting is an instance beside the one of served, whose job nobody has had yet.
func (h *house) waiting() *enginetest.Instance {
	h.Helper()
	return h.create(map[string]any{"businessKey": "B-2"})
}

// compensate lets the instance of served undo its reservation.
func (h *house) compensate() {
	h.Helper()
	h.env.Correlate(enginetest.Message{Name: "go", CorrelationKey: "B-1"})
}

// wantUndo wants the next compensation to tell this, and no other one to have run.
func (h *house) wantUndo(want string) {
	h.Helper()
	h.until("a compensation ran", func() bool { return len(h.undos) > 0 })
	if got := <-h.undos; got != want {
		h.Errorf("got %q, want %q", got, want)
	}
	h.wantNoUndo()
}

func (h *house) wantNoUndo() {
	h.Helper()
	if len(h.undos) != 0 {
		h.Errorf("compensation: %s, want none", <-h.undos)
	}
}

// leave lets a build run the handler, or the compensation, of the one job that waits and commit, without its answer ever reaching
// the engine, and stops it. The job comes back to whoever runs then.
func (h *house) leave(fill func(mux *worker.Mux)) {
	h.Helper()
	done := func() (n int) { // an undo revokes what it undoes
		if err := h.pool.QueryRow(h.Context(), `SELECT count(*) FROM journeyman.operation WHERE state IN ('done', 'revoked')`).Scan(&n); err != nil {
			h.Fatal(err)
		}
		return n
	}
	before := done()
	h.mute.Store(true)
	stop := h.build(fill)
	h.until("the old build committed", func() bool { return done() == before+1 })
	stop()
	if _, err := h.pool.Exec(h.Context(), `DELETE FROM journeyman.zeebe_command`); err != nil { // or the sweep would answer
		h.Fatal(err)
	}
	h.mute.Store(false)
	h.env.AdvanceClock(10 * time.Minute) // past the job's time-out
}

func (h *house) until(what string, ok func() bool) {
	h.Helper()
	end := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(end) {
			h.Fatalf("not in time: %s", what)
		}
		<-tick.C
	}
}

func (h *house) wantRuns(n int64) {
	h.Helper()
	if got := h.runs.Load(); got != n {
		h.Errorf("forward handlers ran %d times, want %d", got, n)
	}
}

// forward registers a forward handler with input In, named by its build; its compensation tells what it was given.
func forward[In any](h *house, build, jobType, undoType string) func(mux *worker.Mux) {
	return func(mux *worker.Mux) {
		mux.Handle(jobType, worker.Transactional(func(context.Context, *worker.Tx, worker.Job[In]) (held, error) {
			h.runs.Add(1)
			return held{ID: build}, nil
		}, worker.CompensatedByTx(undoType, func(_ context.Context, _ *worker.Tx, u worker.UndoOf[In, held]) error {
			h.undos <- fmt.Sprintf("%s undoes %q %+v", build, u.Res.ID, u.In)
			return nil
		})))
	}
}

// room is forward under the job types of the model.
func room[In any](h *house, build string) func(mux *worker.Mux) {
	return forward[In](h, build, "room.reserve", "room.cancel")
}

// outside registers an external handler beside forward, compensated by a call.
func outside(h *house, build string) func(mux *worker.Mux) {
	return func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.External(worker.Remote[first, held, held]{
			Call:   func(context.Context, worker.Call[first]) (held, error) { h.runs.Add(1); return held{ID: build}, nil },
			Settle: func(_ context.Context, _ *worker.Tx, _ worker.Job[first], res held) (held, error) { return res, nil },
		}, worker.KeyValidFor(time.Hour), worker.CompensatedBy("room.cancel", worker.RemoteUndo[first, held]{
			Call: func(_ context.Context, _ string, u worker.UndoOf[first, held]) error {
				h.undos <- fmt.Sprintf("%s undoes %q %+v", build, u.Res.ID, u.In)
				return nil
			},
		})))
	}
}

// gives registers a handler with these outputs.
func gives(out map[string]string) func(mux *worker.Mux) {
	return func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[first]) (map[string]string, error) {
			return out, nil
		}, worker.NoEffect()))
	}
}

// refuses registers a handler that throws FULL and declares these codes.
func refuses(codes ...string) func(mux *worker.Mux) {
	return func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[first]) (held, error) {
			return held{}, worker.BusinessError("FULL", "no room")
		}, worker.NotCompensable("refused"), worker.Throws(codes...)))
	}
}

type (
	first struct {
		Hotel  string `json:"hotel"`
		Nights int    `json:"nights"`
	}
	withOptional struct {
		Hotel  string `json:"hotel"`
		Nights int    `json:"nights"`
		Note   string `json:"note,omitempty"`
	}
	withRequired struct {
		Hotel  string `json:"hotel"`
		Nights int    `json:"nights"`
		Board  string `json:"board"`
	}
	nightsOptional struct {
		Hotel  string `json:"hotel"`
		Nights *int   `json:"nights,omitempty"`
	}
	withoutNights struct {
		Hotel string `json:"hotel"`
	}
	otherType struct {
		Hotel  string `json:"hotel"`
		Nights string `json:"nights"`
	}
)
