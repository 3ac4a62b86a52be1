package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Message is what is told.
type Message struct {
	ID          string // of the fact: the same id is told to an endpoint once, however often it is staged
	Tenant      string
	Type        string
	At          time.Time
	OperationID string          // to find it again; "" = none
	Data        json.RawMessage // a JSON object
}

// body is what is sent, byte for byte the same at every attempt.
type body struct {
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// Stage writes a message down for each endpoint of its tenant that wants its type, in the caller's transaction, and gives how
// many there were. Nothing is sent before the commit. A message that was staged before changes nothing.
//
// Errors: a message without id, tenant, type or an object; one larger than [Config.MaxBody]. An endpoint that is not well-formed shows at its attempts.
func (w *Webhooks) Stage(ctx context.Context, tx *outbox.Tx, m Message) (endpoints int, err error) {
	if m.ID == "" || m.Tenant == "" || m.Type == "" || !bytes.HasPrefix(bytes.TrimSpace(m.Data), []byte("{")) {
		return 0, fmt.Errorf("stage webhook %q of type %q: ID, Tenant and Type must be set and Data be an object", m.ID, m.Type)
	}
	all, err := w.cfg.Directory.Endpoints(ctx, m.Tenant)
	if err != nil {
		return 0, fmt.Errorf("stage webhook %s: %w", m.ID, err)
	}
	var text []byte
	for _, e := range all {
		if !e.wants(m.Type) {
			continue
		}
		if text == nil {
			if text, err = json.Marshal(body{Type: m.Type, Timestamp: m.At.UTC().Truncate(time.Millisecond), Data: m.Data}); err != nil {
				return 0, fmt.Errorf("stage webhook %s: %w", m.ID, err)
			}
			if len(text) > w.cfg.MaxBody {
				return 0, fmt.Errorf("stage webhook %s: %w: %d bytes, at most %d", m.ID, ErrTooLarge, len(text), w.cfg.MaxBody)
			}
		}
		id := deliveryID(m.ID, e.ID)
		rests, err := w.rest(text, id)
		if err != nil {
			return endpoints, fmt.Errorf("stage webhook %s for %s: %w", m.ID, e.ID, err)
		}
		if _, err := tx.Exec(ctx, w.sql.stage, id, e.ID, m.Tenant, m.Type, m.OperationID, rests); err != nil {
			return endpoints, fmt.Errorf("stage webhook %s for %s: %w", m.ID, e.ID, err)
		}
		endpoints++
	}
	return endpoints, nil
}

// ErrTooLarge is wrapped when a message is larger than the configuration allows.
var ErrTooLarge = errors.New("message is too large")

// MaxBody is the largest message in bytes, around it the envelope's hundred or so.
func (w *Webhooks) MaxBody() int { return w.cfg.MaxBody }

// deliveryID is the webhook-id: of one fact and one endpoint, unpredictable to nobody and equal for nobody else.
func deliveryID(messageID, endpoint string) string {
	h := sha256.Sum256([]byte(fmt.Sprintf("%d:%s%s", len(messageID), messageID, endpoint)))
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h[:])[:26])
}

// View makes of an event what partners are told of it; false = nothing. It decides what leaves the house (spec E12): Data is
// sent as it is. ID may stay empty, it becomes that of the event.
type View func(m events.Received) (Message, bool)

// Forward gives a handler for a consumer's route (package events/inbox) that stages domain events for partners, in the
// consumer's transaction. Replays are not told.
func (w *Webhooks) Forward(view View) func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	return func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if m.Replay {
			return nil
		}
		out, ok := view(m)
		if !ok {
			return nil
		}
		if out.ID == "" {
			out.ID = m.MessageID
		}
		_, err := w.Stage(ctx, tx, out)
		if errors.Is(err, ErrTooLarge) {
			return outcome.NewFatal(err)
		}
		return err
	}
}
