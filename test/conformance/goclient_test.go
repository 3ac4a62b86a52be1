package conformance

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/entities"
	"github.com/camunda/zeebe/clients/go/v8/pkg/worker"
	"github.com/camunda/zeebe/clients/go/v8/pkg/zbc"
)

// zbc is the Go client of the Zeebe project, unmodified.
func (z *cluster) zbc() zbc.Client {
	z.t.Helper()
	c, err := zbc.NewClient(&zbc.ClientConfig{GatewayAddress: z.addr, UsePlaintextConnection: true, DialOpts: z.dial})
	if err != nil {
		z.t.Fatal(err)
	}
	z.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			z.t.Error(err)
		}
	})
	return c
}

// handling opens a worker of the client; it is closed before the client is.
func (z *cluster) handling(c zbc.Client, jobType string, handle worker.JobHandler) {
	z.t.Helper()
	w := c.NewJobWorker().JobType(jobType).Handler(handle).Concurrency(1).PollInterval(10 * time.Millisecond).RequestTimeout(500 * time.Millisecond).Open() // short polls: Close waits for the last one
	z.t.Cleanup(func() {
		w.Close()
		w.AwaitClose()
	})
}

func TestOfficialGoClient_DeployStartFailResolveMessageFinish(t *testing.T) {
	t.Parallel()
	z := open(t, "clients: deploy, start, fail to an incident, new retries, resolve, publish a message, finish")
	c := z.zbc()
	if _, err := c.NewDeployResourceCommand().AddResource([]byte(model(messageDef("m", "paid", "=order"), process("p", start("s"), task("work"), catchEvent("wait", messageEvent("m")), task("ship"), end("e"), flow("s", "work", "wait", "ship", "e")))), "p.bpmn").Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	cmd, err := c.NewCreateInstanceCommand().BPMNProcessId("p").LatestVersion().VariablesFromMap(map[string]any{"order": "o1"})
	if err != nil {
		t.Fatal(err)
	}
	started, err := cmd.Send(z.ctx)
	if err != nil {
		t.Fatal(err)
	}
	k := started.GetProcessInstanceKey()
	var first sync.Once
	z.handling(c, "work", func(jc worker.JobClient, job entities.Job) {
		failed := false
		first.Do(func() {
			failed = true
			if _, err := jc.NewFailJobCommand().JobKey(job.GetKey()).Retries(0).ErrorMessage("no room").Send(z.ctx); err != nil {
				t.Error(err)
			}
		})
		if failed {
			return
		}
		if _, err := jc.NewCompleteJobCommand().JobKey(job.GetKey()).Send(z.ctx); err != nil {
			t.Error(err)
		}
	})
	inc := z.incident(k, "JOB_NO_RETRIES", "no room")
	if _, err := c.NewUpdateJobRetriesCommand().JobKey(keyOf(inc, "jobKey")).Retries(1).Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.NewResolveIncidentCommand().IncidentKey(keyOf(inc, "incidentKey")).Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	z.element(k, "wait", "ACTIVE")
	if _, err := c.NewPublishMessageCommand().MessageName("paid").CorrelationKey("o1").TimeToLive(time.Minute).Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	jobs, err := c.NewActivateJobsCommand().JobType("ship").MaxJobsToActivate(1).WorkerName("ship").Send(z.ctx)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("activate: %v, %v, want one job", jobs, err)
	}
	if _, err := c.NewCompleteJobCommand().JobKey(jobs[0].GetKey()).Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	z.state(k, "COMPLETED")
	z.noIncident(k)
}

func TestOfficialGoClient_ThrowAndCancel(t *testing.T) {
	t.Parallel()
	z := open(t, "clients: a worker throws an error that a boundary event catches; an instance is cancelled")
	c := z.zbc()
	if _, err := c.NewDeployResourceCommand().AddResource([]byte(model(errorDef("er", "FULL"), process("p", start("s"), task("work"), boundary("b", "work", true, errorEvent("er")), task("instead"), end("e"), end("e2"), flow("s", "work", "e"), flow("b", "instead", "e2")))), "p.bpmn").Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	started, err := c.NewCreateInstanceCommand().BPMNProcessId("p").LatestVersion().Send(z.ctx)
	if err != nil {
		t.Fatal(err)
	}
	k := started.GetProcessInstanceKey()
	z.handling(c, "work", func(jc worker.JobClient, job entities.Job) {
		if _, err := jc.NewThrowErrorCommand().JobKey(job.GetKey()).ErrorCode("FULL").ErrorMessage("sold out").Send(z.ctx); err != nil {
			t.Error(err)
		}
	})
	z.element(k, "instead", "ACTIVE")
	z.element(k, "work", "TERMINATED")
	if _, err := c.NewCancelInstanceCommand().ProcessInstanceKey(k).Send(z.ctx); err != nil {
		t.Fatal(err)
	}
	z.state(k, "TERMINATED")
}

// A streaming worker of the client gets jobs that become available after it opened.
func TestOfficialGoClient_Streams(t *testing.T) {
	t.Parallel()
	z := open(t, "clients: a worker with streaming handles jobs that are pushed to it")
	c := z.zbc()
	z.deploy("one.bpmn", oneTask("one"))
	ctx, cancel := context.WithCancel(z.ctx)
	jobs := make(chan entities.Job, 10)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.NewStreamJobsCommand().JobType("work").Consumer(jobs).WorkerName("stream").Send(ctx) //nolint:errcheck // ends when it is cancelled
	}()
	defer func() {
		cancel()
		<-ended
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		z.create("one", "")
		select {
		case job := <-jobs:
			if _, err := c.NewCompleteJobCommand().JobKey(job.GetKey()).Send(z.ctx); err != nil {
				t.Fatal(err)
			}
			z.state(job.GetProcessInstanceKey(), "COMPLETED")
			return
		case <-tick.C:
		}
	}
}
