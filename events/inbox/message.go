package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
)

// message is a delivery on its way through the inbox, from the broker or from inbox_retry.
type message struct {
	events.Delivery
	env      events.Envelope
	entry    events.Entry
	route    Route
	id       string // what identifies a repeat
	print    []byte // fingerprint of the content
	framed   []byte // the body, opened, when the envelope travels in headers; nil otherwise
	unread   error  // why its data could not be read
	attempts int    // before this one
	retry    int64  // id in inbox_retry, 0 when it comes from the broker
	first    time.Time
	replay   replay // the zero value outside replays
	order    order
}

// ReasonEnvelope and the others say why a message went to inbox_dead, beside the reasons of package outcome.
const (
	ReasonEnvelope = "envelope"  // the body is no message
	ReasonTooLarge = "too_large" // more bytes than [Config].MaxBytes; its body was not looked at
	ReasonVersion  = "version"   // no handler knows the version (spec E6)
	ReasonPoisoned = "poisoned"  // attempts are used up
	ReasonEmit     = "emit"      // the handler emitted a message that cannot be staged
	ReasonGap      = "gap"       // parked: a message before it of its key did not come in time (spec E4)
	ReasonLate     = "late"      // parked: its key went on without it
	ReasonNoKey    = "no_key"    // parked: the key of its encryption is missing
	ReasonSealed   = "sealed"    // its encrypted body was changed, or belongs to another message
	ReasonSchema   = "schema"    // its body cannot be read by the schema it names, or names none
	ReasonSchemaID = "schema_id" // the registry did not come to know the schema it names, by the last attempt
)

// open parses a delivery. skip means that it is of no concern to this group. An
// error is FATAL and says why it can never be handled; what is known of the
// message is filled in all the same.
func (i *Inbox) open(d events.Delivery) (m message, skip bool, err error) {
	m.Delivery = d
	if err := i.fits(d); err != nil {
		m.byHeaders()
		return m, false, err
	}
	body, err := i.clear(d)
	if err != nil {
		m.byHeaders()
		return m, false, err
	}
	if events.Framed(body) {
		m.framed = body
	}
	m.env, err = events.ParseRecord(events.Record{Key: d.Key, Headers: d.Headers, Body: body})
	if err != nil {
		return m, false, &outcome.Error{Class: outcome.Fatal, Reason: ReasonEnvelope, Message: err.Error()}
	}
	m.id, m.print = strings.ToLower(m.env.MessageID), fingerprint(m.env)
	if m.framed != nil { // as it came, so that it is known before and whether or not it can be read
		m.print = digest(m.env, m.framed)
	}
	if m.env.Metadata.BusinessKey != d.Key {
		return m, false, outcome.Fatalf(ReasonEnvelope, "record key and metadata.businessKey differ")
	}
	if clean(d.Key) != d.Key || len(d.Key) > maxKeyBytes {
		return m, false, outcome.Fatalf(ReasonEnvelope, "business key of %d bytes, want at most %d of UTF-8 without NUL", len(d.Key), maxKeyBytes)
	}
	route, ok := i.routes[m.env.MessageType]
	if !ok {
		m.entry, _ = i.cfg.Catalog.Entry(m.env.MessageType, m.env.MessageVersion)
		if m.entry.OrderScope == "" || !i.scopes[m.entry.OrderScope] {
			return m, true, nil
		}
		m.route = Route{Handler: passOver}
		skip = i.replayed(&m)
		return m, skip, misplaced(errors.Join(m.indexable(), m.place()))
	}
	m.route = route
	if m.entry, ok = i.cfg.Catalog.Entry(m.env.MessageType, m.env.MessageVersion); !ok || !slices.Contains(route.Versions, m.env.MessageVersion) {
		return m, false, outcome.Fatalf(ReasonVersion, "%s version %d: the handler knows %v", m.env.MessageType, m.env.MessageVersion, route.Versions)
	}
	if m.id, err = i.identity(m); err != nil {
		return m, false, &outcome.Error{Class: outcome.Fatal, Reason: ReasonEnvelope, Message: err.Error()}
	}
	skip = i.replayed(&m)
	return m, skip, misplaced(errors.Join(m.indexable(), m.place()))
}

