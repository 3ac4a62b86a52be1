package inbox

import (
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outcome"
)

// bound is what a body that rests in the inbox's tables is bound to.
func bound(group string, p events.Position) string {
	return fmt.Sprintf("%s\n%s/%d/%d", group, p.Topic, p.Partition, p.Offset)
}

// clear gives the body a consumer works with: opened when it came encrypted.
// A missing key is a refusal, so that the message is parked and can be redriven
// when the key is there.
func (i *Inbox) clear(d events.Delivery) ([]byte, error) {
	switch mode, sealed := seal.Sealed(d.Body); {
	case !sealed:
		return d.Body, nil
	case mode == seal.AtRest: // of the inbox, and [Inbox.unrest] could not open it
		_, err := seal.Open(i.cfg.Keys, d.Body, bound(i.cfg.Group, d.Position))
		return nil, unopened(err)
	}
	body, err := seal.Open(i.cfg.Keys, d.Body, d.Header(events.HeaderEventID))
	if err != nil {
		return nil, unopened(err)
	}
	return body, nil
}

func unopened(err error) error {
	if errors.Is(err, seal.ErrTampered) {
		return outcome.Fatalf(ReasonSealed, "%v", err)
	}
	return outcome.NewBusiness(ReasonNoKey, err.Error())
}

// atRest gives the body as it is stored: encrypted where the catalog says so.
// Bodies of unknown types are encrypted as soon as any class is.
func (i *Inbox) atRest(m message) ([]byte, error) {
	if !i.cfg.Catalog.Encrypts() || m.entry.Type != "" && m.entry.Encryption == events.EncryptNone {
		return m.Body, nil
	}
	if _, sealed := seal.Sealed(m.Body); sealed {
		return m.Body, nil // as it came, or as it rested
	}
	return seal.Seal(i.cfg.Keys, seal.AtRest, m.Body, bound(i.cfg.Group, m.Position))
}

// unrest opens a body that rested. One that cannot be opened stays as it is: clear says why.
func (i *Inbox) unrest(m *message) {
	if mode, sealed := seal.Sealed(m.Body); sealed && mode == seal.AtRest {
		if body, err := seal.Open(i.cfg.Keys, m.Body, bound(i.cfg.Group, m.Position)); err == nil {
			m.Body = body
		}
	}
}

// Clear gives the body as a consumer would read it: opened when it is encrypted,
// at rest or by its producer.
func (d Dead) Clear(keys seal.Keys) ([]byte, error) {
	switch mode, sealed := seal.Sealed(d.Body); {
	case !sealed:
		return d.Body, nil
	case mode == seal.AtRest:
		return seal.Open(keys, d.Body, bound(d.Group, d.Position))
	default:
		return seal.Open(keys, d.Body, events.Record{Headers: d.Headers}.Header(events.HeaderEventID))
	}
}

// SealedTables lists the tables of a schema whose bodies may be encrypted, for
// [seal.Reseal]. A body that came encrypted from the broker is bound to its message's id, others to their place.
func SealedTables(schema string) []seal.Table {
	const context = `CASE WHEN get_byte(body, 4) = 101 THEN headers[array_position(headers, 'event_id') + 1]
		ELSE consumer || E'\n' || topic || '/' || partition || '/' || "offset" END`
	return []seal.Table{{Name: schema + ".inbox_retry", Context: context}, {Name: schema + ".inbox_dead", Context: context}}
}
