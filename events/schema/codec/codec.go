// Package codec turns the data of messages into bodies and back for every
// format of a catalog (spec E5, Z11): JSON Schema, Avro, Protobuf, behind the
// frame of Confluent's wire format.
//
// # A body
//
//	00 | schema id, 4 bytes big-endian | record                            avro, json
//	00 | schema id, 4 bytes big-endian | message index, varints | record   protobuf
//
// The record is the data alone. The envelope travels in headers: those of every
// message, and [events.Envelope.RestHeaders]. In the outbox, in the event log
// and in the archive such a body is kept as it is, byte for byte.
//
// # When the registry is asked
//
// A producer asks at its start, for each type that it stages: the schema is
// registered, or looked up, under the subject "<type>.v<version>-value", and its
// id kept. Staging and relaying never ask. A start while the registry is down is
// refused, unless the registry's client has a cache folder that knows the ids.
//
// A consumer asks once for each id that it meets and reads the record by the
// writer's schema in the shape of the catalog's. While the registry is down,
// records of known ids are read as ever; others wait (package events/inbox).
package codec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/avro"
	jsonschema "github.com/vitrip/journeyman/events/schema/json"
	"github.com/vitrip/journeyman/events/schema/proto"
	"github.com/vitrip/journeyman/events/schema/registry"
)

// Config configures a [Codec].
type Config struct {
	Catalog  *events.Catalog  // required
	Registry *registry.Client // required when an entry is of wire confluent
	Producer string           // service whose types are registered: those that the catalog lets it stage; "" means that nothing is staged
	Emits    []string         // the types among them that it really stages, empty means all
	LookUp   bool             // schemas are registered by a pipeline: one that is not refuses to start
}

// Codec is an [events.Codec] for a catalog. Make one with [New]. Safe for concurrent use.
type Codec struct {
	json     *jsonschema.Schemas
	forms    map[string]*form // by type and version
	registry *registry.Client
}

// form is an entry with its compiled schema.
type form struct {
	entry events.Entry
	avro  *avro.Schema
	proto *proto.Schema
	id    int // of the schema that Encode writes, 0 when it is not registered

	mu      sync.Mutex
	readers map[int]reader
}

// Compile compiles every schema of a catalog and refuses all that are wrong at
// once. It asks no registry: what it gives checks data, and neither encodes nor decodes.
func Compile(catalog *events.Catalog) (*Codec, error) {
	c := &Codec{forms: map[string]*form{}}
	var err error
	c.json, err = jsonschema.Compile(catalog)
	errs := []error{err}
	for _, e := range catalog.Entries() {
		f := &form{entry: e, readers: map[int]reader{}}
		var err error
		switch e.Format {
		case events.FormatAvro:
			f.avro, err = avro.Parse(e.Schema)
		case events.FormatProtobuf:
			f.proto, err = proto.Parse(e.Schema, e.Message)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("message type %s v%d: schema: %w", e.Type, e.Version, err))
		}
		c.forms[events.Topic(e.Type, e.Version)] = f
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// New compiles the catalog's schemas and registers those of the types that the
// service stages. It blocks for as long as the registry's client may take. The
// error names every schema that is wrong or was refused.
func New(ctx context.Context, cfg Config) (*Codec, error) {
	if cfg.Catalog == nil {
		return nil, errors.New("codec: catalog: missing")
	}
	c, err := Compile(cfg.Catalog)
	if err != nil {
		return nil, fmt.Errorf("codec: %w", err)
	}
	c.registry = cfg.Registry
	var errs []error
	for _, e := range cfg.Catalog.Entries() {
		switch {
		case e.Wire != events.WireConfluent:
		case cfg.Registry == nil:
			errs = append(errs, fmt.Errorf("message type %s v%d: wire %s, but registry: missing", e.Type, e.Version, e.Wire))
		case cfg.stages(e):
			errs = append(errs, c.settle(ctx, c.forms[events.Topic(e.Type, e.Version)], cfg.LookUp))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("codec: %w", err)
	}
	return c, nil
}

func (c Config) stages(e events.Entry) bool {
	if c.Producer == "" || c.Catalog.MayStage(e, c.Producer) != nil {
		return false
	}
	for _, t := range c.Emits {
		if t == e.Type {
			return true
		}
	}
	return len(c.Emits) == 0
}

// Subject is the name under which the schema of a type and version is registered.
func Subject(messageType string, version int) string {
	return events.Topic(messageType, version) + "-value"
}

// settle gets the id of the schema that Encode writes.
func (c *Codec) settle(ctx context.Context, f *form, lookUp bool) error {
	text, err := f.text()
	if err != nil {
		return fmt.Errorf("message type %s v%d: %w", f.entry.Type, f.entry.Version, err)
	}
	ask := c.registry.Register
	if lookUp {
		ask = c.registry.Lookup
	}
	f.id, err = ask(ctx, Subject(f.entry.Type, f.entry.Version), registry.Schema{Format: f.entry.Format, Text: text})
	if err != nil {
		return fmt.Errorf("message type %s v%d: %w", f.entry.Type, f.entry.Version, err)
	}
	return nil
}

// text is the schema as it is registered.
func (f *form) text() (string, error) {
	switch {
	case f.avro != nil:
		return f.avro.Text(), nil
	case f.proto != nil:
		return f.proto.Text(), nil
	}
	raw, err := json.Marshal(f.entry.Schema)
	return string(raw), err
}

// Check refuses data that breaks the schema of its type and version and names
// each field with what is wrong, never its value. A type without schema takes everything.
func (c *Codec) Check(messageType string, version int, data []byte) error {
	f, ok := c.forms[events.Topic(messageType, version)]
	if !ok || f.entry.Format == events.FormatJSON {
		return c.json.Check(messageType, version, data)
	}
	_, err := f.record(data)
	return err
}

// record is the data in the entry's format.
func (f *form) record(data []byte) ([]byte, error) {
	switch {
	case f.avro != nil:
		return f.avro.Encode(data)
	case f.proto != nil:
		return f.proto.Encode(data)
	}
	return data, nil
}

// Encode gives the body of a message, as [events.Codec] says. A type that was not registered when the codec was made is refused.
func (c *Codec) Encode(messageType string, version int, data []byte) ([]byte, error) {
	f, ok := c.forms[events.Topic(messageType, version)]
	if !ok || f.entry.Wire != events.WireConfluent {
		return nil, fmt.Errorf("%s v%d is not of wire %s", messageType, version, events.WireConfluent)
	}
	if f.id == 0 {
		return nil, fmt.Errorf("%s v%d: its schema was not registered: the codec's producer does not stage it", messageType, version)
	}
	if f.entry.Format == events.FormatJSON {
		if err := c.json.Check(messageType, version, data); err != nil {
			return nil, err
		}
	}
	record, err := f.record(data)
	if err != nil {
		return nil, err
	}
	var index []int
	if f.proto != nil {
		index = f.proto.Index()
	}
	frame, err := new(sr.ConfluentHeader).AppendEncode(make([]byte, 0, 16+len(record)), f.id, index)
	if err != nil {
		return nil, err
	}
	return append(frame, record...), nil
}
