// Package gateway serves the gRPC surface of Zeebe 8.5 over a broker, with the
// server stubs of the Zeebe Go client module.
package gateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine/internal/broker"
	"github.com/vitrip/journeyman/engine/internal/core"
)

// DefaultTenant is the only tenant there is.
const DefaultTenant = "<default>"

// longPoll is how long ActivateJobs waits when the request says 0.
const longPoll = 10 * time.Second

// Server implements pb.GatewayServer.
type Server struct {
	pb.UnimplementedGatewayServer
	broker   *broker.Broker
	compat85 bool
	version  string
	host     string
	port     int32
}

// New returns a server over b. With compat85 the deployment refuses what 8.5 does not know.
func New(b *broker.Broker, compat85 bool, version, host string, port int32) *Server {
	return &Server{broker: b, compat85: compat85, version: version, host: host, port: port}
}

// fail maps an error of the core to a gRPC status.
func fail(err error) error {
	if err == nil {
		return nil
	}
	var r *core.RejectedError
	if errors.As(err, &r) {
		code := codes.Internal
		switch r.Reason {
		case core.NotFound:
			code = codes.NotFound
		case core.InvalidState:
			code = codes.FailedPrecondition
		case core.InvalidArgument:
			code = codes.InvalidArgument
		case core.AlreadyExists:
			code = codes.AlreadyExists
		}
		return status.Error(code, r.Error())
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// document reads a variables field.
func document(text string) (core.Doc, error) {
	d, err := core.ParseDoc(text)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return d, nil
}

// tenant refuses every tenant but the default one: multi-tenancy is off.
func tenant(rpc, id string) error {
	if id == "" || id == DefaultTenant {
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "Expected to handle gRPC request %s with tenant identifier '%s', but multi-tenancy is disabled", rpc, id)
}

func tenants(rpc string, ids []string) error {
	for _, id := range ids {
		if err := tenant(rpc, id); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) do(fn func(c *core.Core) error) error { return fail(s.broker.Do(fn)) }

// Topology implements pb.GatewayServer: one broker with one healthy partition.
func (s *Server) Topology(context.Context, *pb.TopologyRequest) (*pb.TopologyResponse, error) {
	return &pb.TopologyResponse{
		Brokers: []*pb.BrokerInfo{{
			NodeId: 0, Host: s.host, Port: s.port, Version: s.version,
			Partitions: []*pb.Partition{{PartitionId: 1, Role: pb.Partition_LEADER, Health: pb.Partition_HEALTHY}},
		}},
		ClusterSize: 1, PartitionsCount: 1, ReplicationFactor: 1, GatewayVersion: s.version,
	}, nil
}

// DeployResource implements pb.GatewayServer.
func (s *Server) DeployResource(_ context.Context, r *pb.DeployResourceRequest) (*pb.DeployResourceResponse, error) {
	if err := tenant("DeployResource", r.GetTenantId()); err != nil {
		return nil, err
	}
	resources := make([]core.Resource, 0, len(r.GetResources()))
	for _, x := range r.GetResources() {
		if strings.HasSuffix(x.GetName(), ".dmn") || strings.HasSuffix(x.GetName(), ".form") {
			return nil, status.Errorf(codes.Unimplemented, "resource '%s': the embedded engine deploys BPMN only (no DMN, no forms)", x.GetName())
		}
		resources = append(resources, core.Resource{Name: x.GetName(), Content: x.GetContent()})
	}
	var d core.Deployment
	if err := s.do(func(c *core.Core) (err error) {
		d, err = c.Deploy(resources, s.compat85)
		return err
	}); err != nil {
		return nil, err
	}
	out := &pb.DeployResourceResponse{Key: d.Key, TenantId: DefaultTenant}
	for _, p := range d.Processes {
		out.Deployments = append(out.Deployments, &pb.Deployment{Metadata: &pb.Deployment_Process{Process: metadata(p)}})
	}
	return out, nil
}

// DeployProcess implements pb.GatewayServer (deprecated by Zeebe).
func (s *Server) DeployProcess(ctx context.Context, r *pb.DeployProcessRequest) (*pb.DeployProcessResponse, error) { //nolint:staticcheck // part of the service
	in := &pb.DeployResourceRequest{}
	for _, p := range r.GetProcesses() {
		in.Resources = append(in.Resources, &pb.Resource{Name: p.GetName(), Content: p.GetDefinition()})
	}
	d, err := s.DeployResource(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &pb.DeployProcessResponse{Key: d.GetKey()} //nolint:staticcheck // part of the service
	for _, m := range d.GetDeployments() {
		out.Processes = append(out.Processes, m.GetProcess())
	}
	return out, nil
}

// DeleteResource implements pb.GatewayServer.
func (s *Server) DeleteResource(_ context.Context, r *pb.DeleteResourceRequest) (*pb.DeleteResourceResponse, error) {
	if err := s.do(func(c *core.Core) error { return c.DeleteResource(r.GetResourceKey()) }); err != nil {
		return nil, err
	}
	return &pb.DeleteResourceResponse{}, nil
}

func metadata(p *core.Process) *pb.ProcessMetadata {
	return &pb.ProcessMetadata{BpmnProcessId: p.ID, Version: p.Version, ProcessDefinitionKey: p.Key, ResourceName: p.Resource, TenantId: DefaultTenant}
}
