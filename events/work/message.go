package work

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

//go:embed catalog.yaml
var catalog []byte

// Catalog is the catalog of the queue [MessageQueue], to be merged with the service's own.
func Catalog() (*events.Catalog, error) { return events.ParseCatalog(catalog) }

// MessageQueue is the queue of scheduled messages. Its runner has [Messages] among its queues.
const MessageQueue = "journeyman.messages"

// scheduled is a message as it waits.
type scheduled struct {
	Type        string          `json:"type"`
	Version     int             `json:"version"`
	Kind        events.Kind     `json:"kind"`
	BusinessKey string          `json:"business_key"`
	OccurredAt  time.Time       `json:"occurred_at"`
	Data        json.RawMessage `json:"data"`
	Corrects    string          `json:"corrects"`
}

// Schedule puts a message that is staged in the outbox when it is due, not before
// at. It is checked as in [outbox.Stager.Check] now, so that a mistake fails the transaction
// that makes it. id is for [Store.Cancel] with [MessageQueue]. The message's id derives from it:
// a crash at any place publishes one message. It takes its place in its key's order when it is
// due, and occurredAt is that time where the message has none.
func (s *Store) Schedule(ctx context.Context, tx Tx, stager *outbox.Stager, id string, at time.Time, o events.Origin, m events.Message) error {
	if m.BusinessKey == "" {
		m.BusinessKey = o.BusinessKey
	}
	if err := stager.Check(m); err != nil {
		return fmt.Errorf("work: schedule message %q: %w", id, err)
	}
	if m.BusinessKey == "" {
		return fmt.Errorf("work: schedule message %q: business key: empty, and the origin has none", id)
	}
	data, err := json.Marshal(m.Data)
	if err != nil {
		return fmt.Errorf("work: schedule message %q: %w", id, err)
	}
	return s.Put(ctx, tx, Item{
		Queue: MessageQueue, ID: id, Key: m.BusinessKey, At: at, Origin: o,
		Payload: scheduled{m.Type, m.Version, m.Kind, m.BusinessKey, m.OccurredAt, data, m.Corrects},
	})
}

// Messages is the queue that stages scheduled messages. Its runner needs a
// stager. A message that cannot be staged any more goes to the quarantine.
func Messages(concurrency int) Queue {
	return Queue{Name: MessageQueue, Concurrency: concurrency, Handler: Typed(func(_ context.Context, tx *outbox.Tx, _ Task, m scheduled) error {
		tx.Emit(events.Message{Type: m.Type, Version: m.Version, Kind: m.Kind, BusinessKey: m.BusinessKey, OccurredAt: m.OccurredAt, Data: m.Data, Corrects: m.Corrects})
		return nil
	})}
}
