package gateway

import (
	"context"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// resultTimeout is how long CreateProcessInstanceWithResult waits when the request says 0.
const resultTimeout = 10 * time.Second

func creation(r *pb.CreateProcessInstanceRequest) (core.Creation, error) {
	if err := tenant("CreateProcessInstance", r.GetTenantId()); err != nil {
		return core.Creation{}, err
	}
	vars, err := document(r.GetVariables())
	if err != nil {
		return core.Creation{}, err
	}
	c := core.Creation{ProcessKey: r.GetProcessDefinitionKey(), ProcessID: r.GetBpmnProcessId(), Version: r.GetVersion(), Vars: vars}
	for _, i := range r.GetStartInstructions() {
		c.Start = append(c.Start, i.GetElementId())
	}
	return c, nil
}

// CreateProcessInstance implements pb.GatewayServer.
func (s *Server) CreateProcessInstance(_ context.Context, r *pb.CreateProcessInstanceRequest) (*pb.CreateProcessInstanceResponse, error) {
	in, err := creation(r)
	if err != nil {
		return nil, err
	}
	var (
		inst *core.Instance
		p    *core.Process // a migration may change it as soon as the lock is free
	)
	if err := s.do(func(c *core.Core) (err error) {
		if inst, err = c.CreateInstance(in); err == nil {
			p = inst.Process
		}
		return err
	}); err != nil {
		return nil, err
	}
	return &pb.CreateProcessInstanceResponse{ProcessDefinitionKey: p.Key, BpmnProcessId: p.ID, Version: p.Version, ProcessInstanceKey: inst.Key, TenantId: DefaultTenant}, nil
}

// CreateProcessInstanceWithResult implements pb.GatewayServer: it answers when
// the instance completes, and only then.
func (s *Server) CreateProcessInstanceWithResult(ctx context.Context, r *pb.CreateProcessInstanceWithResultRequest) (*pb.CreateProcessInstanceWithResultResponse, error) {
	if r.GetRequest() == nil {
		return nil, status.Error(codes.InvalidArgument, "Expected a create process instance request, but none given")
	}
	in, err := creation(r.GetRequest())
	if err != nil {
		return nil, err
	}
	inst, wait, err := s.broker.CreateAndAwait(in, r.GetFetchVariables())
	if err != nil {
		return nil, fail(err)
	}
	defer s.broker.Forget(wait)
	d := core.Milliseconds(r.GetRequestTimeout())
	if d <= 0 {
		d = resultTimeout
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case vars := <-wait.Result():
		if err := s.broker.Settled(); err != nil {
			return nil, fail(err)
		}
		p := inst.Process
		return &pb.CreateProcessInstanceWithResultResponse{
			ProcessDefinitionKey: p.Key, BpmnProcessId: p.ID, Version: p.Version, ProcessInstanceKey: inst.Key,
			Variables: vars, TenantId: DefaultTenant,
		}, nil
	case <-t.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "Time out between gateway and broker: process instance '%d' did not complete within %s", inst.Key, d)
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-s.broker.Done():
		return nil, status.Error(codes.Unavailable, "the engine is closing")
	}
}

// CancelProcessInstance implements pb.GatewayServer.
func (s *Server) CancelProcessInstance(_ context.Context, r *pb.CancelProcessInstanceRequest) (*pb.CancelProcessInstanceResponse, error) {
	err := s.do(func(c *core.Core) error { return c.CancelInstance(r.GetProcessInstanceKey()) })
	if err != nil {
		return nil, err
	}
	return &pb.CancelProcessInstanceResponse{}, nil
}

// SetVariables implements pb.GatewayServer.
func (s *Server) SetVariables(_ context.Context, r *pb.SetVariablesRequest) (*pb.SetVariablesResponse, error) {
	vars, err := document(r.GetVariables())
	if err != nil {
		return nil, err
	}
	var key int64
	if err := s.do(func(c *core.Core) (err error) {
		key, err = c.SetVariables(r.GetElementInstanceKey(), vars, r.GetLocal())
		return err
	}); err != nil {
		return nil, err
	}
	return &pb.SetVariablesResponse{Key: key}, nil
}

