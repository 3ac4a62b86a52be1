package worker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

type stay struct {
	Room   string `json:"room"`
	Nights int64  `json:"nights"`
	Note   string `json:"note,omitempty"`
}

const (
	stayCorrelation = `"businessKey":"B-1","correlationId":"c","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`
	stayVars        = stayCorrelation + `,"room":"R","nights":1`
)

// largeModel is a process "large" whose task sees more than one message can carry, since its input mappings repeat a variable four times:
// unread in a variable that no handler declares, blob in the declared note. A refusal with SOLD_OUT is caught.
const largeModel = `<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <bpmn:error id="er" errorCode="SOLD_OUT" />
  <bpmn:process id="large" isExecutable="true">
    <bpmn:startEvent id="s"><bpmn:outgoing>f1</bpmn:outgoing></bpmn:startEvent>
    <bpmn:serviceTask id="reserve">
      <bpmn:extensionElements>
        <zeebe:taskDefinition type="room.hold" retries="3" />
        <zeebe:ioMapping>
          <zeebe:input source="=key + &#34;:reserve&#34;" target="operationId" />
          <zeebe:input source="=if unread = null then null else unread + unread + unread + unread" target="all" />
          <zeebe:input source="=if blob = null then null else blob + blob + blob + blob" target="note" />
        </zeebe:ioMapping>
      </bpmn:extensionElements>
      <bpmn:incoming>f1</bpmn:incoming><bpmn:outgoing>f2</bpmn:outgoing>
    </bpmn:serviceTask>
    <bpmn:boundaryEvent id="full" attachedToRef="reserve"><bpmn:outgoing>f3</bpmn:outgoing><bpmn:errorEventDefinition errorRef="er" /></bpmn:boundaryEvent>
    <bpmn:endEvent id="e"><bpmn:incoming>f2</bpmn:incoming></bpmn:endEvent>
    <bpmn:endEvent id="x"><bpmn:incoming>f3</bpmn:incoming></bpmn:endEvent>
    <bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="reserve" />
    <bpmn:sequenceFlow id="f2" sourceRef="reserve" targetRef="e" />
    <bpmn:sequenceFlow id="f3" sourceRef="full" targetRef="x" />
  </bpmn:process>
</bpmn:definitions>`

// clerk holds rooms by a handler of one shape, and misbehaves for a room of a bad name.
type clerk struct {
	shape string
	first func(ctx context.Context) error // the first run waits for it; nil = it does not

	mu          sync.Mutex
	runs        int
	said, wrote map[string]int // by operation
}

// say is what needs no transaction.
func (d *clerk) say(ctx context.Context, id, room string) (map[string]any, error) {
	d.mu.Lock()
	d.runs++
	n := d.runs
	if d.said == nil {
		d.said = map[string]int{}
	}
	d.said[id]++
	d.mu.Unlock()
	if n == 1 && d.first != nil {
		if err := d.first(ctx); err != nil {
			return nil, err
		}
	}
	switch room {
	case "panic":
		panic("a handler's mistake")
	case "code":
		return nil, worker.BusinessError("NEVER_DECLARED", "no")
	case "sold out":
		return nil, worker.BusinessError("SOLD_OUT", "no room")
	case "big":
		return map[string]any{"blob": strings.Repeat("x", 5<<20)}, nil
	case "ordinary":
		return nil, worker.Fatal(errors.New("a person must look"))
	}
	return map[string]any{"held": room, "run": n}, nil
}

