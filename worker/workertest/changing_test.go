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

// The rules of docs/changing-a-worker.md, each with an old and a new build of a worker on one engine and one database.

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
	return enginetest.Text("stay.bpmn", strings.Replace(changing, "CATCH", catch, 1))
}

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
	vars := map[string]any{"businessKey": "B-1", "correlationId": "c", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "hotel": "H-1", "nights": 2}
	for name, v := range more {
		vars[name] = v
	}
	return h.env.Create("stay", vars)
}

// leave lets a build run the handler and commit, without its answer ever reaching the engine, and stops it. The job comes
// back to whoever runs then.
func (h *house) leave(fill func(mux *worker.Mux)) {
	h.Helper()
	h.mute.Store(true)
	stop := h.build(fill)
	h.until("the old build committed", func() bool {
		var n int
		err := h.pool.QueryRow(h.Context(), `SELECT count(*) FROM journeyman.operation WHERE state = 'done'`).Scan(&n)
		return err == nil && n == 1
	})
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
			h.undos <- fmt.Sprintf("%s undoes %s %+v", build, u.Res.ID, u.In)
			return nil
		})))
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

// Rule 1: an optional field may be added while jobs run; what the old build did is answered, not done again.
func TestChanging_optionalField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(map[string]any{"note": "sea view"})
	h.leave(forward[first](h, "old", "room.reserve", "room.cancel"))
	h.build(forward[withOptional](h, "new", "room.reserve", "room.cancel"))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 1, both builds at once: a job without the field is served by either.
func TestChanging_optionalField_sideBySide(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.build(forward[first](h, "old", "room.reserve", "room.cancel"))
	h.build(forward[withOptional](h, "new", "room.reserve", "room.cancel"))
	for n := range 4 {
		h.create(map[string]any{"businessKey": fmt.Sprintf("B-%d", n)}).WantActive("wait").WantNoIncidents()
	}
	h.wantRuns(4)
}

// Rule 2: a required field makes incidents of the jobs that lack it.
func TestChanging_requiredField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.build(forward[withRequired](h, "new", "room.reserve", "room.cancel"))
	p.WantIncident("reserve", "variable board: missing")
	p.SetVariables(map[string]any{"board": "half"})
	p.ResolveIncidents(3)
	p.WantActive("wait").WantVariable("room", "new")
}

// Rule 3: a field that is gone changes nothing for jobs that nobody ran.
func TestChanging_removedField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.build(forward[withoutNights](h, "new", "room.reserve", "room.cancel"))
	h.create(nil).WantActive("wait").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 3: a repeat of what the old build did is a conflict, because its fingerprint covers a variable that the new build does
// not ask for. Nothing is done twice, and a person sees it.
func TestChanging_removedField_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(forward[first](h, "old", "room.reserve", "room.cancel"))
	h.build(forward[withoutNights](h, "new", "room.reserve", "room.cancel"))
	p.WantIncident("reserve", "was run before with another input")
	h.wantRuns(1)
}

// Rule 3: made optional first, the field still counts, and the repeat is answered.
func TestChanging_removedField_optionalFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(forward[first](h, "old", "room.reserve", "room.cancel"))
	h.build(forward[nightsOptional](h, "new", "room.reserve", "room.cancel"))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 4: another type for a field is an incident for every job that waits.
func TestChanging_fieldType(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.build(forward[otherType](h, "new", "room.reserve", "room.cancel"))
	p.WantIncident("reserve", "variable nights: is number, want string")
	h.wantRuns(0)
}

func refuses(codes ...string) func(mux *worker.Mux) {
	return func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[first]) (held, error) {
			return held{}, worker.BusinessError("FULL", "no room")
		}, worker.NotCompensable("refused"), worker.Throws(codes...)))
	}
}

// Rule 5: a new code needs the model first, and running instances keep the old model.
func TestChanging_newCode(t *testing.T) {
	t.Parallel()
	old := newHouse(t, model(""))
	p := old.create(nil)
	old.build(refuses("FULL"))
	p.WantIncident("reserve", "FULL")

	caught := newHouse(t, model(catchFull))
	p = caught.create(nil)
	caught.build(refuses("FULL"))
	p.WantCompleted().WantPath("full", "fullEnd")
}

// Rule 5: a code that Throws does not list is FATAL before the commit, so a forgotten one is seen at its first use.
func TestChanging_undeclaredCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(catchFull))
	p := h.create(nil)
	h.build(refuses("SOLD_OUT"))
	p.WantIncident("reserve", `error code "FULL" is not one of those the handler declares`)
}

// Rule 5: a code that the new build gave up is still thrown where the old build had recorded it, so the model keeps catching it.
func TestChanging_codeGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(catchFull))
	p := h.create(nil)
	h.leave(refuses("FULL"))
	h.build(forward[first](h, "new", "room.reserve", "room.cancel"))
	p.WantCompleted().WantPath("full", "fullEnd").WantNoIncidents()
	h.wantRuns(0)
}