// PublishMessage implements pb.GatewayServer.
func (s *Server) PublishMessage(_ context.Context, r *pb.PublishMessageRequest) (*pb.PublishMessageResponse, error) {
	if err := tenant("PublishMessage", r.GetTenantId()); err != nil {
		return nil, err
	}
	vars, err := document(r.GetVariables())
	if err != nil {
		return nil, err
	}
	var got core.Correlated
	if err := s.do(func(c *core.Core) (err error) {
		got, err = c.Publish(core.Publication{
			Name: r.GetName(), CorrelationKey: r.GetCorrelationKey(), ID: r.GetMessageId(),
			TTL: core.Milliseconds(r.GetTimeToLive()), Vars: vars,
		})
		return err
	}); err != nil {
		return nil, err
	}
	return &pb.PublishMessageResponse{Key: got.Key, TenantId: DefaultTenant}, nil
}

// BroadcastSignal implements pb.GatewayServer.
func (s *Server) BroadcastSignal(_ context.Context, r *pb.BroadcastSignalRequest) (*pb.BroadcastSignalResponse, error) {
	if err := tenant("BroadcastSignal", r.GetTenantId()); err != nil {
		return nil, err
	}
	vars, err := document(r.GetVariables())
	if err != nil {
		return nil, err
	}
	var key int64
	if err := s.do(func(c *core.Core) error {
		key = c.Broadcast(r.GetSignalName(), vars)
		return nil
	}); err != nil {
		return nil, err
	}
	return &pb.BroadcastSignalResponse{Key: key, TenantId: DefaultTenant}, nil
}

// ResolveIncident implements pb.GatewayServer.
func (s *Server) ResolveIncident(_ context.Context, r *pb.ResolveIncidentRequest) (*pb.ResolveIncidentResponse, error) {
	if err := s.do(func(c *core.Core) error { return c.ResolveIncident(r.GetIncidentKey()) }); err != nil {
		return nil, err
	}
	return &pb.ResolveIncidentResponse{}, nil
}

// ModifyProcessInstance implements pb.GatewayServer.
func (s *Server) ModifyProcessInstance(_ context.Context, r *pb.ModifyProcessInstanceRequest) (*pb.ModifyProcessInstanceResponse, error) {
	m := core.Modification{Instance: r.GetProcessInstanceKey()}
	for _, a := range r.GetActivateInstructions() {
		in := core.ActivateInstruction{ElementID: a.GetElementId(), Ancestor: a.GetAncestorElementInstanceKey()}
		for _, v := range a.GetVariableInstructions() {
			vars, err := document(v.GetVariables())
			if err != nil {
				return nil, err
			}
			in.Variables = append(in.Variables, core.VariableInstruction{Scope: v.GetScopeId(), Vars: vars})
		}
		m.Activate = append(m.Activate, in)
	}
	for _, t := range r.GetTerminateInstructions() {
		m.Terminate = append(m.Terminate, t.GetElementInstanceKey())
	}
	if err := s.do(func(c *core.Core) error { return c.Modify(m) }); err != nil {
		return nil, err
	}
	return &pb.ModifyProcessInstanceResponse{}, nil
}

// MigrateProcessInstance implements pb.GatewayServer.
func (s *Server) MigrateProcessInstance(_ context.Context, r *pb.MigrateProcessInstanceRequest) (*pb.MigrateProcessInstanceResponse, error) {
	plan := r.GetMigrationPlan()
	if plan == nil {
		return nil, status.Error(codes.InvalidArgument, "Expected to migrate a process instance with a migration plan, but none given")
	}
	m := core.Migration{Instance: r.GetProcessInstanceKey(), Target: plan.GetTargetProcessDefinitionKey()}
	for _, e := range plan.GetMappingInstructions() {
		m.Elements = append(m.Elements, core.ElementMapping{Source: e.GetSourceElementId(), Target: e.GetTargetElementId()})
	}
	if err := s.do(func(c *core.Core) error { return c.Migrate(m) }); err != nil {
		return nil, err
	}
	return &pb.MigrateProcessInstanceResponse{}, nil
}
