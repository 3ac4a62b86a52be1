package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
)

// reasonRegistry marks the attempt that could not ask the registry: it is none of the message's.
const reasonRegistry = "schema_registry"

// registryRest is the least that a message waits for a registry that is down.
const registryRest = time.Second

// restFor is how long it waits: as after a first attempt, which it does not count as.
func restFor(e events.Entry) time.Duration {
	if len(e.Retry) == 0 {
		return registryRest
	}
	return max(registryRest, delay(e, 1, 0))
}

// needsCodec refuses routes that take framed bodies without a codec.
func (i *Inbox) needsCodec(e events.Entry) error {
	if e.Wire == events.WireConfluent && i.cfg.Codec == nil {
		return fmt.Errorf("codec: missing, and type %s v%d is of wire %s", e.Type, e.Version, e.Wire)
	}
	return nil
}

// read decodes the data of a framed message, outside any transaction where it
// can: it may have to ask the registry. What goes wrong is the end of the attempt that follows,
// in the place of the handler's answer, so that the key's order is kept like after any other.
func (i *Inbox) read(ctx context.Context, m *message) {
	if m.framed == nil || m.env.Data != nil {
		return
	}
	if i.cfg.Codec == nil {
		m.unread = outcome.Fatalf(ReasonSchema, "body is framed, but the inbox has no codec")
		return
	}
	data, err := i.cfg.Codec.Decode(ctx, m.env.MessageType, m.env.MessageVersion, m.framed)
	switch {
	case err == nil:
		m.env.Data = data
	case errors.Is(err, events.ErrSchemaUnavailable):
		m.unread = &outcome.Error{Class: outcome.Retryable, Reason: reasonRegistry, Err: err}
	case errors.Is(err, events.ErrSchemaUnknown):
		m.unread = &outcome.Error{Class: outcome.Retryable, Reason: ReasonSchemaID, Err: err}
	default:
		m.unread = &outcome.Error{Class: outcome.Fatal, Reason: ReasonSchema, Message: err.Error()}
	}
}

// outage reports an attempt that says nothing of the message.
func outage(oc *outcome.Error) bool {
	return oc.Class == outcome.Retryable && oc.Reason == reasonRegistry
}
