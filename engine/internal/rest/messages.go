package rest

import (
	"net/http"

	"github.com/vitrip/journeyman/engine/internal/core"
)

func (s *server) publish(r *http.Request) (any, error) {
	var in struct {
		Name           string `json:"name"`
		CorrelationKey string `json:"correlationKey"`
		TimeToLive     number `json:"timeToLive"`
		MessageID      string `json:"messageId"`
		Variables      vars   `json:"variables"`
		TenantID       string `json:"tenantId"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if err := tenant(in.TenantID); err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, problemf(http.StatusBadRequest, "No messageName provided.")
	}
	var got core.Correlated
	if err := s.broker.Do(func(c *core.Core) (err error) {
		got, err = c.Publish(core.Publication{
			Name: in.Name, CorrelationKey: in.CorrelationKey, ID: in.MessageID,
			TTL: in.TimeToLive.milliseconds(), Vars: in.Variables.doc,
		})
		return err
	}); err != nil {
		return nil, err
	}
	return map[string]any{"messageKey": key(got.Key), "tenantId": DefaultTenant}, nil
}

// correlate publishes a message that must find a receiver at once.
func (s *server) correlate(r *http.Request) (any, error) {
	var in struct {
		Name           string `json:"name"`
		CorrelationKey string `json:"correlationKey"`
		Variables      vars   `json:"variables"`
		TenantID       string `json:"tenantId"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if err := tenant(in.TenantID); err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, problemf(http.StatusBadRequest, "No messageName provided.")
	}
	var got core.Correlated
	if err := s.broker.Do(func(c *core.Core) (err error) {
		if got, err = c.Publish(core.Publication{Name: in.Name, CorrelationKey: in.CorrelationKey, Vars: in.Variables.doc}); err == nil && got.Instance == 0 {
			err = &core.RejectedError{Intent: "CORRELATE", Reason: core.NotFound, Text: "Expected to find subscription for message with name '" + in.Name + "' and correlation key '" + in.CorrelationKey + "', but none was found."}
		}
		return err
	}); err != nil {
		return nil, err
	}
	return map[string]any{"messageKey": key(got.Key), "processInstanceKey": key(got.Instance), "tenantId": DefaultTenant}, nil
}

func (s *server) broadcast(r *http.Request) (any, error) {
	var in struct {
		SignalName string `json:"signalName"`
		Variables  vars   `json:"variables"`
		TenantID   string `json:"tenantId"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	if err := tenant(in.TenantID); err != nil {
		return nil, err
	}
	if in.SignalName == "" {
		return nil, problemf(http.StatusBadRequest, "No signalName provided.")
	}
	var k int64
	if err := s.broker.Do(func(c *core.Core) error {
		k = c.Broadcast(in.SignalName, in.Variables.doc)
		return nil
	}); err != nil {
		return nil, err
	}
	return map[string]any{"signalKey": key(k), "tenantId": DefaultTenant}, nil
}
