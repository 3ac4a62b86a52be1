package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// caughtModel is a task with an error boundary for every code and a timer that ends it.
const caughtModel = `<?xml version="1.0" encoding="UTF-8"?>
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
    <bpmn:boundaryEvent id="refused" attachedToRef="reserve"><bpmn:outgoing>f4</bpmn:outgoing><bpmn:errorEventDefinition /></bpmn:boundaryEvent>
    <bpmn:endEvent id="e"><bpmn:incoming>f2</bpmn:incoming></bpmn:endEvent>
    <bpmn:endEvent id="x"><bpmn:incoming>f3</bpmn:incoming></bpmn:endEvent>
    <bpmn:endEvent id="r"><bpmn:incoming>f4</bpmn:incoming></bpmn:endEvent>
    <bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="reserve" /><bpmn:sequenceFlow id="f2" sourceRef="reserve" targetRef="e" />
    <bpmn:sequenceFlow id="f3" sourceRef="late" targetRef="x" /><bpmn:sequenceFlow id="f4" sourceRef="refused" targetRef="r" />
  </bpmn:process>
</bpmn:definitions>`

// TestRule14_everyKind: the answer of a job is lost on its way there, and a timer ends the task; or its reply is lost, and the engine has
// acted on it. For each kind of answer both end as they should: an effect that nobody will use any more is undone, and nothing that
// the process goes on with is.
func TestRule14_everyKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method string
		end          error // of the handler
		unknown      bool  // an external call whose result stays unknown past its SLA
		arrived      bool  // the reply is lost, not the answer
		instance     string
		held         int // effects that stand at the end
	}{
		{"complete arrived", "CompleteJob", nil, false, true, "COMPLETED", 1},
		{"complete lost", "CompleteJob", nil, false, false, "COMPLETED", 0},
		{"throw arrived", "ThrowError", worker.BusinessError("NO", "no"), false, true, "COMPLETED", 0},
		{"throw lost", "ThrowError", worker.BusinessError("NO", "no"), false, false, "COMPLETED", 0},
		{"throw of an unknown result arrived", "ThrowError", nil, true, true, "COMPLETED", 1},
		{"throw of an unknown result lost", "ThrowError", nil, true, false, "COMPLETED", 0},
		{"fail arrived", "FailJob", worker.Fatal(errors.New("no")), false, true, "ACTIVE", 0},
		{"fail lost", "FailJob", worker.Fatal(errors.New("no")), false, false, "COMPLETED", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if _, err := s.conn.Deploy(s.ctx, zeebe.Resource{Name: "one.bpmn", Content: []byte(caughtModel)}); err != nil {
				t.Fatal(err)
			}
			var calls, heal atomic.Int64
			s.eng.Intercept(tt.method, func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
				n := calls.Add(1)
				if tt.arrived {
					r, err := next(ctx)
					if n == 1 {
						err = status.Error(codes.Unavailable, "the reply was lost")
					}
					return r, err
				}
				if heal.Load() == 0 {
					return nil, status.Error(codes.Unavailable, "the answer was lost")
				}
				return next(ctx)
			})
			var held atomic.Int64
			mux := worker.NewMux()
			if tt.unknown {
				mux.Handle("room.hold", worker.External(worker.Remote[hold, map[string]any, map[string]any]{
					Call: func(context.Context, worker.Call[hold]) (map[string]any, error) {
						held.Add(1)
						return nil, worker.Unknown(errors.New("time-out after send"))
					},
					Resolve: func(context.Context, worker.Call[hold]) (map[string]any, error) { return map[string]any{"id": 1}, nil },
				}, worker.KeyValidFor(time.Hour), worker.SLA(time.Nanosecond), worker.Orphan(worker.Undo), worker.CompensatedBy("room.free", worker.RemoteUndo[hold, map[string]any]{
					Call: func(context.Context, string, worker.UndoOf[hold, map[string]any]) error { held.Add(-1); return nil },
				})))
			} else {
				mux.Handle("room.hold", worker.Transactional(func(ctx context.Context, tx *worker.Tx, j worker.Job[hold]) (map[string]any, error) {
					if _, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1)`, j.OperationID); err != nil {
						return nil, err
					}
					return nil, tt.end
				}, worker.Orphan(worker.Undo), worker.CompensatedByTx("room.free", func(ctx context.Context, tx *worker.Tx, u worker.UndoOf[hold, map[string]any]) error {
					_, err := tx.Exec(ctx, `DELETE FROM room WHERE operation_id = $1`, u.OperationID)
					return err
				})))
			}
			s.run(mux, worker.Config{MaxJobsActive: 8, Concurrency: 2, PollWait: time.Second, Elements: s.rest, SweepEvery: 100 * time.Millisecond, NoBreaker: true})
			k := s.create("a")
			s.until("the answer was tried", func() bool { return calls.Load() >= 1 })
			if !tt.arrived {
				s.eng.AdvanceClock(2 * time.Hour) // the timer ends the task
				s.instanceIs(k, "COMPLETED")
				heal.Store(1)
			}
			s.until("the answer is settled", func() bool { return s.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
			s.instanceIs(k, tt.instance)
			got := int(held.Load())
			if !tt.unknown {
				got = s.count(`SELECT count(*) FROM room`)
			}
			if got != tt.held {
				t.Errorf("%d effects stand, want %d", got, tt.held)
			}
			if tt.method == "FailJob" && tt.arrived {
				if n := s.count(`SELECT count(*) FROM journeyman.operation WHERE orphan <> ''`); n != 0 || s.incident(k).JobKey == 0 {
					t.Errorf("%d orphans, want none and the incident", n)
				}
			}
		})
	}
}
