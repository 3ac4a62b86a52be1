package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv("JOURNEYMAN_TEST_WORKER"); spec != "" {
		os.Exit(childWorker(spec))
	}
	code := m.Run()
	pgtest.Stop()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/vitrip/journeyman/internal/postgres.(*Cluster).start.func1")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// world is a database, a fake engine and what the handlers of a test did.
type world struct {
	t    *testing.T
	ctx  context.Context
	pool *pgxpool.Pool
	gw   *fakeGateway
	log  zerolog.Logger
	runs atomic.Int64
}

type reserve struct {
	Offer string `json:"offer"`
	Seats int    `json:"seats"`
	Note  string `json:"note,omitempty"`
}

type reserved struct {
	ID string `json:"id"`
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return worldOn(t, ctx, pgtest.Pool(t))
}

func worldOn(t *testing.T, ctx context.Context, pool *pgxpool.Pool) *world {
	t.Helper()
	w := &world{t: t, ctx: ctx, pool: pool, gw: newFake(), log: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)}
	for _, m := range []func(context.Context, *pgxpool.Pool) error{
		func(ctx context.Context, p *pgxpool.Pool) error { return dedup.Migrate(ctx, p, "") },
		func(ctx context.Context, p *pgxpool.Pool) error { return zeebe.Migrate(ctx, p, "") },
	} {
		if err := m(ctx, pool); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS room (operation_id text, run bigint)`); err != nil {
		t.Fatal(err)
	}
	return w
}

func fast() Config {
	return Config{
		MaxJobsActive: 16, Concurrency: 3, JobTimeout: 6 * time.Second, HandlerTimeout: 4 * time.Second, LockTimeout: 400 * time.Millisecond,
		Lease: 3 * time.Second, CallTimeout: 2 * time.Second, PollWait: time.Second, SweepEvery: 100 * time.Millisecond, DrainTimeout: 5 * time.Second,
		Backoff:        outcome.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond, Factor: 2},
		UnknownBackoff: outcome.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond, Factor: 2},
		PollBackoff:    outcome.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond, Factor: 2},
	}
}

// start runs a worker until the test or stop ends it.
func (w *world) start(mux *Mux, cfg Config) (*Worker, func()) {
	w.t.Helper()
	cfg.Log = w.log
	if cfg.Elements == nil {
		cfg.Elements = w.gw
	}
	wk, err := newWorker(w.gw, w.pool, mux, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- wk.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.t.Errorf("Run: %v", err)
			}
		})
	}
	w.t.Cleanup(stop)
	return wk, stop
}

// runtime makes a runtime without polling, with the fake engine behind its fast path.
func (w *world) runtime(mux *Mux, cfg Config) *Runtime {
	w.t.Helper()
	cfg.Log = w.log
	if cfg.Elements == nil {
		cfg.Elements = w.gw
	}
	wk, err := newWorker(w.gw, w.pool, mux, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = wk.sender.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done; wk.rt.Close() })
	return wk.rt
}

// job is the variables of a job.
func job(operationID, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"businessKey":"B-1","operationId":%q,"correlationId":"c-1","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"%s}`, operationID, more)
}

const offer = `"offer":"F1","seats":2`

// insertRoom is a handler that leaves a row behind.
func (w *world) insertRoom(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
	n := w.runs.Add(1)
	_, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1, $2)`, j.OperationID, n)
	return reserved{ID: "R-" + j.OperationID}, err
}

func (w *world) rooms(operationID string) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.ctx, `SELECT count(*) FROM room WHERE operation_id = $1`, operationID).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) op(operationID string) dedup.Operation {
	w.t.Helper()
	s, err := dedup.New("")
	if err != nil {
		w.t.Fatal(err)
	}
	op, _, err := s.Lookup(w.ctx, w.pool, operationID)
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.ctx, sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// until polls a real condition.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	w.within(20*time.Second, what, ok)
}

func (w *world) within(d time.Duration, what string, ok func() bool) {
	w.t.Helper()
	end := time.Now().Add(d)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(end) || w.ctx.Err() != nil {
			w.t.Fatalf("not within %s: %s; calls: %v", d, what, w.gw.log())
		}
		<-tick.C
	}
}

func (w *world) wait(key int64, state string) fakeJob {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	j, err := w.gw.wait(ctx, key, func(j fakeJob) bool { return j.state == state })
	if err != nil {
		w.t.Fatalf("want %s: %v", state, err)
	}
	return j
}

// stopAt holds goroutines that reach a crash point for an operation; reached is closed at the first, let them go by release.
func stopAt(t *testing.T, point, detail string) (reached <-chan struct{}, release func()) {
	t.Helper()
	r, gate := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	remove := crash.Hook(point, func(d string) {
		if d != detail {
			return
		}
		mine := false
		first.Do(func() { mine = true })
		if mine {
			close(r)
			<-gate
		}
	})
	release = func() { last.Do(func() { close(gate) }) }
	t.Cleanup(func() { release(); remove() })
	return r, release
}

func reach(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("never reached: %s", what)
	}
}

// jobTask makes the task of a job as a worker would, for tests that drive a runtime by hand.
func (w *world) jobTask(rt *Runtime, jobType, vars string) *task {
	w.t.Helper()
	k := w.gw.add(jobType, vars)
	w.gw.edit(k, func(j *fakeJob) { j.state, j.until = "activated", time.Now().Add(time.Minute) })
	return w.taskOf(rt, k)
}

func (w *world) taskOf(rt *Runtime, key int64) *task {
	w.t.Helper()
	j := w.gw.job(key)
	parsed, err := parseVariables(j.Variables)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := metaOf(j.Job, rt.cluster, parsed)
	if err != nil {
		w.t.Fatal(err)
	}
	t := &task{spec: rt.mux.forward[j.Type], meta: m, job: true, probe: true, owner: uuid()}
	if err := w.pool.QueryRow(w.ctx, `SELECT journeyman.now()`).Scan(&t.received); err != nil {
		w.t.Fatal(err)
	}
	t.control = t.spec.opt.control
	if err := rt.takeInput(t, parsed, []byte(j.Variables)); err != nil {
		w.t.Fatal(err)
	}
	return t
}

var errBoom = errors.New("boom")
