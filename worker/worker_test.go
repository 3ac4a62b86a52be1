package worker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

func TestWorker_completes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	w.start(mux, fast())
	k := w.gw.add("flight.reserve", job("op-1", offer))
	if j := w.wait(k, "completed"); j.answer != `{"id":"R-op-1"}` {
		t.Errorf("completed with %s", j.answer)
	}
	w.until("command row deleted", func() bool { return w.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
	if op := w.op("op-1"); op.State != dedup.Done || op.Class != outcome.Success || op.Attempts != 1 {
		t.Errorf("operation: %+v", op)
	}
	if n := w.count(`SELECT count(*) FROM journeyman.operation_attempt`); n != 0 {
		t.Errorf("%d attempts left open", n)
	}
}

// TestWorker_racers is 64 workers racing for one operation id: one execution, 64 equal answers, retries unchanged.
func TestWorker_racers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		if _, err := tx.Exec(ctx, `SELECT pg_sleep(0.2)`); err != nil {
			return reserved{}, err
		}
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	cfg := fast()
	cfg.MaxJobsActive = 4
	const workers = 64
	keys := make([]int64, workers)
	for i := range keys {
		keys[i] = w.gw.add("flight.reserve", job("op-1", offer))
	}
	for range workers / 4 {
		w.start(mux, cfg)
	}
	for _, k := range keys {
		j := w.wait(k, "completed")
		if j.answer != `{"id":"R-op-1"}` || j.Retries != 3 {
			t.Errorf("job %d: answer %s, retries %d", k, j.answer, j.Retries)
		}
	}
	if n := w.rooms("op-1"); n != 1 {
		t.Errorf("%d rooms, want 1", n)
	}
	for _, c := range w.gw.log() {
		if strings.HasPrefix(c, "fail") {
			t.Errorf("a job was failed: %s", c)
		}
	}
}

func TestWorker_conflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	w.start(mux, fast())
	w.wait(w.gw.add("flight.reserve", job("op-1", offer)), "completed")
	before := w.op("op-1")
	j := w.wait(w.gw.add("flight.reserve", job("op-1", `"offer":"F2","seats":2`)), "failed")
	theirs, err := dedup.Of([]byte(job("op-1", `"offer":"F2","seats":2`)), before.Fingerprint.Fields)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(j.message, before.Fingerprint.String()) || !strings.Contains(j.message, theirs.String()) {
		t.Errorf("incident %q does not name both fingerprints %s and %s", j.message, theirs, before.Fingerprint)
	}
	if strings.Contains(j.message, "F2") {
		t.Errorf("incident %q shows payload", j.message)
	}
	after := w.op("op-1")
	after.ReadAt = before.ReadAt
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the stored row changed:\n%v\n%v", before, after)
	}
}

