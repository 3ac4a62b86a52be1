package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Cases of the documentation pages "Job workers" and "Incidents" (components/concepts) and "Zeebe API (gRPC)": the RPCs of jobs.

func TestJob_CompleteTwice(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: CompleteJob of a completed job is NOT_FOUND")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.work("work", "")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.NotFound, fmt.Sprintf("Command 'COMPLETE' rejected with code 'NOT_FOUND': Expected to complete job with key '%d', but no such job was found", j.GetKey()))
	z.state(k, "COMPLETED")
}

func TestJob_UnknownKey(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: job commands with an unknown key are NOT_FOUND")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	for name, call := range map[string]func() error{
		"complete": func() error { _, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: 1}); return err },
		"fail":     func() error { _, err := z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: 1}); return err },
		"throw an error for": func() error {
			_, err := z.ThrowError(z.ctx, &pb.ThrowErrorRequest{JobKey: 1, ErrorCode: "X"})
			return err
		},
	} {
		z.refused(call(), codes.NotFound, fmt.Sprintf("Expected to %s job with key '1', but no such job was found", name))
	}
	_, err := z.UpdateJobRetries(z.ctx, &pb.UpdateJobRetriesRequest{JobKey: 1, Retries: 1})
	z.refused(err, codes.NotFound, "Expected to update retries for job with key '1', but no such job was found")
	_, err = z.UpdateJobTimeout(z.ctx, &pb.UpdateJobTimeoutRequest{JobKey: 1, Timeout: 1})
	z.refused(err, codes.NotFound, "Expected to update job deadline with key '1'")
	z.complete(j, "") // the other job is untouched
	z.state(k, "COMPLETED")
}

func TestJob_CompleteWithoutActivation(t *testing.T) {
	t.Parallel()
	z := open(t, "job-workers: a job may be completed without being activated")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	jobs := z.found("jobs", item{"processInstanceKey": str(k)}, 1)
	if jobs[0]["state"] != "CREATED" {
		t.Fatalf("jobs: %v, want one CREATED", jobs)
	}
	if _, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: keyOf(jobs[0], "jobKey")}); err != nil {
		t.Fatal(err)
	}
	z.state(k, "COMPLETED")
}

func TestJob_FailWithRetriesComesBackAtOnce(t *testing.T) {
	t.Parallel()
	z := open(t, "job-workers: a failed job with retries left can be activated again; the worker says how many are left")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	if j.GetRetries() != 3 {
		t.Errorf("retries: got %d, want the default 3", j.GetRetries())
	}
	z.fail(j, 7, "again")
	again := z.job("work")
	if again.GetKey() != j.GetKey() || again.GetRetries() != 7 {
		t.Errorf("got job %d with %d retries, want %d with 7: retries are absolute", again.GetKey(), again.GetRetries(), j.GetKey())
	}
	z.noIncident(k)
	z.complete(again, "")
	z.state(k, "COMPLETED")
}

func TestJob_FailWithoutRetriesRaisesIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "issue-16484: a job without retries is an incident; it needs new retries before it can be resolved")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	z.fail(j, 0, "no room")
	inc := z.incident(k, "JOB_NO_RETRIES", "no room")
	if inc["errorMessage"] != "no room" || inc["elementId"] != "work" || keyOf(inc, "jobKey") != j.GetKey() {
		t.Errorf("incident: %v", inc)
	}
	z.none("work")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.FailedPrecondition, "but it is in state 'FAILED'")
	_, err = z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.FailedPrecondition, "Expected to fail job with key")
	_, err = z.ResolveIncident(z.ctx, &pb.ResolveIncidentRequest{IncidentKey: keyOf(inc, "incidentKey")})
	z.refused(err, codes.FailedPrecondition, fmt.Sprintf("but job with key '%d' has no retries left. Please update the job retries and retry resolving the incident", j.GetKey()))
	if _, err := z.UpdateJobRetries(z.ctx, &pb.UpdateJobRetriesRequest{JobKey: j.GetKey(), Retries: 2}); err != nil {
		t.Fatal(err)
	}
	z.none("work")
	z.resolve(inc)
	z.noIncident(k)
	again := z.job("work")
	if again.GetKey() != j.GetKey() || again.GetRetries() != 2 {
		t.Errorf("after resolve: job %d retries %d, want %d and 2", again.GetKey(), again.GetRetries(), j.GetKey())
	}
	z.fail(again, 0, "")
	z.nextIncident(k, inc, "JOB_NO_RETRIES", "No more retries left.")
	z.element(k, "work", "ACTIVE")
}

