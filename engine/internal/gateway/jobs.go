package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// ActivateJobs implements pb.GatewayServer: a long poll that ends with the first jobs.
func (s *Server) ActivateJobs(r *pb.ActivateJobsRequest, out pb.Gateway_ActivateJobsServer) error {
	if err := tenants("ActivateJobs", r.GetTenantIds()); err != nil {
		return err
	}
	wait := core.Milliseconds(r.GetRequestTimeout())
	if wait == 0 {
		wait = longPoll
	}
	req := core.Activation{
		Type: r.GetType(), Worker: r.GetWorker(), Timeout: core.Milliseconds(r.GetTimeout()),
		Max: int(r.GetMaxJobsToActivate()), Fetch: r.GetFetchVariable(),
	}
	jobs, err := s.broker.Activate(out.Context(), req, wait)
	if err != nil {
		return fail(err)
	}
	if len(jobs) == 0 {
		return nil
	}
	msg := &pb.ActivateJobsResponse{}
	for _, j := range jobs {
		msg.Jobs = append(msg.Jobs, activated(j))
	}
	if err := out.Send(msg); err != nil {
		s.broker.GiveBack(jobs)
		return err
	}
	return nil
}

// StreamActivatedJobs implements pb.GatewayServer: it pushes jobs as they
// become activatable, until the client or the engine ends it.
func (s *Server) StreamActivatedJobs(r *pb.StreamActivatedJobsRequest, out pb.Gateway_StreamActivatedJobsServer) error {
	if err := tenants("StreamActivatedJobs", r.GetTenantIds()); err != nil {
		return err
	}
	const text = "Expected to stream activated jobs with %s to be %s, but it was %s"
	if strings.TrimSpace(r.GetType()) == "" {
		return status.Errorf(codes.InvalidArgument, text, "type", "present", "blank")
	}
	if r.GetTimeout() < 1 {
		return status.Errorf(codes.InvalidArgument, text, "timeout", "greater than zero", fmt.Sprintf("'%d'", r.GetTimeout()))
	}
	st := s.broker.OpenStream(core.Activation{
		Type: r.GetType(), Worker: r.GetWorker(), Timeout: core.Milliseconds(r.GetTimeout()), Max: 1, Fetch: r.GetFetchVariable(),
	})
	defer s.broker.CloseStream(st)
	for {
		select {
		case j := <-st.Jobs():
			if out.Context().Err() != nil {
				s.broker.GiveBack([]*core.Activated{j})
				return status.FromContextError(out.Context().Err()).Err()
			}
			if err := s.broker.Settled(); err != nil {
				return fail(err)
			}
			if err := out.Send(activated(j)); err != nil {
				s.broker.GiveBack([]*core.Activated{j})
				return err
			}
		case <-out.Context().Done():
			return status.FromContextError(out.Context().Err()).Err()
		case <-s.broker.Done():
			return status.Error(codes.Unavailable, "the engine is closing")
		}
	}
}

func activated(j *core.Activated) *pb.ActivatedJob {
	return &pb.ActivatedJob{
		Key: j.Key, Type: j.Type, ProcessInstanceKey: j.Instance, BpmnProcessId: j.ProcessID, ProcessDefinitionVersion: j.Version,
		ProcessDefinitionKey: j.Process, ElementId: j.ElementID, ElementInstanceKey: j.Element, CustomHeaders: string(j.Headers),
		Worker: j.Worker, Retries: j.Retries, Deadline: j.Deadline.UnixMilli(), Variables: j.Variables, TenantId: DefaultTenant,
	}
}

// CompleteJob implements pb.GatewayServer.
func (s *Server) CompleteJob(_ context.Context, r *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	vars, err := document(r.GetVariables())
	if err != nil {
		return nil, err
	}
	if err := s.do(func(c *core.Core) error { return c.CompleteJob(r.GetJobKey(), vars) }); err != nil {
		return nil, err
	}
	return &pb.CompleteJobResponse{}, nil
}

// FailJob implements pb.GatewayServer.
func (s *Server) FailJob(_ context.Context, r *pb.FailJobRequest) (*pb.FailJobResponse, error) {
	vars, err := document(r.GetVariables())
	if err != nil {
		return nil, err
	}
	if err := s.do(func(c *core.Core) error {
		return c.FailJob(r.GetJobKey(), r.GetRetries(), r.GetErrorMessage(), core.Milliseconds(r.GetRetryBackOff()), vars)
	}); err != nil {
		return nil, err
	}
	return &pb.FailJobResponse{}, nil
}

// ThrowError implements pb.GatewayServer.
func (s *Server) ThrowError(_ context.Context, r *pb.ThrowErrorRequest) (*pb.ThrowErrorResponse, error) {
	vars, err := document(r.GetVariables())
	if err != nil {
		return nil, err
	}
	if err := s.do(func(c *core.Core) error {
		return c.ThrowError(r.GetJobKey(), r.GetErrorCode(), r.GetErrorMessage(), vars)
	}); err != nil {
		return nil, err
	}
	return &pb.ThrowErrorResponse{}, nil
}

// UpdateJobRetries implements pb.GatewayServer.
func (s *Server) UpdateJobRetries(_ context.Context, r *pb.UpdateJobRetriesRequest) (*pb.UpdateJobRetriesResponse, error) {
	if err := s.do(func(c *core.Core) error { return c.UpdateRetries(r.GetJobKey(), r.GetRetries()) }); err != nil {
		return nil, err
	}
	return &pb.UpdateJobRetriesResponse{}, nil
}

// UpdateJobTimeout implements pb.GatewayServer.
func (s *Server) UpdateJobTimeout(_ context.Context, r *pb.UpdateJobTimeoutRequest) (*pb.UpdateJobTimeoutResponse, error) {
	if err := s.do(func(c *core.Core) error {
		return c.UpdateTimeout(r.GetJobKey(), core.Milliseconds(r.GetTimeout()))
	}); err != nil {
		return nil, err
	}
	return &pb.UpdateJobTimeoutResponse{}, nil
}