// write is what a transaction is needed for.
func (d *clerk) write(ctx context.Context, tx *worker.Tx, id, room string) error {
	d.mu.Lock()
	if d.wrote == nil {
		d.wrote = map[string]int{}
	}
	d.wrote[id]++
	d.mu.Unlock()
	if _, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1)`, id); err != nil {
		return err
	}
	switch room {
	case "commit":
		_, err := tx.Exec(ctx, "COMMIT")
		return err
	case "left open":
		_, err := tx.Query(ctx, "SELECT generate_series(1, 100000)")
		return err
	case "open rows":
		rows, err := tx.Query(ctx, "SELECT generate_series(1, 100000)")
		if err != nil {
			return err
		}
		rows.Next()
		panic("in a loop over rows")
	case "sql":
		_, err := tx.Exec(ctx, "SELECT 1 / 0")
		return err
	}
	return nil
}

// handler writes before it answers where the runtime takes that back, in a batch only for what has not been refused.
func (d *clerk) handler() worker.Handler {
	opts := []worker.Option{worker.NoEffect(), worker.Throws("SOLD_OUT")}
	switch d.shape {
	case "batch":
		return worker.Batch(10, func(ctx context.Context, tx *worker.Tx, jobs []worker.Job[stay]) ([]worker.BatchEnd[map[string]any], error) {
			ends := make([]worker.BatchEnd[map[string]any], len(jobs))
			for i, j := range jobs {
				if ends[i].Out, ends[i].Err = d.say(ctx, j.OperationID, j.In.Room); ends[i].Err != nil {
					continue
				}
				if err := d.write(ctx, tx, j.OperationID, j.In.Room); err != nil {
					return nil, err
				}
			}
			return ends, nil
		}, opts...)
	case "external":
		return worker.External(worker.Remote[stay, map[string]any, map[string]any]{
			Call: func(ctx context.Context, c worker.Call[stay]) (map[string]any, error) {
				return d.say(ctx, c.OperationID, c.In.Room)
			},
			Resolve: func(context.Context, worker.Call[stay]) (map[string]any, error) { return nil, worker.ErrNotHappened },
			Settle: func(ctx context.Context, tx *worker.Tx, j worker.Job[stay], res map[string]any) (map[string]any, error) {
				return res, d.write(ctx, tx, j.OperationID, j.In.Room)
			},
		}, append(opts, worker.KeyValidFor(time.Hour))...)
	default:
		return worker.Transactional(func(ctx context.Context, tx *worker.Tx, j worker.Job[stay]) (map[string]any, error) {
			if err := d.write(ctx, tx, j.OperationID, j.In.Room); err != nil {
				return nil, err
			}
			return d.say(ctx, j.OperationID, j.In.Room)
		}, opts...)
	}
}

// shapes runs a test for handlers of each shape, by stream and by poll.
func shapes(t *testing.T, f func(t *testing.T, s *site, d *clerk, pollOnly bool)) {
	t.Helper()
	for _, shape := range []string{"transactional", "batch", "external"} {
		for _, pollOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s poll only %v", shape, pollOnly), func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				if _, err := s.conn.Deploy(s.ctx, zeebe.Resource{Name: "large.bpmn", Content: []byte(largeModel)}); err != nil {
					t.Fatal(err)
				}
				f(t, s, &clerk{shape: shape}, pollOnly)
			})
		}
	}
}

// TestBadInput: everything a job or a handler can get wrong, by stream and by poll, for handlers of each shape. Each bad job has its
// documented end, recorded as its class says and without an effect, and takes no other down; the stream stays the one that was opened first.
func TestBadInput(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, s *site, d *clerk, pollOnly bool) {
		p := &proxy{edit: func(j *pb.ActivatedJob) {
			if strings.Contains(j.GetVariables(), `"cut:`) {
				j.Variables = j.GetVariables()[:len(j.GetVariables())/2]
			}
			if strings.Contains(j.GetVariables(), `"list:`) {
				j.Variables = `["no object"]`
			}
		}}
		s.behind(p, zeebe.Config{})
		mux := worker.NewMux()
		mux.Handle("room.hold", d.handler())
		w := s.run(mux, worker.Config{
			MaxJobsActive: 40, Concurrency: 2, PollWait: time.Second, PollOnly: pollOnly, NoBreaker: true,
			Backoff: outcome.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond, Factor: 2},
		})
		if !pollOnly {
			s.until("stream up", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
		}
		external := d.shape == "external"
		var unusable outcome.Class // where the connection can record nothing any more: only an external operation was there before
		if external {
			unusable = outcome.Fatal
		}
		room := func(name string) string { return stayCorrelation + fmt.Sprintf(`,"room":%q,"nights":1`, name) }
		type badCase struct {
			key, vars, want string // of the incident; "" = the instance completes
			class           outcome.Class
			rooms           int
		}
		cases := []badCase{
			{"ok1", stayCorrelation + `,"room":"R","nights":2`, "", outcome.Success, 1},
			{"nokey", strings.TrimPrefix(stayVars, `"businessKey":"B-1",`), "missing businessKey", "", 0},
			{"cut:1", stayVars, "invalid JSON at byte", "", 0},
			{"list:1", stayVars, "want an object", "", 0},
			{"type", stayCorrelation + `,"room":"R","nights":"two"`, "variable nights: is string, want int64", "", 0},
			{"missing", stayCorrelation + `,"room":null,"nights":1`, "variable room: missing", "", 0},
			{"huge", stayCorrelation + `,"room":"R","nights":1e400`, "variable nights", "", 0},
			{"fraction", stayCorrelation + `,"room":"R","nights":1.5`, "variable nights", "", 0},
			{"panic", room("panic"), "FATAL_ERROR (panic): panic: a handler's mistake", outcome.Fatal, 0},
			{"code", room("code"), `"NEVER_DECLARED"`, outcome.Fatal, 0},
			{"fatal", room("ordinary"), "a person must look", outcome.Fatal, 0},
			{"refused", room("sold out"), "", outcome.Business, 0},
			{"commit", room("commit"), `FATAL_ERROR (transaction): statement "commit"`, outcome.Fatal, 0},
			{"left", room("left open"), "FATAL_ERROR (transaction): the handler left the result of a query open", unusable, 0},
			{"rows", room("open rows"), "FATAL_ERROR (panic): panic: in a loop over rows", unusable, 0},
			{"sql", room("sql"), "RETRYABLE_ERROR (error): database: SQLSTATE 22012", "", 0},
			{"whole", stayCorrelation + `,"room":"R","nights":9223372036854775807,"more":"` + strings.Repeat("x", 2<<20) + `"`, "", outcome.Success, 1},
			{"unread", stayVars + `,"unread":"` + strings.Repeat("x", 5<<18) + `"`, "", outcome.Success, 1},          // 5 MB that are not fetched
			{"much", stayVars + `,"blob":"` + strings.Repeat("x", 3<<18) + `"`, "", outcome.Success, 1},              // 3 MB that are
			{"over", stayVars + `,"blob":"` + strings.Repeat("x", 5<<18) + `"`, "larger than the configured", "", 0}, // 5 MB that would be
			{"big", room("big"), "output of 5242", outcome.Fatal, 0},
		}
		if big := &cases[len(cases)-1]; external {
			big.want, big.class, big.rooms = "", outcome.Success, 1
		}
		keys := map[string]int64{}
		for _, c := range cases {
			keys[c.key] = s.createOf("large", c.key, c.vars)
		}
		for _, c := range cases {
			if c.want == "" {
				s.instanceIs(keys[c.key], "COMPLETED")
			} else if in := s.incident(keys[c.key]); !strings.Contains(in.ErrorMessage, c.want) || strings.Contains(in.ErrorMessage, "no object") {
				t.Errorf("%s: incident %q, want %q in it", c.key, in.ErrorMessage, c.want)
			}
			op, _, err := w.Runtime().Lookup(s.ctx, c.key+":reserve")
			if rooms := s.rooms(c.key); err != nil || op.Class != c.class || rooms != c.rooms {
				t.Errorf("%s: recorded as %q %s with %d rooms, want %q with %d: %v", c.key, op.Class, op.Reason, rooms, c.class, c.rooms, err)
			}
		}
		d.mu.Lock()
		before := d.said["ok1:reserve"] // a batch may have run it once before its jobs ran singly
		d.mu.Unlock()
		in := s.incident(s.createOf("large", "ok1", stayCorrelation+`,"room":"other","nights":2`))
		if !strings.Contains(in.ErrorMessage, "operation ok1:reserve was run before with another input: fingerprint") || strings.Contains(in.ErrorMessage, "other\"") {
			t.Errorf("conflict: incident %q", in.ErrorMessage)
		}
		s.instanceIs(s.createOf("large", "last", stayVars), "COMPLETED")
		if n := p.opens.Load(); !pollOnly && n != 1 || pollOnly && n != 0 {
			t.Errorf("%d streams opened", n)
		}
		if h := streamOf(w, "room.hold"); pollOnly != (h.Streamed == 0) {
			t.Errorf("%d jobs came by stream", h.Streamed)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.said["ok1:reserve"] != before || s.rooms("ok1") != 1 {
			t.Errorf("%d runs and %d rooms after a conflict, want %d and 1", d.said["ok1:reserve"], s.rooms("ok1"), before)
		}
		// A batch had run it once before its jobs ran singly; an external operation is settled by the sweep as well.
		if n := d.wrote["sql:reserve"]; n < 3 || n > 3 && d.shape == "transactional" || external && d.said["sql:reserve"] != 1 {
			t.Errorf("the failing statement ran %d times after %d calls, want once for each of 3 retries and one call", n, d.said["sql:reserve"])
		}
		if external && s.count(`SELECT count(*) FROM journeyman.operation WHERE reason = 'claim_check' AND payload IS NOT NULL`) != 1 {
			t.Error("the large result of an external call has no claim check")
		}
	})
}

