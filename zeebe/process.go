package zeebe

import (
	"context"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// ResolveIncident resolves an incident. FAILED_PRECONDITION: its job has no retries left.
func (c *Conn) ResolveIncident(ctx context.Context, incidentKey int64) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.client.ResolveIncident(ctx, &pb.ResolveIncidentRequest{IncidentKey: incidentKey})
	return wrap("ResolveIncident", err)
}

// Message is a message to publish. TTL 0 means: not buffered and, worse, no protection against a second
// publication; give the whole window in which it may be published again (path rule 15).
type Message struct {
	Name           string
	CorrelationKey string
	ID             string
	TTL            time.Duration
	Variables      string // JSON object, "" = none
	Tenant         string
}

// PublishMessage publishes a message. ALREADY_EXISTS: one with this id is stored.
func (c *Conn) PublishMessage(ctx context.Context, m Message) (key int64, err error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	r, err := c.client.PublishMessage(ctx, &pb.PublishMessageRequest{
		Name: m.Name, CorrelationKey: m.CorrelationKey, MessageId: m.ID, TimeToLive: m.TTL.Milliseconds(), Variables: m.Variables, TenantId: m.Tenant,
	})
	return r.GetKey(), wrap("PublishMessage", err)
}

// CancelInstance cancels a process instance. NOT_FOUND: it has ended.
func (c *Conn) CancelInstance(ctx context.Context, processInstanceKey int64) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.client.CancelProcessInstance(ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: processInstanceKey})
	return wrap("CancelProcessInstance", err)
}

// Resource is a file to deploy. Name ends in ".bpmn".
type Resource struct {
	Name    string
	Content []byte
}

// Deployed is one process of a deployment.
type Deployed struct {
	ProcessID    string
	Version      int32
	ProcessKey   int64
	ResourceName string
}

// Deploy deploys resources, all or none. The same content again gives the same version.
func (c *Conn) Deploy(ctx context.Context, resources ...Resource) ([]Deployed, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	req := &pb.DeployResourceRequest{}
	for _, r := range resources {
		req.Resources = append(req.Resources, &pb.Resource{Name: r.Name, Content: r.Content})
	}
	resp, err := c.client.DeployResource(ctx, req)
	if err != nil {
		return nil, wrap("DeployResource", err)
	}
	var out []Deployed
	for _, d := range resp.GetDeployments() {
		if p := d.GetProcess(); p != nil {
			out = append(out, Deployed{p.GetBpmnProcessId(), p.GetVersion(), p.GetProcessDefinitionKey(), p.GetResourceName()})
		}
	}
	return out, nil
}

// Instance is a created process instance.
type Instance struct {
	ProcessInstanceKey int64
	ProcessID          string
	Version            int32
	ProcessKey         int64
}

// CreateInstance creates an instance of the latest version. It is not idempotent: sagas start by message instead.
func (c *Conn) CreateInstance(ctx context.Context, processID, variables string) (Instance, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	r, err := c.client.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: processID, Version: -1, Variables: variables})
	return Instance{r.GetProcessInstanceKey(), r.GetBpmnProcessId(), r.GetVersion(), r.GetProcessDefinitionKey()}, wrap("CreateProcessInstance", err)
}

// SetVariables sets variables at a scope: of that scope alone when local, else propagated outwards.
func (c *Conn) SetVariables(ctx context.Context, elementInstanceKey int64, variables string, local bool) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.client.SetVariables(ctx, &pb.SetVariablesRequest{ElementInstanceKey: elementInstanceKey, Variables: variables, Local: local})
	return wrap("SetVariables", err)
}

// Topology is what the gateway knows of its cluster.
type Topology struct {
	GatewayVersion    string
	ClusterSize       int32
	Partitions        int32
	ReplicationFactor int32
	Brokers           []Broker
}

// Broker is one broker of a cluster.
type Broker struct {
	NodeID  int32
	Host    string
	Port    int32
	Version string
	Leads   int // partitions it leads
}

// Topology asks for the cluster's topology: the cheapest call, good for a health check.
func (c *Conn) Topology(ctx context.Context) (Topology, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	r, err := c.client.Topology(ctx, &pb.TopologyRequest{})
	if err != nil {
		return Topology{}, wrap("Topology", err)
	}
	t := Topology{GatewayVersion: r.GetGatewayVersion(), ClusterSize: r.GetClusterSize(), Partitions: r.GetPartitionsCount(), ReplicationFactor: r.GetReplicationFactor()}
	for _, b := range r.GetBrokers() {
		br := Broker{NodeID: b.GetNodeId(), Host: b.GetHost(), Port: b.GetPort(), Version: b.GetVersion()}
		for _, p := range b.GetPartitions() {
			if p.GetRole() == pb.Partition_LEADER {
				br.Leads++
			}
		}
		t.Brokers = append(t.Brokers, br)
	}
	return t, nil
}