func TestJob_BackoffDelays(t *testing.T) {
	t.Parallel()
	z := open(t, "job-workers: a retry back-off keeps the job away that long")
	z.needClock()
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	if _, err := z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: j.GetKey(), Retries: 1, RetryBackOff: 3_600_000}); err != nil {
		t.Fatal(err)
	}
	z.none("work")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.FailedPrecondition, "but it is in state 'FAILED'")
	z.advance(59 * time.Minute)
	z.none("work")
	z.advance(time.Minute)
	if again := z.work("work", ""); again.GetKey() != j.GetKey() {
		t.Errorf("got job %d, want %d", again.GetKey(), j.GetKey())
	}
	z.state(k, "COMPLETED")
}

func TestJob_TimeoutKeepsRetriesAndOldWorkerMayComplete(t *testing.T) {
	t.Parallel()
	z := open(t, "job-workers: a job that times out goes to another worker; whoever completes first wins")
	z.needClock()
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	z.advance(2 * time.Minute)
	again := z.job("work")
	if again.GetKey() != j.GetKey() || again.GetRetries() != j.GetRetries() {
		t.Errorf("got job %d retries %d, want %d and %d", again.GetKey(), again.GetRetries(), j.GetKey(), j.GetRetries())
	}
	z.complete(j, "") // the first worker, past its deadline
	z.state(k, "COMPLETED")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: again.GetKey()})
	z.refused(err, codes.NotFound, "no such job was found")
}

func TestJob_UpdateTimeoutExtends(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: UpdateJobTimeout counts from now and needs an activated job")
	z.needClock()
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	jobs := z.found("jobs", item{"processInstanceKey": str(k)}, 1)
	_, err := z.UpdateJobTimeout(z.ctx, &pb.UpdateJobTimeoutRequest{JobKey: keyOf(jobs[0], "jobKey"), Timeout: 1000})
	z.refused(err, codes.FailedPrecondition, "but it is not active")
	j := z.job("work")
	z.advance(50 * time.Second)
	if _, err := z.UpdateJobTimeout(z.ctx, &pb.UpdateJobTimeoutRequest{JobKey: j.GetKey(), Timeout: 60_000}); err != nil {
		t.Fatal(err)
	}
	z.advance(50 * time.Second)
	z.none("work")
	z.advance(11 * time.Second)
	if again := z.work("work", ""); again.GetKey() != j.GetKey() {
		t.Errorf("got job %d, want %d", again.GetKey(), j.GetKey())
	}
	z.state(k, "COMPLETED")
}

func TestJob_UpdateRetriesRefusesZero(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: UpdateJobRetries needs a positive number")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	_, err := z.UpdateJobRetries(z.ctx, &pb.UpdateJobRetriesRequest{JobKey: j.GetKey()})
	z.refused(err, codes.InvalidArgument, "positive amount of retries, but the amount given was '0'")
	z.complete(j, "")
	z.state(k, "COMPLETED")
}

func TestJob_FailVariablesAreLocal(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: FailJob sets its variables in the scope of the task")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", `{"x":1}`)
	j := z.job("work")
	if _, err := z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: j.GetKey(), Retries: 1, Variables: `{"x":2}`}); err != nil {
		t.Fatal(err)
	}
	z.variable(k, "x", "1")
	z.variable(j.GetElementInstanceKey(), "x", "2")
	if got := z.work("work", "").GetVariables(); got != `{"x":2}` {
		t.Errorf("variables: got %s, want the local value to shadow", got)
	}
	z.state(k, "COMPLETED")
}

func TestJob_ErrorMessageIsCut(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: FailJob keeps 10,000 characters of the message")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	z.fail(z.job("work"), 0, strings.Repeat("x", 20_000))
	msg, _ := z.incident(k, "JOB_NO_RETRIES", "xxx")["errorMessage"].(string)
	if len(msg) != 10_003 || !strings.HasSuffix(msg, "...") {
		t.Errorf("message: %d characters, want 10000 and \"...\"", len(msg))
	}
	z.none("work")
	z.state(k, "ACTIVE")
}

func TestJob_ThrowUncaughtWaitsWithIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "issue-21567: ThrowError without a catch event succeeds and raises UNHANDLED_ERROR_EVENT at the task")
	z.deploy("one.bpmn", model(errorDef("e1", "KNOWN"), process("p", start("s"), task("work"), boundary("b", "work", true, errorEvent("e1")), end("e"), end("eb"), flow("s", "work", "e"), flow("b", "eb"))))
	k := z.create("p", "")
	j := z.job("work")
	if _, err := z.ThrowError(z.ctx, &pb.ThrowErrorRequest{JobKey: j.GetKey(), ErrorCode: "X", ErrorMessage: "M"}); err != nil {
		t.Fatalf("an uncaught throw succeeds, got %v", err)
	}
	inc := z.incident(k, "UNHANDLED_ERROR_EVENT", "was not caught")
	if want := "Expected to throw an error event with the code 'X' with message 'M', but it was not caught. Available error events are [KNOWN]"; inc["errorMessage"] != want {
		t.Errorf("message: got %v, want %s", inc["errorMessage"], want)
	}
	if inc["elementId"] != "work" {
		t.Errorf("elementId: got %v, want work", inc["elementId"])
	}
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.FailedPrecondition, "but it is in state 'ERROR_THROWN'")
	z.resolve(inc)
	again := z.job("work")
	if again.GetKey() != j.GetKey() {
		t.Errorf("after resolve: job %d, want %d", again.GetKey(), j.GetKey())
	}
	z.throw(again, "KNOWN", "")
	z.state(k, "COMPLETED")
	z.element(k, "work", "TERMINATED")
}

func TestJob_ThrowWithoutAnyCatchEvent(t *testing.T) {
	t.Parallel()
	z := open(t, "error-events: the incident of an uncaught error says which codes are caught")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	z.throw(z.job("work"), "X", "")
	if got, want := z.incident(k, "UNHANDLED_ERROR_EVENT", "")["errorMessage"], "Expected to throw an error event with the code 'X', but it was not caught. No error events are available in the scope."; got != want {
		t.Errorf("message: got %v, want %s", got, want)
	}
}

func TestJob_CancelledInstanceTakesJobAndIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "incidents: cancelling an instance ends its jobs and resolves its incidents")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	z.throw(j, "FOO", "")
	inc := z.incident(k, "UNHANDLED_ERROR_EVENT", "was not caught")
	if _, err := z.CancelProcessInstance(z.ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: k}); err != nil {
		t.Fatal(err)
	}
	z.none("work")
	z.state(k, "TERMINATED")
	z.noIncident(k)
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.NotFound, "no such job was found")
	_, err = z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.NotFound, "no such job was found")
	_, err = z.UpdateJobRetries(z.ctx, &pb.UpdateJobRetriesRequest{JobKey: j.GetKey(), Retries: 1})
	z.refused(err, codes.NotFound, "no such job was found")
	_, err = z.ResolveIncident(z.ctx, &pb.ResolveIncidentRequest{IncidentKey: keyOf(inc, "incidentKey")})
	z.refused(err, codes.NotFound, "Expected to resolve incident with key")
	_, err = z.CancelProcessInstance(z.ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: k})
	z.refused(err, codes.NotFound, "Expected to cancel a process instance with key")
	z.found("jobs", item{"processInstanceKey": str(k), "state": "CANCELED"}, 1)
}

func TestJob_BackoffOfCancelledInstanceNeverEnds(t *testing.T) {
	t.Parallel()
	z := open(t, "job-workers: a job of a cancelled instance is not retried")
	z.needClock()
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	if _, err := z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: j.GetKey(), Retries: 1, RetryBackOff: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, err := z.CancelProcessInstance(z.ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: k}); err != nil {
		t.Fatal(err)
	}
	z.advance(time.Hour)
	z.none("work")
	z.state(k, "TERMINATED")
	z.found("jobs", item{"processInstanceKey": str(k), "state": "CANCELED"}, 1)
}

func TestActivate_Refusals(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: ActivateJobs needs a type, a time-out and a number")
	z.deploy("p.bpmn", model(process("p", start("s"), task("t"), end("e"), flow("s", "t", "e"))))
	k := z.create("p", "")
	for _, c := range []struct {
		name string
		req  *pb.ActivateJobsRequest
		text string
	}{
		{"max", &pb.ActivateJobsRequest{Type: "t", Timeout: 1}, "Expected to activate job batch with max jobs to activate to be greater than zero, but it was '0'"},
		{"timeout", &pb.ActivateJobsRequest{Type: "t", MaxJobsToActivate: 1}, "Expected to activate job batch with timeout to be greater than zero, but it was '0'"},
		{"type", &pb.ActivateJobsRequest{Type: " ", Timeout: 1, MaxJobsToActivate: 1}, "Expected to activate job batch with type to be present, but it was blank"},
		{"tenant", &pb.ActivateJobsRequest{Type: "t", Timeout: 1, MaxJobsToActivate: 1, TenantIds: []string{"other"}}, "multi-tenancy is disabled"},
	} {
		z.run(t, c.name, "grpc: ActivateJobs refuses: "+c.text, func(_ *testing.T, z *cluster) {
			s, err := z.ActivateJobs(z.ctx, c.req)
			if err == nil {
				_, err = s.Recv()
			}
			z.refused(err, codes.InvalidArgument, c.text)
		})
	}
	if j := z.work("t", ""); j.GetProcessInstanceKey() != k { // no refused call took the job
		t.Errorf("job of %d, want %d", j.GetProcessInstanceKey(), k)
	}
	z.state(k, "COMPLETED")
}

