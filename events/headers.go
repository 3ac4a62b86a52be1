package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Transport headers that carry the rest of the envelope where the body is the
// data alone ([WireConfluent]), beside those of every message.
const (
	HeaderMessageKind        = "message_kind"
	HeaderProducerInstance   = "producer_instance"
	HeaderActorUserID        = "actor_user_id"
	HeaderActorContext       = "actor_context"
	HeaderActorServiceClient = "actor_service_client"
	HeaderEventClass         = "event_class"
	HeaderHTTPIdempotencyKey = "http_idempotency_key"
	HeaderIdempotencyKey     = "idempotency_key" // data.idempotencyKey, so that repeats are seen before the body is read
	HeaderCorrects           = "corrects"
	HeaderReplay             = "replay" // "true" for a message of an operation in replay mode
	HeaderContentType        = "content-type"
)

// ContentType is the media type of a record of that format.
func (f Format) ContentType() string {
	if f == FormatJSON {
		return "application/json"
	}
	return "application/" + string(f)
}

// RestHeaders are the headers of a message of [WireConfluent] that others do not have. Empty ones are left out.
func (e Envelope) RestHeaders(f Format, idempotencyKey string) []Header {
	all := []Header{
		{HeaderContentType, f.ContentType()}, {HeaderMessageKind, string(e.MessageKind)}, {HeaderEventClass, string(e.Metadata.EventClass)},
		{HeaderProducerInstance, e.ProducerInstance}, {HeaderActorUserID, e.Actor.UserID}, {HeaderActorContext, e.Actor.Context},
		{HeaderActorServiceClient, e.Actor.ServiceClient}, {HeaderHTTPIdempotencyKey, e.Metadata.HTTPIdempotencyKey},
		{HeaderIdempotencyKey, idempotencyKey}, {HeaderCorrects, e.Metadata.Corrects},
	}
	if e.Metadata.Replay {
		all = append(all, Header{HeaderReplay, "true"})
	}
	out := all[:0]
	for _, h := range all {
		if h.Value != "" {
			out = append(out, h)
		}
	}
	return out
}

// ParseRecord reads the envelope of a record whose body is not encrypted: from
// the body, or from the headers when the body is framed. Then Data is nil until
// a [Codec] decodes the body. Producers of other make need event_id, event_type
// and event_version only: without more the message is an event under its record's key. It refuses what [ParseEnvelope] refuses.
func ParseRecord(r Record) (Envelope, error) {
	if !Framed(r.Body) {
		return ParseEnvelope(r.Body)
	}
	e := Envelope{
		MessageID: r.Header(HeaderEventID), MessageKind: Kind(r.Header(HeaderMessageKind)), MessageType: r.Header(HeaderEventType),
		Producer: r.Header(HeaderProducer), ProducerInstance: r.Header(HeaderProducerInstance), TraceID: r.Header(HeaderTraceID),
		Actor: Actor{UserID: r.Header(HeaderActorUserID), Context: r.Header(HeaderActorContext), ServiceClient: r.Header(HeaderActorServiceClient)},
		Metadata: Metadata{
			BusinessKey: r.Header(HeaderBusinessKey), CorrelationID: r.Header(HeaderCorrelationID), OperationID: r.Header(HeaderOperationID),
			ProcessInstanceID: r.Header(HeaderProcessInstanceID), EventClass: Class(r.Header(HeaderEventClass)),
			HTTPIdempotencyKey: r.Header(HeaderHTTPIdempotencyKey), Corrects: r.Header(HeaderCorrects), Replay: r.Header(HeaderReplay) == "true",
		},
	}
	if e.MessageKind == "" {
		e.MessageKind = KindEvent
	}
	if e.Metadata.BusinessKey == "" {
		e.Metadata.BusinessKey = r.Key
	}
	var wrong []string
	check := func(name string, err error) {
		if err != nil {
			wrong = append(wrong, name)
		}
	}
	var err error
	e.MessageVersion, err = strconv.Atoi(r.Header(HeaderEventVersion))
	check(HeaderEventVersion+" (want a number)", err)
	if text := r.Header(HeaderSequence); text != "" {
		e.Metadata.Sequence, err = strconv.ParseInt(text, 10, 64)
		check(HeaderSequence+" (want a number)", err)
	}
	if text := r.Header(HeaderOccurredAt); text != "" {
		e.OccurredAt, err = time.Parse(time.RFC3339Nano, text)
		check(HeaderOccurredAt+" (want RFC 3339)", err)
	}
	for _, h := range r.Headers {
		if strings.ToValidUTF8(h.Value, "") != h.Value {
			wrong = append(wrong, h.Name+" (want UTF-8)")
		}
	}
	wrong = append(wrong, e.lacks(HeaderEventID, HeaderMessageKind, HeaderEventType, HeaderEventVersion, HeaderBusinessKey)...)
	if len(wrong) > 0 {
		return e, fmt.Errorf("message headers: missing or bad: %s", strings.Join(wrong, ", "))
	}
	return e, nil
}

// lacks lists what every consumer relies on and the envelope does not have, under the names given.
func (e Envelope) lacks(id, kind, messageType, version, key string) []string {
	var wrong []string
	if !ValidID(e.MessageID) {
		wrong = append(wrong, id+" (want a UUID)")
	}
	if e.MessageKind != KindEvent && e.MessageKind != KindCommand {
		wrong = append(wrong, kind+` (want "event" or "command")`)
	}
	if e.MessageType == "" {
		wrong = append(wrong, messageType)
	}
	if e.MessageVersion < 1 {
		wrong = append(wrong, version+" (want 1 or more)")
	}
	if e.Metadata.BusinessKey == "" {
		wrong = append(wrong, key)
	}
	return wrong
}
