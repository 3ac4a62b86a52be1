package zeebe

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// Job is one activated job.
type Job struct {
	Key                int64
	Type               string
	ProcessID          string // bpmnProcessId
	ProcessVersion     int32
	ProcessKey         int64
	ProcessInstanceKey int64
	ElementID          string
	ElementInstanceKey int64
	Headers            string // JSON object of the task's headers
	Worker             string
	Retries            int32
	Deadline           time.Time // on the broker's clock: for display only, never compare it with ours
	Variables          string    // JSON document as received, not yet checked
	Tenant             string
}

// ActivateRequest asks for jobs of one type.
type ActivateRequest struct {
	Type      string
	Worker    string
	MaxJobs   int32
	Timeout   time.Duration // how long the jobs are ours
	Wait      time.Duration // long poll; 0 = answer at once
	Variables []string      // names to fetch; nil = all that are visible
	Tenants   []string
}

// Activate asks for jobs and waits up to req.Wait for the first. No job is an empty list and no
// error. Jobs that came before an error are returned with it: they are ours and must be used.
func (c *Conn) Activate(ctx context.Context, req ActivateRequest) ([]Job, error) {
	wait := req.Wait.Milliseconds()
	if req.Wait <= 0 {
		wait = -1 // 0 means the gateway's default
	}
	ctx, cancel := context.WithTimeout(ctx, max(req.Wait, 0)+c.cfg.Timeout)
	defer cancel()
	stream, err := c.client.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type: req.Type, Worker: req.Worker, Timeout: req.Timeout.Milliseconds(), MaxJobsToActivate: req.MaxJobs,
		FetchVariable: req.Variables, RequestTimeout: wait, TenantIds: req.Tenants,
	})
	if err != nil {
		return nil, wrap("ActivateJobs", err)
	}
	var jobs []Job
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return jobs, nil
		case err != nil:
			return jobs, wrap("ActivateJobs", err)
		}
		for _, j := range m.GetJobs() {
			jobs = append(jobs, jobOf(j))
		}
	}
}

func jobOf(j *pb.ActivatedJob) Job {
	return Job{
		Key: j.GetKey(), Type: j.GetType(), ProcessID: j.GetBpmnProcessId(), ProcessVersion: j.GetProcessDefinitionVersion(),
		ProcessKey: j.GetProcessDefinitionKey(), ProcessInstanceKey: j.GetProcessInstanceKey(), ElementID: j.GetElementId(),
		ElementInstanceKey: j.GetElementInstanceKey(), Headers: j.GetCustomHeaders(), Worker: j.GetWorker(), Retries: j.GetRetries(),
		Deadline: time.UnixMilli(j.GetDeadline()), Variables: j.GetVariables(), Tenant: j.GetTenantId(),
	}
}

// Complete completes a job. variables is a JSON object, "" = none.
func (c *Conn) Complete(ctx context.Context, jobKey int64, variables string) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.client.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: jobKey, Variables: variables})
	return wrap("CompleteJob", err)
}

// FailRequest fails a job. Retries is the number that remains: 0 raises an incident.
type FailRequest struct {
	JobKey    int64
	Retries   int32
	Message   string
	Backoff   time.Duration
	Variables string
}

// Fail fails a job. The engine has no owner check: see path rule 6 before calling it.
func (c *Conn) Fail(ctx context.Context, r FailRequest) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.client.FailJob(ctx, &pb.FailJobRequest{
		JobKey: r.JobKey, Retries: r.Retries, ErrorMessage: r.Message, RetryBackOff: r.Backoff.Milliseconds(), Variables: r.Variables,
	})
	return wrap("FailJob", err)
}

// Throw throws a BPMN error for a job. Success does not mean that a catch event exists: an uncaught
// error raises an incident.
func (c *Conn) Throw(ctx context.Context, jobKey int64, code, message, variables string) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.client.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: jobKey, ErrorCode: code, ErrorMessage: message, Variables: variables})
	return wrap("ThrowError", err)
}

// UpdateJobTimeout makes an activated job ours for d from now. FAILED_PRECONDITION: the job is not activated.
func (c *Conn) UpdateJobTimeout(ctx context.Context, jobKey int64, d time.Duration) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.client.UpdateJobTimeout(ctx, &pb.UpdateJobTimeoutRequest{JobKey: jobKey, Timeout: d.Milliseconds()})
	return wrap("UpdateJobTimeout", err)
}

// UpdateJobRetries sets the retries of a job, at least 1. It does not resolve an incident by itself.
func (c *Conn) UpdateJobRetries(ctx context.Context, jobKey int64, retries int32) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.client.UpdateJobRetries(ctx, &pb.UpdateJobRetriesRequest{JobKey: jobKey, Retries: retries})
	return wrap("UpdateJobRetries", err)
}
