package conformance

import (
	"sync/atomic"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"github.com/camunda/zeebe/clients/go/v8/pkg/worker"
)

// The Go client of the Zeebe project runs unmodified against the engine.
func TestOfficialGoClient(t *testing.T) {
	z := open(t, "clients: a job worker polls, hands jobs to its handler and completes them")
	client := z.zbc()
	if _, err := client.NewTopologyCommand().Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := client.NewDeployResourceCommand().AddResource([]byte(oneTask("one")), "one.bpmn").Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	const instances = 50
	var done atomic.Int32
	all := make(chan struct{})
	w := client.NewJobWorker().JobType("work").Handler(func(jc worker.JobClient, job entities.Job) {
		vars, err := job.GetVariablesAsMap()
		if err != nil || vars["x"] != 1.0 {
			t.Errorf("variables: %v, %v", vars, err)
		}
		cmd, err := jc.NewCompleteJobCommand().JobKey(job.GetKey()).VariablesFromMap(map[string]any{"y": 2})
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := cmd.Send(z.ctx); err != nil {
			t.Error(err)
		}
		if done.Add(1) == instances {
			close(all)
		}
	}).Concurrency(1).RequestTimeout(500_000_000).Open() // short polls: Close waits for the last one
	var last int64
	for range instances {
		cmd, err := client.NewCreateInstanceCommand().BPMNProcessId("one").LatestVersion().VariablesFromMap(map[string]any{"x": 1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := cmd.Send(z.ctx)
		if err != nil {
			t.Fatal(err)
		}
		last = r.GetProcessInstanceKey()
	}
	select {
	case <-all:
	case <-z.ctx.Done():
		t.Fatalf("%d of %d jobs done", done.Load(), instances)
	}
	w.Close()
	w.AwaitClose()
	z.state(last, "COMPLETED")
	z.variable(last, "y", "2")
}