func (s *site) rooms(key string) int {
	s.t.Helper()
	return s.count(`SELECT count(*) FROM room WHERE operation_id = '` + key + `:reserve'`)
}

// TestBadInput_racers: 64 jobs of eight workers, all out at the same time, race for one operation id. One takes effect, all are completed
// with its answer, and none is failed.
func TestBadInput_racers(t *testing.T) {
	t.Parallel()
	shapes(t, func(t *testing.T, s *site, d *clerk, pollOnly bool) {
		const racers, workers = 64, 8
		var mu sync.Mutex
		out, all := map[int64]bool{}, make(chan struct{})
		s.behind(&proxy{edit: func(j *pb.ActivatedJob) {
			mu.Lock()
			defer mu.Unlock()
			if out[j.GetKey()] {
				return
			}
			if out[j.GetKey()] = true; len(out) == racers {
				close(all)
			}
		}}, zeebe.Config{})
		d.first = func(ctx context.Context) error {
			select {
			case <-all:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		answers := map[string]int{}
		s.eng.Intercept("CompleteJob", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
			resp, err := next(ctx)
			if r, ok := req.(*pb.CompleteJobRequest); ok && err == nil {
				mu.Lock()
				defer mu.Unlock()
				answers[r.GetVariables()]++
			}
			return resp, err
		})
		var failed atomic.Int64
		s.eng.Intercept("FailJob", func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
			failed.Add(1)
			return next(ctx)
		})
		var ws []*worker.Worker
		for range workers {
			mux := worker.NewMux()
			mux.Handle("room.hold", d.handler())
			ws = append(ws, s.run(mux, worker.Config{MaxJobsActive: 12, Concurrency: 4, PollWait: time.Second, PollOnly: pollOnly, LockTimeout: 400 * time.Millisecond}))
		}
		if !pollOnly {
			for _, w := range ws {
				s.until("stream up", func() bool { return streamOf(w, "room.hold").Stream == worker.StreamUp })
			}
		}
		var keys []int64
		for range racers {
			keys = append(keys, s.createOf("one", "race", stayVars))
		}
		for _, k := range keys {
			s.instanceIs(k, "COMPLETED")
		}
		var streamed int64
		for _, w := range ws {
			streamed += streamOf(w, "room.hold").Streamed
		}
		mu.Lock()
		defer mu.Unlock()
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := s.rooms("race"); n != 1 || d.said["race:reserve"] != 1 || d.wrote["race:reserve"] != 1 {
			t.Errorf("%d rooms, %d runs, %d transactions of the handler; want one of each", n, d.said["race:reserve"], d.wrote["race:reserve"])
		}
		if want := map[string]int{`{"held":"R","run":1}`: racers}; !maps.Equal(answers, want) {
			t.Errorf("answers %v, want %v", answers, want)
		}
		if failed.Load() != 0 || pollOnly != (streamed == 0) {
			t.Errorf("%d jobs failed, %d came by stream", failed.Load(), streamed)
		}
	})
}
