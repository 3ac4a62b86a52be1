package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Envelope is the JSON body of every message (spec E1).
type Envelope struct {
	MessageID        string          `json:"messageId"`
	MessageKind      Kind            `json:"messageKind"`
	MessageType      string          `json:"messageType"`
	MessageVersion   int             `json:"messageVersion"`
	OccurredAt       time.Time       `json:"occurredAt,omitzero"`
	Producer         string          `json:"producer"`
	ProducerInstance string          `json:"producerInstance"`
	TraceID          string          `json:"traceId"`
	Actor            Actor           `json:"actor"`
	Data             json.RawMessage `json:"data"`
	Metadata         Metadata        `json:"metadata"`
}

// Metadata is the envelope's part about the operation behind the message.
// BusinessKey is never empty. Sequence counts the messages of a business key
// from 1 without gaps; it is 0 until the relay has finalised the body.
type Metadata struct {
	BusinessKey        string `json:"businessKey"`
	CorrelationID      string `json:"correlationId"`
	OperationID        string `json:"operationId"`
	ProcessInstanceID  string `json:"processInstanceId,omitempty"`
	EventClass         Class  `json:"eventClass"`
	HTTPIdempotencyKey string `json:"httpIdempotencyKey,omitempty"`
	Corrects           string `json:"corrects,omitempty"`
	Replay             bool   `json:"replay,omitempty"`
	Sequence           int64  `json:"sequence,omitempty"`
}

// Names of transport headers (SRC4). Header event_id is the messageId.
const (
	HeaderEventID           = "event_id"
	HeaderEventType         = "event_type"
	HeaderEventVersion      = "event_version"
	HeaderOccurredAt        = "occurred_at"
	HeaderProducer          = "producer"
	HeaderBusinessKey       = "business_key"
	HeaderCorrelationID     = "correlation_id"
	HeaderTraceID           = "trace_id"
	HeaderProcessInstanceID = "process_instance_id"
	HeaderOperationID       = "operation_id"
	HeaderEnv               = "env"
	HeaderTraceparent       = "traceparent"
	HeaderSequence          = "sequence"

	// HeaderPreviousSequence is the sequence of the message before this one of the
	// same business key in the same order scope, "0" for the first. Only messages
	// whose entry has an OrderScope carry it; consumers find gaps by it.
	HeaderPreviousSequence = "previous_sequence"
	// HeaderEncryption says that the body is encrypted, and how: "jms1".
	HeaderEncryption = "encryption"
	// HeaderAuditChain, HeaderAuditLink, HeaderAuditPrevious and HeaderAuditHash
	// are a message's place in the hash chain of its class (package events/audit):
	// the chain's name, the number in it from 1, the hash of the message before it and its own, both in hex.
	HeaderAuditChain    = "audit_chain"
	HeaderAuditLink     = "audit_link"
	HeaderAuditPrevious = "audit_previous"
	HeaderAuditHash     = "audit_hash"
)

// TimeFormat is how times stand in bodies and headers: RFC 3339 in UTC with microseconds, as PostgreSQL keeps them.
const TimeFormat = "2006-01-02T15:04:05.000000Z"

// Render gives the body as it is stored until the relay sends it: without
// occurredAt and metadata.sequence, whatever e holds there. [Finalise] adds both.
func (e Envelope) Render() ([]byte, error) {
	e.OccurredAt, e.Metadata.Sequence = time.Time{}, 0
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("message %s: %w", e.MessageType, err)
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if !utf8.Valid(body) {
		return nil, fmt.Errorf("message %s: body is not valid UTF-8", e.MessageType)
	}
	return body, nil
}

// Finalise completes a rendered body with the time and the sequence of its row.
// A framed body ([WireConfluent]) is complete: both travel in its headers.
func Finalise(rendered []byte, occurredAt time.Time, sequence int64) ([]byte, error) {
	if Framed(rendered) {
		return rendered, nil
	}
	if len(rendered) < 4 || rendered[0] != '{' || !bytes.HasSuffix(rendered, []byte("}}")) {
		return nil, errors.New("stored body is not a rendered envelope")
	}
	out := make([]byte, 0, len(rendered)+len(TimeFormat)+48)
	out = append(out, `{"occurredAt":"`...)
	out = occurredAt.UTC().AppendFormat(out, TimeFormat)
	out = append(out, `",`...)
	out = append(out, rendered[1:len(rendered)-2]...)
	out = append(out, `,"sequence":`...)
	out = strconv.AppendInt(out, sequence, 10)
	return append(out, '}', '}'), nil
}

// ParseEnvelope reads a message body and refuses one without the fields that
// every consumer relies on: messageId, messageKind, messageType, messageVersion
// and metadata.businessKey. Unknown fields are allowed (spec E5).
func ParseEnvelope(body []byte) (Envelope, error) {
	var e Envelope
	if !utf8.Valid(body) {
		return e, errors.New("message body is not valid UTF-8")
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return e, fmt.Errorf("message body: %w", err)
	}
	wrong := e.lacks("messageId", "messageKind", "messageType", "messageVersion", "metadata.businessKey")
	if len(wrong) > 0 {
		return e, fmt.Errorf("message body: missing or bad: %s", strings.Join(wrong, ", "))
	}
	return e, nil
}

// Decode unmarshals the data part into v, unknown fields allowed (spec E5).
func (e Envelope) Decode(v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("data of %s v%d: %w", e.MessageType, e.MessageVersion, err)
	}
	return nil
}

// TraceID gives the trace id of a W3C traceparent, "" when it is not one.
func TraceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return ""
	}
	return parts[1]
}