func misplaced(err error) error {
	if err == nil {
		return nil
	}
	return &outcome.Error{Class: outcome.Fatal, Reason: ReasonEnvelope, Message: err.Error()}
}

// identity is the text that is the same for repeats (spec D2).
func (i *Inbox) identity(m message) (string, error) {
	by := map[DedupBy]string{ByCatalog: m.entry.IdempotencyKey, ByEventID: events.DedupMessageID, ByOperationID: events.DedupOperationID}[i.cfg.DedupBy]
	switch by {
	case events.DedupOperationID:
		if m.env.Metadata.OperationID == "" {
			return "", fmt.Errorf("%s: metadata.operationId is empty, but repeats are recognised by it", m.env.MessageType)
		}
		if id := m.env.Metadata.OperationID; clean(id) != id {
			return "", fmt.Errorf("%s: metadata.operationId holds NUL", m.env.MessageType)
		}
		return "op:" + m.env.MessageType + ":" + m.env.Metadata.BusinessKey + ":" + m.env.Metadata.OperationID, nil
	case events.DedupData:
		var data struct {
			Key string `json:"idempotencyKey"`
		}
		if m.framed != nil {
			data.Key = m.Header(events.HeaderIdempotencyKey)
		} else if err := json.Unmarshal(m.env.Data, &data); err != nil {
			data.Key = ""
		}
		if data.Key == "" {
			return "", fmt.Errorf("%s: data.idempotencyKey is empty, but repeats are recognised by it", m.env.MessageType)
		}
		if clean(data.Key) != data.Key {
			return "", fmt.Errorf("%s: data.idempotencyKey holds NUL", m.env.MessageType)
		}
		return "key:" + m.env.MessageType + ":" + data.Key, nil
	default:
		return strings.ToLower(m.env.MessageID), nil
	}
}

// fingerprint covers what a repeat must have in common: type, version, business
// key and data in canonical JSON. Times, traces and sequence are not part of it.
func fingerprint(e events.Envelope) []byte { return digest(e, canonical(e.Data)) }

func digest(e events.Envelope, content []byte) []byte {
	h := sha256.New()
	var n [8]byte
	for _, part := range [][]byte{[]byte(e.MessageType), []byte(strconv.Itoa(e.MessageVersion)), []byte(e.Metadata.BusinessKey), content} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return h.Sum(nil)
}

// canonical sorts object keys and drops space; numbers keep their digits.
func canonical(raw json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// origin is on whose behalf a handler emits: the operation that goes through
// the message, under ids derived from this group and message (spec O7).
func (i *Inbox) origin(m message) events.Origin {
	instance, _ := strconv.ParseInt(m.env.Metadata.ProcessInstanceID, 10, 64)
	return events.Origin{
		OperationID: m.env.Metadata.OperationID, BusinessKey: m.env.Metadata.BusinessKey, CorrelationID: m.env.Metadata.CorrelationID,
		ProcessInstanceKey: instance, Traceparent: m.Header(events.HeaderTraceparent), HTTPIdempotencyKey: m.env.Metadata.HTTPIdempotencyKey,
		Actor: m.env.Actor, Replay: m.env.Metadata.Replay || m.replay.again, IDSeed: i.cfg.Group + "/" + m.id,
	}
}

// flat gives headers as they are stored.
func flat(headers []events.Header) []string {
	out := make([]string, 0, 2*len(headers))
	for _, h := range headers {
		out = append(out, clean(h.Name), clean(h.Value))
	}
	return out
}

// clean makes text storable in PostgreSQL, which takes neither NUL nor invalid
// UTF-8: a message from outside must not be able to stop the group by either.
func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

func paired(stored []string) []events.Header {
	out := make([]events.Header, 0, len(stored)/2)
	for n := 0; n+1 < len(stored); n += 2 {
		out = append(out, events.Header{Name: stored[n], Value: stored[n+1]})
	}
	return out
}