func TestActivate_BlankWorkerAndDefaultTenantAreFine(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: ActivateJobs takes a blank worker and the tenant <default>")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	s, err := z.ActivateJobs(z.ctx, &pb.ActivateJobsRequest{Type: "work", Timeout: 60_000, MaxJobsToActivate: 1, TenantIds: []string{"<default>"}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if got := m.GetJobs()[0].GetTenantId(); got != "<default>" {
		t.Errorf("tenant: got %q, want <default>", got)
	}
	z.complete(m.GetJobs()[0], "")
	z.state(k, "COMPLETED")
}

func TestActivate_FirstInFirstOutUpToMax(t *testing.T) {
	t.Parallel()
	z := open(t, "job-workers: jobs are activated in the order of their creation, up to the number asked for")
	z.deploy("one.bpmn", oneTask("one"))
	for range 5 {
		z.create("one", "")
	}
	jobs := z.activate("work", 3, patience)
	if len(jobs) != 3 {
		t.Fatalf("got %d jobs, want 3", len(jobs))
	}
	for i := 1; i < len(jobs); i++ {
		if jobs[i].GetKey() <= jobs[i-1].GetKey() {
			t.Errorf("job %d before %d, want ascending keys", jobs[i-1].GetKey(), jobs[i].GetKey())
		}
	}
	rest := z.activate("work", 10, patience)
	if len(rest) != 2 {
		t.Errorf("got %d jobs, want the other 2", len(rest))
	}
	z.none("work")
	for _, j := range append(jobs, rest...) {
		z.complete(j, "")
		z.state(j.GetProcessInstanceKey(), "COMPLETED")
	}
}

