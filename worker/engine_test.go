package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// site is the embedded engine behind real gRPC and REST, a database and a worker.
type site struct {
	t    *testing.T
	ctx  context.Context
	eng  *engine.Engine
	conn *zeebe.Conn

	conn2 *zeebe.Conn // of the worker; nil = conn
	rest  *rest.Client
	pool  *pgxpool.Pool
	runs  atomic.Int64
}

const model = `<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <bpmn:process id="one" isExecutable="true">
    <bpmn:startEvent id="s"><bpmn:outgoing>f1</bpmn:outgoing></bpmn:startEvent>
    <bpmn:serviceTask id="reserve">
      <bpmn:extensionElements>
        <zeebe:taskDefinition type="room.hold" retries="3" />
        <zeebe:ioMapping><zeebe:input source="=key + &#34;:reserve&#34;" target="operationId" /></zeebe:ioMapping>
      </bpmn:extensionElements>
      <bpmn:incoming>f1</bpmn:incoming><bpmn:outgoing>f2</bpmn:outgoing>
    </bpmn:serviceTask>
    <bpmn:boundaryEvent id="late" attachedToRef="reserve"><bpmn:outgoing>f3</bpmn:outgoing>
      <bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>
    <bpmn:endEvent id="e"><bpmn:incoming>f2</bpmn:incoming></bpmn:endEvent>
    <bpmn:endEvent id="x"><bpmn:incoming>f3</bpmn:incoming></bpmn:endEvent>
    <bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="reserve" />
    <bpmn:sequenceFlow id="f2" sourceRef="reserve" targetRef="e" />
    <bpmn:sequenceFlow id="f3" sourceRef="late" targetRef="x" />
  </bpmn:process>
</bpmn:definitions>`

func newSite(t *testing.T) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	s := &site{t: t, ctx: ctx, pool: pgtest.Pool(t)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(dedup.Migrate(ctx, s.pool, ""))
	must(zeebe.Migrate(ctx, s.pool, ""))
	_, err := s.pool.Exec(ctx, `CREATE TABLE room (operation_id text)`)
	must(err)
	s.eng, err = engine.Start(engine.Config{})
	must(err)
	t.Cleanup(func() { _ = s.eng.Close() })
	s.conn, err = zeebe.Dial(zeebe.Config{Address: s.eng.Addr(), Plaintext: true, Cluster: "embedded-" + s.eng.Incarnation()})
	must(err)
	t.Cleanup(func() { _ = s.conn.Close() })
	s.rest, err = rest.New(rest.Config{Base: "http://" + s.eng.RESTAddr()})
	must(err)
	_, err = s.conn.Deploy(ctx, zeebe.Resource{Name: "one.bpmn", Content: []byte(model)})
	must(err)
	return s
}

type hold struct {
	Room string `json:"room"`
}

