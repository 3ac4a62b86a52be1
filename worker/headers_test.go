package worker_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// changed deploys a model in which old stands for something else.
func (s *site) changed(model, old, with string) {
	s.t.Helper()
	if strings.Count(model, old) != 1 {
		s.t.Fatalf("%q is not once in the model", old)
	}
	if _, err := s.conn.Deploy(s.ctx, zeebe.Resource{Name: "one.bpmn", Content: []byte(strings.Replace(model, old, with, 1))}); err != nil {
		s.t.Fatal(err)
	}
}

// TestHeaders: the task headers of the model come to the handler, whatever its shape.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{"transactional", "batch", "external"} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			const task = `<zeebe:taskDefinition type="room.hold" retries="3" />`
			s.changed(model, task, task+`<zeebe:taskHeaders><zeebe:header key="region" value="eu" /><zeebe:header key="rule" value="bed &amp; breakfast" /></zeebe:taskHeaders>`)
			seen := make(chan map[string]string, 1)
			mux := worker.NewMux()
			switch shape {
			case "transactional":
				mux.Handle("room.hold", worker.Transactional(func(_ context.Context, _ *worker.Tx, j worker.Job[hold]) (map[string]any, error) {
					seen <- j.Headers
					return nil, nil
				}, worker.NoEffect()))
			case "batch":
				mux.Handle("room.hold", worker.Batch(5, func(_ context.Context, _ *worker.Tx, jobs []worker.Job[hold]) ([]worker.BatchEnd[map[string]any], error) {
					seen <- jobs[0].Headers
					return make([]worker.BatchEnd[map[string]any], len(jobs)), nil
				}, worker.NoEffect()))
			default:
				mux.Handle("room.hold", worker.External(worker.Remote[hold, map[string]any, map[string]any]{
					Call: func(_ context.Context, c worker.Call[hold]) (map[string]any, error) {
						seen <- c.Headers
						return map[string]any{}, nil
					},
				}, worker.NoEffect(), worker.KeyValidFor(time.Hour)))
			}
			s.run(mux, worker.Config{MaxJobsActive: 8, Concurrency: 2, PollWait: time.Second})
			s.instanceIs(s.create("a"), "COMPLETED")
			if got, want := <-seen, map[string]string{"region": "eu", "rule": "bed & breakfast"}; !maps.Equal(got, want) {
				t.Errorf("headers %v, want %v", got, want)
			}
		})
	}
}

// TestBusinessError_variables: what a refusal says comes to the process where its error boundary maps it, and stays out of it otherwise.
func TestBusinessError_variables(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const boundary = `<bpmn:boundaryEvent id="refused" attachedToRef="reserve">`
	s.changed(caughtModel, boundary, boundary+`<bpmn:extensionElements><zeebe:ioMapping><zeebe:output source="=left" target="left" /></zeebe:ioMapping></bpmn:extensionElements>`)
	s.start(func(context.Context, *worker.Tx, worker.Job[hold]) (map[string]any, error) {
		return nil, worker.BusinessError("SOLD_OUT", "none left", worker.WithVariables(map[string]any{"left": 3, "clerk": "Ann"}))
	}, nil)
	k := s.create("a")
	s.instanceIs(k, "COMPLETED")
	e, err := s.rest.SearchElementInstances(s.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(k), "elementId": "r"}})
	if err != nil || len(e.Items) != 1 {
		t.Errorf("the process did not go the way of the refusal: %+v, %v", e.Items, err)
	}
	for name, want := range map[string]string{"left": "3", "clerk": ""} {
		v, err := s.rest.SearchVariables(s.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(k), "scopeKey": rest.Key(k), "name": name}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(v.Items) > 0 {
			got = v.Items[0].Value
		}
		if got != want {
			t.Errorf("the process has %s = %q, want %q", name, got, want)
		}
	}
}