func TestActivate_FetchVariables(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: ActivateJobs fetches the named variables only")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", `{"a":1,"b":{"c":[1,2.50]}}`)
	s, err := z.ActivateJobs(z.ctx, &pb.ActivateJobsRequest{Type: "work", Timeout: 60_000, MaxJobsToActivate: 1, FetchVariable: []string{"b", "missing"}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.GetJobs()[0].GetVariables(), `{"b":{"c":[1,2.50]}}`; got != want {
		t.Errorf("variables: got %s, want %s", got, want)
	}
	z.complete(m.GetJobs()[0], "")
	z.state(k, "COMPLETED")
	z.variable(k, "a", "1")
}

func TestActivate_NoJobEndsWithoutMessage(t *testing.T) {
	t.Parallel()
	z := open(t, "job-workers: long polling ends without a job when its time is over")
	s, err := z.ActivateJobs(z.ctx, &pb.ActivateJobsRequest{Type: "t", Timeout: 1000, MaxJobsToActivate: 1, RequestTimeout: 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want EOF", err)
	}
	z.deploy("p.bpmn", model(process("p", start("s"), task("t"), end("e"), flow("s", "t", "e"))))
	k := z.create("p", "")
	z.work("t", "") // the poll that ended took nothing
	z.state(k, "COMPLETED")
}

func TestActivate_LongPollWakesUp(t *testing.T) {
	t.Parallel()
	z := open(t, "job-workers: long polling answers as soon as a job is there")
	z.deploy("one.bpmn", oneTask("one"))
	got := make(chan []*pb.ActivatedJob, 1)
	s, err := z.ActivateJobs(z.ctx, &pb.ActivateJobsRequest{Type: "work", Timeout: 60_000, MaxJobsToActivate: 5, RequestTimeout: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		m, err := s.Recv()
		if err != nil {
			t.Errorf("long poll: %v", err)
		}
		got <- m.GetJobs()
	}()
	k := z.create("one", "")
	jobs := <-got
	if len(jobs) != 1 || jobs[0].GetProcessInstanceKey() != k {
		t.Fatalf("got %v, want the job of instance %d", jobs, k)
	}
	z.complete(jobs[0], "")
	z.state(k, "COMPLETED")
}

func TestActivate_CancelledPollTakesNothing(t *testing.T) {
	t.Parallel()
	z := open(t, "issue-3585: the poll of a client that is gone takes no job")
	z.deploy("one.bpmn", oneTask("one"))
	ctx, cancel := context.WithCancel(z.ctx)
	s, err := z.ActivateJobs(ctx, &pb.ActivateJobsRequest{Type: "work", Timeout: 600_000, MaxJobsToActivate: 1, RequestTimeout: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Recv(); status.Code(err) != codes.Canceled {
		t.Fatalf("got %v, want CANCELED", err)
	}
	k := z.create("one", "")
	z.work("work", "") // within seconds, although the dead poll asked first
	z.state(k, "COMPLETED")
}

func TestStream_PushesOnlyNewJobs(t *testing.T) {
	t.Parallel()
	z := open(t, "job-streaming: a stream gets jobs that become available, the backlog is polled")
	z.deploy("one.bpmn", oneTask("one"))
	old := z.create("one", "")
	ctx, cancel := context.WithCancel(z.ctx)
	defer cancel()
	s, err := z.StreamActivatedJobs(ctx, &pb.StreamActivatedJobsRequest{Type: "work", Worker: "w", Timeout: 60_000})
	if err != nil {
		t.Fatal(err)
	}
	// The stream is open once a new job arrives on it; until then new jobs may go to the backlog.
	first := make(chan *pb.ActivatedJob, 1)
	go func() {
		j, err := s.Recv()
		if err != nil {
			t.Errorf("stream: %v", err)
		}
		first <- j
	}()
	var j *pb.ActivatedJob
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for j == nil {
		z.create("one", "")
		select {
		case j = <-first:
		case <-tick.C:
		}
	}
	if j.GetProcessInstanceKey() == old {
		t.Error("the stream delivered a job of the backlog")
	}
	if j.GetWorker() != "w" || j.GetDeadline() == 0 {
		t.Errorf("job: worker %q deadline %d", j.GetWorker(), j.GetDeadline())
	}
	if got := z.work("work", "").GetProcessInstanceKey(); got != old {
		t.Errorf("poll: got instance %d, want the backlog's %d", got, old)
	}
	z.state(old, "COMPLETED")
	z.complete(j, "")
	z.state(j.GetProcessInstanceKey(), "COMPLETED")
}

func TestStream_Refusals(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: StreamActivatedJobs needs a type and a time-out")
	for text, req := range map[string]*pb.StreamActivatedJobsRequest{
		"Expected to stream activated jobs with type to be present, but it was blank":            {Timeout: 1},
		"Expected to stream activated jobs with timeout to be greater than zero, but it was '0'": {Type: "t"},
	} {
		s, err := z.StreamActivatedJobs(z.ctx, req)
		if err == nil {
			_, err = s.Recv()
		}
		z.refused(err, codes.InvalidArgument, text)
	}
	z.alive()
}

func TestJob_HeadersTypeAndRetriesAsFEEL(t *testing.T) {
	t.Parallel()
	z := open(t, "service-tasks: job type and retries may be expressions, headers are static")
	z.deploy("p.bpmn", model(process("p", start("s"),
		`<bpmn:serviceTask id="a"><bpmn:extensionElements><zeebe:taskDefinition type="=&quot;do-&quot;+kind" retries="=n+1"/><zeebe:taskHeaders><zeebe:header key="k" value="v &amp; w"/></zeebe:taskHeaders></bpmn:extensionElements></bpmn:serviceTask>`,
		end("e"), flow("s", "a", "e"))))
	k := z.create("p", fmt.Sprintf(`{"kind":%q,"n":4}`, z.ns.name("x")))
	j := z.work("do-x", "")
	if j.GetRetries() != 5 || j.GetCustomHeaders() != `{"k":"v & w"}` {
		t.Errorf("retries %d headers %s", j.GetRetries(), j.GetCustomHeaders())
	}
	z.state(k, "COMPLETED")
}

func TestJob_TypeOfWrongKindIsAnIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "service-tasks: a job type that is no string is an incident EXTRACT_VALUE_ERROR")
	z.deploy("p.bpmn", model(process("p", start("s"), taskOf("a", "=kind"), end("e"), flow("s", "a", "e"))))
	k := z.create("p", `{"kind":7}`)
	inc := z.incident(k, "EXTRACT_VALUE_ERROR", "kind")
	if want := "Expected result of the expression 'kind' to be 'STRING', but was 'NUMBER'."; inc["errorMessage"] != want {
		t.Errorf("message: %v, want %s", inc["errorMessage"], want)
	}
	if _, err := z.SetVariables(z.ctx, &pb.SetVariablesRequest{ElementInstanceKey: k, Variables: fmt.Sprintf(`{"kind":%q}`, z.ns.name("seven"))}); err != nil {
		t.Fatal(err)
	}
	z.resolve(inc)
	z.work("seven", "")
	z.state(k, "COMPLETED")
}
