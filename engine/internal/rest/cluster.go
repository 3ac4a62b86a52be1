package rest

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// maxUpload is the limit of a deployment's body, in bytes.
const maxUpload = 16 << 20

func (s *server) topology(*http.Request) (any, error) {
	type partition struct {
		PartitionID int    `json:"partitionId"`
		Role        string `json:"role"`
		Health      string `json:"health"`
	}
	type broker struct {
		NodeID     int         `json:"nodeId"`
		Host       string      `json:"host"`
		Port       int32       `json:"port"`
		Partitions []partition `json:"partitions"`
		Version    string      `json:"version"`
	}
	return struct {
		Brokers               []broker `json:"brokers"`
		ClusterSize           int      `json:"clusterSize"`
		PartitionsCount       int      `json:"partitionsCount"`
		ReplicationFactor     int      `json:"replicationFactor"`
		GatewayVersion        string   `json:"gatewayVersion"`
		LastCompletedChangeID string   `json:"lastCompletedChangeId"`
	}{[]broker{{0, s.host, s.port, []partition{{1, "leader", "healthy"}}, s.version}}, 1, 1, 1, s.version, "-1"}, nil
}

func (s *server) status(*http.Request) (any, error) { return nil, nil }

func (s *server) me(*http.Request) (any, error) {
	return map[string]any{
		"username": "demo", "displayName": "demo", "email": "", "authorizedComponents": []string{"*"}, "tenants": []any{},
		"groups": []string{}, "roles": []string{}, "salesPlanType": "", "c8Links": map[string]string{}, "canLogout": false,
	}, nil
}

func (s *server) deploy(r *http.Request) (any, error) {
	mr, err := r.MultipartReader()
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "Expected a multipart/form-data body with 'resources': %v", err)
	}
	var resources []core.Resource
	for {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, problemf(http.StatusBadRequest, "Multipart body cannot be read: %v", err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, problemf(http.StatusRequestEntityTooLarge, "Part '%s' cannot be read: %v", part.FormName(), err)
		}
		switch part.FormName() {
		case "resources":
			resources = append(resources, core.Resource{Name: part.FileName(), Content: data})
		case "tenantId":
			if err := tenant(string(data)); err != nil {
				return nil, err
			}
		default:
			return nil, problemf(http.StatusBadRequest, "Request property [%s] cannot be parsed", part.FormName())
		}
	}
	var d core.Deployment
	if err := s.broker.Do(func(c *core.Core) (err error) {
		d, err = c.Deploy(resources, s.compat85)
		return err
	}); err != nil {
		return nil, err
	}
	type definition struct {
		ProcessDefinitionID      string `json:"processDefinitionId"`
		ProcessDefinitionVersion int32  `json:"processDefinitionVersion"`
		ProcessDefinitionKey     key    `json:"processDefinitionKey"`
		ResourceName             string `json:"resourceName"`
		TenantID                 string `json:"tenantId"`
	}
	type entry struct {
		ProcessDefinition definition `json:"processDefinition"`
	}
	out := struct {
		DeploymentKey key     `json:"deploymentKey"`
		TenantID      string  `json:"tenantId"`
		Deployments   []entry `json:"deployments"`
	}{key(d.Key), DefaultTenant, []entry{}}
	for _, p := range d.Processes {
		out.Deployments = append(out.Deployments, entry{definition{p.ID, p.Version, key(p.Key), p.Resource, DefaultTenant}})
	}
	return out, nil
}

// pinClock moves the clock to a time; unlike Zeebe's it goes on from there.
func (s *server) pinClock(r *http.Request) (any, error) {
	var in struct {
		Timestamp *number `json:"timestamp"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if in.Timestamp == nil || *in.Timestamp < 0 {
		return nil, problemf(http.StatusBadRequest, "The value for timestamp must be present and at least 0, in milliseconds since 1970.")
	}
	return nil, s.broker.SetClock(time.UnixMilli(int64(*in.Timestamp)))
}

func (s *server) resetClock(*http.Request) (any, error) {
	return nil, s.broker.ResetClock()
}

// advanceClock moves the clock forward by milliseconds. This route is the embedded engine's own.
func (s *server) advanceClock(r *http.Request) (any, error) {
	var in struct {
		Milliseconds number `json:"milliseconds"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if in.Milliseconds < 1 {
		return nil, problemf(http.StatusBadRequest, "The value for milliseconds is '%d' but must be greater than 0.", in.Milliseconds)
	}
	if err := s.broker.Advance(in.Milliseconds.milliseconds()); err != nil {
		return nil, err
	}
	return map[string]any{"now": core.Date(s.broker.Now())}, nil
}
