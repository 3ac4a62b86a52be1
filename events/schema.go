package events

import (
	"context"
	"encoding/json"
	"errors"
)

// Schemas checks the data part of messages against the schemas of a catalog.
// Package events/schema/json makes one for JSON Schema, events/schema/codec one for all formats.
type Schemas interface {
	// Check refuses data that breaks the schema of its type and version, naming
	// the fields and never a value. A type without schema takes everything.
	// Safe for concurrent use.
	Check(messageType string, version int, data []byte) error
}

// Codec turns the data of messages whose entry is of [WireConfluent] into
// bodies and back. Package events/schema/codec makes one. Safe for concurrent use.
type Codec interface {
	Schemas
	// Encode gives the body of a message with that data, a JSON object: the frame
	// with the schema's id, and the record. It refuses data that breaks the schema
	// as Check does. It never blocks and never asks the registry, so that a
	// registry that is down stops nobody who stages.
	Encode(messageType string, version int, data []byte) (body []byte, err error)
	// Decode gives the data of a body as a JSON object, in the shape of the
	// catalog's schema of that type and version. The first body of a schema's id
	// may have to ask the registry, for as long as ctx and its time-out allow. An
	// error wraps [ErrSchemaUnavailable], [ErrSchemaUnknown], or says why the body
	// can never be read.
	Decode(ctx context.Context, messageType string, version int, body []byte) (data json.RawMessage, err error)
}

// ErrSchemaUnavailable is wrapped by the error about a schema that could not be asked for: nothing is known of the message.
var ErrSchemaUnavailable = errors.New("schema registry is unavailable")

// ErrSchemaUnknown is wrapped by the error about a schema id that the registry does not know (yet).
var ErrSchemaUnknown = errors.New("schema id is unknown to the registry")

// Format is the language of an entry's schema and how its data is written down.
type Format string

// The three formats.
const (
	FormatJSON     Format = "json"
	FormatAvro     Format = "avro"
	FormatProtobuf Format = "protobuf"
)

// Wire says what the body of a message is.
type Wire string

// The two forms of a body.
const (
	WireEnvelope  Wire = "envelope"  // the envelope as a JSON object, the data inside (spec E1); format json only
	WireConfluent Wire = "confluent" // the data alone in its format behind a frame with its schema's id; the envelope travels in headers (spec Z11)
)

// Framed reports whether a body claims to be of [WireConfluent]. It does not check it.
func Framed(body []byte) bool { return len(body) > 0 && body[0] == 0 }
