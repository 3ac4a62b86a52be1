package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/outbox"
)

// Webhooks stages the one message that tells a partner of the end of an operation. *[webhook.Webhooks] is one; its tables must
// be in the record store, whose transaction makes the answer final: who is told and asks gets that answer.
type Webhooks interface {
	Stage(ctx context.Context, tx *outbox.Tx, m webhook.Message) (endpoints int, err error)
}

// Completion is the data of the webhook message of type operation.completed, operation.failed or operation.expired.
type Completion struct {
	OperationID    string          `json:"operation_id"`
	OperationType  string          `json:"type"`
	IdempotencyKey string          `json:"idempotency_key"`
	State          string          `json:"state"`
	Location       string          `json:"location"`         // where the answer can be read, for its whole retention
	Answer         json.RawMessage `json:"answer,omitempty"` // the final answer; absent when it is too large for a message
}

// tellCompletion stages the completion of an operation. It is called once, in the transaction that made the record final.
func (s *Sagas) tellCompletion(ctx context.Context, tx *outbox.Tx, p Progress, key, state string) error {
	if s.cfg.Webhooks == nil {
		return nil
	}
	c := Completion{OperationID: p.SagaID, OperationType: p.SagaType, IdempotencyKey: key, State: state, Location: location(p.SagaID), Answer: p.Final}
	err := s.stageCompletion(ctx, tx, p.Tenant, *p.FinishedAt, c)
	if errors.Is(err, webhook.ErrTooLarge) {
		c.Answer = nil
		err = s.stageCompletion(ctx, tx, p.Tenant, *p.FinishedAt, c)
	}
	if err != nil {
		return fmt.Errorf("completion of %s: %w", p.SagaID, err)
	}
	return nil
}

func (s *Sagas) stageCompletion(ctx context.Context, tx *outbox.Tx, tenant string, at time.Time, c Completion) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = s.cfg.Webhooks.Stage(ctx, tx, webhook.Message{
		ID: c.OperationID + ":ended", Tenant: tenant, Type: "operation." + c.State, At: at, OperationID: c.OperationID, Data: data,
	})
	return err
}