// start runs a worker whose handler holds a room; edit changes its configuration.
func (s *site) start(f worker.Func[hold, map[string]any], edit func(*worker.Config)) *worker.Worker {
	s.t.Helper()
	mux := worker.NewMux()
	mux.Handle("room.hold", worker.Transactional(func(ctx context.Context, tx *worker.Tx, j worker.Job[hold]) (map[string]any, error) {
		s.runs.Add(1)
		if _, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1)`, j.OperationID); err != nil {
			return nil, err
		}
		if f != nil {
			return f(ctx, tx, j)
		}
		return map[string]any{"held": j.In.Room}, nil
	}, worker.Orphan(worker.Undo), worker.CompensatedByTx("room.free", func(ctx context.Context, tx *worker.Tx, u worker.UndoOf[hold, map[string]any]) error {
		_, err := tx.Exec(ctx, `DELETE FROM room WHERE operation_id = $1`, u.OperationID)
		return err
	})))
	cfg := worker.Config{
		MaxJobsActive: 8, Concurrency: 2, Elements: s.rest, Log: zerolog.New(zerolog.NewTestWriter(s.t)).Level(zerolog.InfoLevel), SweepEvery: 100 * time.Millisecond, PollWait: time.Second,
		Backoff: outcome.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond, Factor: 2},
	}
	if edit != nil {
		edit(&cfg)
	}
	return s.run(mux, cfg)
}

// run runs a worker until the test ends.
func (s *site) run(mux *worker.Mux, cfg worker.Config) *worker.Worker {
	s.t.Helper()
	w, stop := s.runUntil(mux, cfg)
	s.t.Cleanup(stop)
	return w
}

// runUntil runs a worker until stop, which waits for its end.
func (s *site) runUntil(mux *worker.Mux, cfg worker.Config) (w *worker.Worker, stop func()) {
	s.t.Helper()
	conn := s.conn
	if s.conn2 != nil {
		conn = s.conn2
	}
	w, err := worker.New(conn, s.pool, mux, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return w, func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("Run: %v", err)
		}
	}
}

func (s *site) create(key string) int64 {
	s.t.Helper()
	i, err := s.conn.CreateInstance(s.ctx, "one", fmt.Sprintf(`{"key":%q,"businessKey":"B-1","correlationId":"c","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","room":"R1"}`, key))
	if err != nil {
		s.t.Fatal(err)
	}
	return i.ProcessInstanceKey
}

func (s *site) until(what string, ok func() bool) {
	s.t.Helper()
	s.within(20*time.Second, what, ok)
}

func (s *site) within(d time.Duration, what string, ok func() bool) {
	s.t.Helper()
	end := time.Now().Add(d)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(end) {
			s.t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

func (s *site) instanceIs(key int64, state string) {
	s.t.Helper()
	s.until(fmt.Sprintf("instance %s", state), func() bool {
		p, err := s.rest.ProcessInstance(s.ctx, key)
		return err == nil && p.State == state
	})
}

func (s *site) incident(key int64) rest.Incident {
	s.t.Helper()
	var in rest.Incident
	s.until("incident", func() bool {
		p, err := s.rest.SearchIncidents(s.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(key), "state": "ACTIVE"}})
		if err != nil || len(p.Items) == 0 {
			return false
		}
		in = p.Items[0]
		return true
	})
	return in
}

func (s *site) count(sql string) (n int) {
	s.t.Helper()
	if err := s.pool.QueryRow(s.ctx, sql).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestEngine_completes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(nil, nil)
	k := s.create("a")
	s.instanceIs(k, "COMPLETED")
	vars, err := s.rest.SearchVariables(s.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(k), "name": "held"}})
	if err != nil || len(vars.Items) != 1 || vars.Items[0].Value != `"R1"` {
		t.Errorf("variable held: %+v, %v", vars.Items, err)
	}
}

// TestEngine_operatorRetry: FATAL is an incident; a person resolves it and the operation runs afresh.
func TestEngine_operatorRetry(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var fixed atomic.Bool
	w := s.start(func(context.Context, *worker.Tx, worker.Job[hold]) (map[string]any, error) {
		if fixed.Load() {
			return nil, nil
		}
		return nil, worker.Fatal(errors.New("the list of rooms is empty"))
	}, nil)
	k := s.create("a")
	in := s.incident(k)
	if !strings.Contains(in.ErrorMessage, "FATAL_ERROR") || !strings.Contains(in.ErrorMessage, "the list of rooms is empty") {
		t.Errorf("incident %q", in.ErrorMessage)
	}
	s.until("acknowledgement recorded", func() bool {
		op, _, err := w.Runtime().Lookup(s.ctx, "a:reserve")
		return err == nil && !op.AnsweredAt.IsZero()
	})
	fixed.Store(true)
	if err := s.conn.UpdateJobRetries(s.ctx, int64(in.JobKey), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.conn.ResolveIncident(s.ctx, int64(in.IncidentKey)); err != nil {
		t.Fatal(err)
	}
	s.instanceIs(k, "COMPLETED")
	if op, _, _ := w.Runtime().Lookup(s.ctx, "a:reserve"); op.OperatorRetries != 1 || s.count(`SELECT count(*) FROM room`) != 1 {
		t.Errorf("operator retries %d, rooms %d", op.OperatorRetries, s.count(`SELECT count(*) FROM room`))
	}
}

// TestEngine_orphan: the element ends by its timer while the reservation commits. It is undone.
func TestEngine_orphan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	inside, goOn := make(chan struct{}), make(chan struct{})
	w := s.start(func(context.Context, *worker.Tx, worker.Job[hold]) (map[string]any, error) {
		close(inside)
		<-goOn
		return nil, nil
	}, nil)
	k := s.create("a")
	<-inside
	s.eng.AdvanceClock(2 * time.Hour)
	if err := postgres.AdvanceClock(s.ctx, s.pool, "journeyman", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	s.instanceIs(k, "COMPLETED")
	close(goOn)
	s.until("orphan undone", func() bool {
		op, _, err := w.Runtime().Lookup(s.ctx, "a:reserve")
		return err == nil && op.Orphan == dedup.OrphanUndone
	})
	if n := s.count(`SELECT count(*) FROM room`); n != 0 || s.runs.Load() != 1 {
		t.Errorf("%d rooms after %d runs", n, s.runs.Load())
	}
	s.until("no command left", func() bool { return s.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
}

// TestEngine_faults: back pressure, an unavailable gateway, activated jobs that never arrive, an answer whose reply is lost.
func TestEngine_faults(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var polls, completes atomic.Int64
	s.eng.Intercept("ActivateJobs", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		switch polls.Add(1) {
		case 1:
			return nil, status.Error(codes.ResourceExhausted, "back pressure")
		case 2:
			return nil, status.Error(codes.Unavailable, "no leader")
		case 3:
			return nil, status.Error(codes.Internal, "odd")
		}
		return next(ctx)
	})
	s.eng.Intercept("CompleteJob", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		switch completes.Add(1) {
		case 1:
			return nil, status.Error(codes.Unavailable, "not carried out")
		case 2:
			if _, err := next(ctx); err != nil {
				return nil, err
			}
			return nil, status.Error(codes.DeadlineExceeded, "carried out, reply lost")
		}
		return next(ctx)
	})
	s.start(nil, nil)
	a := s.create("a")
	s.instanceIs(a, "COMPLETED")
	s.until("no command left", func() bool { return s.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
	if n := s.count(`SELECT count(*) FROM room`); n != 1 || s.runs.Load() != 1 || completes.Load() < 2 {
		t.Errorf("%d rooms after %d runs and %d completions", n, s.runs.Load(), completes.Load())
	}
	b := s.create("b")
	s.instanceIs(b, "COMPLETED")
}
