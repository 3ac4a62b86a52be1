package inbox

import (
	"fmt"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
)

// defaultMaxBytes leaves room above outbox.DefaultMaxBytes for what others publish: it is Kafka's default limit.
const defaultMaxBytes = 1 << 20

// leastMaxBytes is the least limit: the envelope alone takes some hundred bytes.
const leastMaxBytes = 1000

// Limits of what the inbox's tables index: PostgreSQL refuses an entry above 2,704 bytes, and a refused row would stop the group.
const (
	maxKeyBytes = 1000 // of a business key; a stager takes 200
	maxIDBytes  = 2000 // of what identifies a repeat, a business key among it
)

// indexable refuses a message whose repeats could not be recognised. Its business key was checked before.
func (m *message) indexable() error {
	if len(m.id) > maxIDBytes {
		return fmt.Errorf("%s: repeats are recognised by %d bytes, want at most %d", m.env.MessageType, len(m.id), maxIDBytes)
	}
	return nil
}

// fits refuses a message above the limit before anything of its body is
// decrypted, parsed or decoded, so that nobody's oversized message costs more than the row it is kept in.
func (i *Inbox) fits(d events.Delivery) error {
	if n := weigh(d.Record); n > i.cfg.MaxBytes {
		return outcome.Fatalf(ReasonTooLarge, "%d bytes of body and headers, want at most %d", n, i.cfg.MaxBytes)
	}
	return nil
}

// weigh gives the bytes of body and headers as they came from the producer:
// without the marks of a redelivery, so that what fitted once fits again.
func weigh(r events.Record) int {
	n := len(r.Body)
	for _, h := range r.Headers {
		switch h.Name {
		case events.HeaderRedriveID, events.HeaderReplayID, events.HeaderReplayMode, events.HeaderReplayGroup, events.HeaderPublishedAt:
		default:
			n += len(h.Name) + len(h.Value)
		}
	}
	return n
}

// byHeaders fills in what headers say of a message whose body was not read. What is no id is left out: tables of acts index it.
func (m *message) byHeaders() {
	m.env.MessageType = m.Header(events.HeaderEventType)
	if id := m.Header(events.HeaderEventID); events.ValidID(id) {
		m.env.MessageID = id
	}
}