// Rule 6: the new build undoes what the old one did, from the recorded input; a field that is new is empty there.
func TestChanging_undoOfOldEffect(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	stop := h.build(forward[first](h, "old", "room.reserve", "room.cancel"))
	p := h.create(map[string]any{"board": "half"}).WantActive("wait")
	stop()
	h.build(forward[withRequired](h, "new", "room.reserve", "room.cancel"))
	h.env.Correlate(enginetest.Message{Name: "go", CorrelationKey: "B-1"})
	p.WantCompleted().WantCompensated("cancel")
	if got, want := <-h.undos, "new undoes old {Hotel:H-1 Nights:2 Board:}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Rule 7: another undo type leaves the compensations of running instances to nobody, until a build that has the old one runs.
func TestChanging_undoType(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.build(forward[first](h, "new", "room.reserve", "room.give-back"))
	p := h.create(nil).WantActive("wait")
	h.env.Correlate(enginetest.Message{Name: "go", CorrelationKey: "B-1"})
	p.WantActive("cancel") // job room.cancel: nobody serves it
	if len(h.undos) != 0 {
		t.Errorf("undone by %s", <-h.undos)
	}
	h.build(forward[first](h, "old", "room.reserve", "room.cancel"))
	p.WantCompleted().WantCompensated("cancel")
	if got, want := <-h.undos, "old undoes new {Hotel:H-1 Nights:2}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Rule 8: a new job type stands beside the old one, in one build, until no instance of the old model is left.
func TestChanging_jobType(t *testing.T) {
	t.Parallel()
	next := strings.NewReplacer("room.reserve", "room.reserve.v2", "room.cancel", "room.cancel.v2", "CATCH", "", `id="stay"`, `id="stay2"`).Replace(changing)
	h := newHouse(t, model(""), enginetest.Text("stay2.bpmn", next))
	h.build(func(mux *worker.Mux) {
		forward[first](h, "v1", "room.reserve", "room.cancel")(mux)
		forward[withRequired](h, "v2", "room.reserve.v2", "room.cancel.v2")(mux)
	})
	h.create(nil).WantActive("wait").WantVariable("room", "v1")
	h.env.Create("stay2", map[string]any{"businessKey": "B-2", "correlationId": "c", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "hotel": "H", "nights": 1, "board": "full"}).
		WantActive("wait").WantVariable("room", "v2")
}

func TestChanging_jobType_dropped(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.build(forward[first](h, "v2", "room.reserve.v2", "room.cancel.v2"))
	p := h.create(nil)
	h.env.AdvanceClock(time.Hour)
	p.WantActive("reserve").WantNoIncidents()
	h.wantRuns(0)
}

// Rule 9: a handler does not change its shape while an external call of it is under way.
func TestChanging_shape(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	called := make(chan struct{}, 16)
	stop := h.build(func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.External(worker.Remote[first, held, held]{
			Call: func(context.Context, worker.Call[first]) (held, error) {
				select {
				case called <- struct{}{}:
				default:
				}
				return held{}, errors.New("no answer")
			},
		}, worker.KeyValidFor(time.Hour), worker.NotCompensable("a test")))
	})
	p := h.create(nil)
	<-called
	stop()
	h.env.AdvanceClock(10 * time.Minute)
	h.build(forward[first](h, "new", "room.reserve", "room.cancel"))
	p.WantIncident("reserve", "is under way as an external one")
	h.wantRuns(0)
}

// Rule 9: what the transactional build finished is answered from the record by an external one, and nobody is called.
func TestChanging_shape_done(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(forward[first](h, "old", "room.reserve", "room.cancel"))
	h.build(func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.External(worker.Remote[first, held, held]{
			Call:   func(context.Context, worker.Call[first]) (held, error) { h.runs.Add(1); return held{ID: "new"}, nil },
			Settle: func(_ context.Context, _ *worker.Tx, _ worker.Job[first], res held) (held, error) { return res, nil },
		}, worker.KeyValidFor(time.Hour), worker.NotCompensable("a test")))
	})
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 10: a repeat is given the output that the old build recorded, whatever the new one would give.
func TestChanging_outputField_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(forward[first](h, "old", "room.reserve", "room.cancel"))
	h.build(func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[first]) (map[string]string, error) {
			return map[string]string{"roomId": "new"}, nil
		}, worker.NoEffect()))
	})
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
}

// Rule 10: an output field that the model maps becomes null when a build no longer gives it; the engine says nothing.
func TestChanging_outputField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.build(func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[first]) (map[string]string, error) {
			return map[string]string{"id": "R", "extra": "x"}, nil
		}, worker.NoEffect()))
	})
	h.create(nil).WantActive("wait").WantVariable("room", "R") // a field more is ignored: the mappings choose

	less := newHouse(t, model(""))
	less.build(func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[first]) (map[string]string, error) {
			return map[string]string{"roomId": "R"}, nil
		}, worker.NoEffect()))
	})
	less.create(nil).WantActive("wait").WantVariable("room", nil)
}