// TestWorker_badJobs is the documented outcome of everything a job or a handler can get wrong; the worker lives on.
func TestWorker_badJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (map[string]any, error) {
		switch j.In.Offer {
		case "panic":
			panic("a handler's mistake")
		case "code":
			return nil, BusinessError("NEVER_DECLARED", "no")
		case "sold out":
			return nil, BusinessError("SOLD_OUT", "no seats", WithVariables(map[string]any{"left": 0}))
		case "big":
			return map[string]any{"blob": strings.Repeat("x", 5<<20)}, nil
		case "commit":
			_, err := tx.Exec(ctx, "COMMIT")
			return nil, err
		case "open rows":
			rows, err := tx.Query(ctx, "SELECT generate_series(1, 100000)")
			if err != nil {
				return nil, err
			}
			rows.Next()
			panic("in a loop over rows")
		case "left open":
			_, err := tx.Query(ctx, "SELECT generate_series(1, 100000)")
			return nil, err
		case "sql":
			_, err := tx.Exec(ctx, "SELECT 1 / 0")
			return nil, err
		}
		return map[string]any{"id": 1}, nil
	}, NotCompensable("test"), Throws("SOLD_OUT")))
	cfg := fast()
	cfg.BreakerBackoff = outcome.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond, Factor: 2} // so many bad jobs slow the type down
	w.start(mux, cfg)
	for _, tt := range []struct{ name, vars, state, text string }{
		{"no business key", `{"operationId":"a","correlationId":"c","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","offer":"F","seats":1}`, "failed", "missing businessKey"},
		{"mapping to paste", `{"businessKey":"B","correlationId":"c","traceId":"0af7651916cd43dd8448eb211c80319c","offer":"F","seats":1}`, "failed", `<zeebe:input source="=sagaId + &#34;:task&#34;" target="operationId" />`},
		{"wrong type", job("b", `"offer":"F","seats":"two"`), "failed", "variable seats: is string, want int"},
		{"missing field", job("b2", `"seats":1,"offer":null`), "failed", "variable offer: missing, want string"},
		{"invalid JSON", `{"businessKey":"B","operationId":"c"`, "failed", "variables cannot be decoded: invalid JSON at byte"},
		{"5 MB of variables", job("d", offer+`,"blob":"`+strings.Repeat("x", 5<<20)+`"`), "completed", ""},
		{"5 MB of output", job("e", `"offer":"big","seats":1`), "failed", "output of 5242"},
		{"unknown error code", job("f", `"offer":"code","seats":1`), "failed", `error code "NEVER_DECLARED"`},
		{"refusal", job("g", `"offer":"sold out","seats":1`), "error-thrown", "no seats"},
		{"panic", job("h", `"offer":"panic","seats":1`), "failed", "FATAL_ERROR (panic): panic: a handler's mistake"},
		{"panic over rows", job("h2", `"offer":"open rows","seats":1`), "failed", "FATAL_ERROR (panic): panic: in a loop over rows"},
		{"rows left open", job("h3", `"offer":"left open","seats":1`), "failed", "FATAL_ERROR (transaction): the handler left the result of a query open"},
		{"commit", job("i", `"offer":"commit","seats":1`), "failed", "FATAL_ERROR (transaction)"},
		{"retries used up", job("j", `"offer":"sql","seats":1`), "failed", "RETRYABLE_ERROR (error): database: SQLSTATE 22012"},
		{"good", job("k", offer), "completed", ""},
	} {
		k := w.gw.add("flight.reserve", tt.vars)
		j := w.wait(k, tt.state)
		if !strings.Contains(j.message, tt.text) {
			t.Errorf("%s: message %q, want %q in it", tt.name, j.message, tt.text)
		}
		if tt.name == "refusal" && (j.code != "SOLD_OUT" || j.answer != `{"left":0}`) {
			t.Errorf("%s: thrown %s with %s, want its code and variables", tt.name, j.code, j.answer)
		}
	}
	if op := w.op("h"); op.Class != outcome.Fatal || op.Reason != outcome.ReasonPanic {
		t.Errorf("panic recorded as %s %s", op.Class, op.Reason)
	}
	if op := w.op("j"); op.OperationID != "" {
		t.Errorf("a RETRYABLE end left an operation: %+v", op)
	}
}

func TestWorker_exactIntegers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type in struct {
		N int64 `json:"n"`
	}
	got := make(chan int64, 1)
	mux := NewMux()
	mux.Handle("n", Transactional(func(_ context.Context, _ *Tx, j Job[in]) (struct{}, error) {
		got <- j.In.N
		return struct{}{}, nil
	}, NoEffect()))
	w.start(mux, fast())
	w.wait(w.gw.add("n", job("a", `"n":1234567890123456789`)), "completed")
	if n := <-got; n != 1234567890123456789 {
		t.Errorf("n = %d", n)
	}
	for _, v := range []string{`"abc"`, `1e400`, `1.5`, `9223372036854775808`} {
		w.wait(w.gw.add("n", job("b"+v[:2], `"n":`+v)), "failed")
	}
}

