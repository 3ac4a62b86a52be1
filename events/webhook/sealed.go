package webhook

import (
	"fmt"

	"github.com/vitrip/journeyman/events/seal"
)

// SealedTables lists the tables of a schema whose messages may be encrypted, for [seal.Reseal].
func SealedTables(schema string) []seal.Table {
	return []seal.Table{{Name: schema + ".webhook_delivery", Context: "id"}}
}

// rest gives a message as it rests: encrypted for its delivery where there are keys.
func (w *Webhooks) rest(text []byte, delivery string) ([]byte, error) {
	if w.cfg.Keys == nil {
		return text, nil
	}
	body, err := seal.Seal(w.cfg.Keys, seal.AtRest, text, delivery)
	if err != nil {
		return nil, fmt.Errorf("webhook %s: %w", delivery, err)
	}
	return body, nil
}

// clear gives the message that rests as body. One that was staged without keys is as it was. The error wraps [seal.ErrNoKey] or
// [seal.ErrTampered].
func (w *Webhooks) clear(body []byte, delivery string) ([]byte, error) {
	if _, ok := seal.Sealed(body); !ok {
		return body, nil
	}
	text, err := seal.Open(w.cfg.Keys, body, delivery)
	if err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	return text, nil
}
