package seal

import (
	"time"

	"github.com/vitrip/journeyman/events"
)

// Wire gives the body that goes to the broker for a body as it is stored: opened
// when it was sealed, completed with the two facts of its row ([events.Finalise]),
// and sealed again when it was sealed end to end, which encrypted reports. id is
// the message's id, the context of all bodies of the outbox and the event log.
// The error wraps [ErrNoKey] or [ErrTampered] where that is the cause.
func Wire(keys Keys, stored []byte, id string, occurredAt time.Time, sequence int64) (body []byte, encrypted bool, err error) {
	mode, sealed := Sealed(stored)
	if sealed {
		if stored, err = Open(keys, stored, id); err != nil {
			return nil, false, err
		}
	}
	if body, err = events.Finalise(stored, occurredAt, sequence); err != nil || mode != EndToEnd {
		return body, false, err
	}
	body, err = Seal(keys, EndToEnd, body, id)
	return body, err == nil, err
}