// TestWorker_drain stops a worker with one handler running and two jobs waiting: the one finishes, the others are handed back untouched.
func TestWorker_drain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	started, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		once.Do(func() { close(started) })
		<-finish
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	cfg := fast()
	cfg.Concurrency = 1
	var keys []int64
	for i := range 3 {
		keys = append(keys, w.gw.add("flight.reserve", job(fmt.Sprint("op-", i), offer)))
	}
	wk, stop := w.start(mux, cfg)
	reach(t, "handler", started)
	w.until("three jobs held", func() bool { return wk.Active() == 3 || wk.Active() == cfg.MaxJobsActive })
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	back := 0
	w.until("two jobs handed back", func() bool {
		back = 0
		for _, k := range keys {
			if j := w.gw.job(k); j.state == "activatable" && j.Retries == 3 {
				back++
			}
		}
		return back == 2
	})
	close(finish)
	reach(t, "end of the drain", stopped)
	done := 0
	for _, k := range keys {
		if w.gw.job(k).state == "completed" {
			done++
		}
	}
	if done != 1 || w.runs.Load() != 1 {
		t.Errorf("%d jobs completed, %d handlers ran; want 1 and 1", done, w.runs.Load())
	}
	if n := w.count(`SELECT count(*) FROM journeyman.zeebe_command`) + w.count(`SELECT count(*) FROM journeyman.worker_process`) + w.count(`SELECT count(*) FROM journeyman.operation_attempt WHERE open`); n != 0 {
		t.Errorf("%d rows left after the drain", n)
	}
}

// TestRule08_extended: jobs that wait for a slot longer than their time-out are extended; each is activated once.
func TestRule08_waitingJobsAreExtended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		if _, err := tx.Exec(ctx, `SELECT pg_sleep(0.7)`); err != nil {
			return reserved{}, err
		}
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	cfg := fast()
	cfg.Concurrency, cfg.JobTimeout, cfg.HandlerTimeout = 1, 2*time.Second, 1900*time.Millisecond
	var keys []int64
	for i := range 5 {
		keys = append(keys, w.gw.add("flight.reserve", job(fmt.Sprint("op-", i), offer)))
	}
	w.start(mux, cfg)
	for _, k := range keys {
		if j := w.wait(k, "completed"); j.times != 1 {
			t.Errorf("job %d was activated %d times", k, j.times)
		}
	}
	if n := w.runs.Load(); n != 5 {
		t.Errorf("%d runs, want 5", n)
	}
}

// TestWorker_drainWithAStuckHandler: a handler that ignores its context does not keep the worker from ending.
func TestWorker_drainWithAStuckHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	started, finish := make(chan struct{}), make(chan struct{})
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(context.Context, *Tx, Job[reserve]) (reserved, error) {
		close(started)
		<-finish
		return reserved{}, nil
	}, NotCompensable("test")))
	cfg := fast()
	cfg.DrainTimeout, cfg.Log = 100*time.Millisecond, w.log
	wk, err := newWorker(w.gw, w.pool, mux, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- wk.Run(ctx) }()
	w.gw.add("flight.reserve", job("op-1", offer))
	reach(t, "handler", started)
	cancel()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "1 jobs still ran") {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Run does not end")
	}
	close(finish)
	w.until("the handler is left", func() bool { return wk.Active() == 0 })
}

// TestWorker_limits checks that everything wrong with a configuration is said at once.
func TestWorker_limits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("a", Transactional(w.insertRoom))
	mux.Handle("b", External(Remote[reserve, reserved, reserved]{Call: func(context.Context, Call[reserve]) (reserved, error) { return reserved{}, nil }}, NotCompensable("x"), Manual("y")))
	mux.Handle("c", Transactional(w.insertRoom, CompensatedByTx("c.undo", func(context.Context, *Tx, UndoOf[reserve, struct{}]) error { return nil })))
	_, err := newWorker(w.gw, w.pool, mux, Config{HandlerTimeout: time.Minute, Schema: "Bad"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"max jobs active 0", "concurrency 0", `schema "Bad"`, "handler timeout 1m0s",
		`"a": says nothing of compensation`, `"b": declares [NotCompensable Manual]`, `"b": is external and does not say how long`,
		`"c": compensation takes result struct {}`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}
