// Package avro encodes the data of messages by the Avro schemas of a catalog and
// reads what others wrote, by the rules of Avro's schema resolution.
//
// Data stands as JSON in handlers and as Avro on the wire. A record is an
// object, bytes and fixed are base64 as encoding/json has it, an enum is its
// symbol, a union is the bare value. The logical types timestamp-* and
// local-timestamp-* are RFC 3339 text, date is YYYY-MM-DD, decimal is text with
// the digits of its scale (a number is taken too), uuid is text; time-* are the
// plain number. Others are refused.
package avro

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/avro"
)

// Schema is a parsed schema of a record. Safe for concurrent use.
type Schema struct {
	text   string
	parsed *avro.Schema
	writer *avro.Schema // writes the same bytes, maps in the order of their keys
	root   *avro.SchemaNode
	named  map[string]*avro.SchemaNode
}

// Parse reads a schema as a catalog holds it: an object, or its JSON text. It
// refuses one that is not of a record, that names a type it does not define, that
// has a map and an array in one union, or a logical type that has no JSON form here.
func Parse(written any) (*Schema, error) {
	text, ok := written.(string)
	if !ok {
		raw, err := json.Marshal(written)
		if err != nil {
			return nil, err
		}
		text = string(raw)
	}
	parsed, err := avro.Parse(text)
	if err != nil {
		return nil, err
	}
	writer, err := sorted(text)
	if err != nil {
		return nil, err
	}
	s := &Schema{text: text, parsed: parsed, writer: writer, root: parsed.Root(), named: map[string]*avro.SchemaNode{}}
	if s.root.Type != "record" {
		return nil, fmt.Errorf("is of type %s, want a record", s.root.Type)
	}
	var errs []error
	s.each(s.root, "data", func(n *avro.SchemaNode, at string) {
		if named(n) {
			s.named[fullName(n)] = n
		}
		switch n.LogicalType {
		case "duration", "big-decimal":
			errs = append(errs, fmt.Errorf("field %s: logical type %s is not supported", at, n.LogicalType))
		case "uuid":
			if n.Type != "string" {
				errs = append(errs, fmt.Errorf("field %s: logical type uuid of type %s, want string", at, n.Type))
			}
		}
	})
	return s, errors.Join(errs...)
}

// Text is the schema as JSON, as it is registered.
func (s *Schema) Text() string { return s.text }

// Name is the record's full name.
func (s *Schema) Name() string { return fullName(s.root) }

// Encode gives the record of data, a JSON object. Data that does not fit is
// refused, naming each field and never a value: a field that is missing and has
// no default, one that is not in the schema, one of another type.
func (s *Schema) Encode(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errors.New("is no JSON")
	}
	var f faults
	filled := s.fill(s.root, "", "data", v, &f)
	if len(f) > 0 {
		return nil, fmt.Errorf("breaks its schema: %s", strings.Join(f, "; "))
	}
	out, err := s.writer.Encode(filled)
	if err != nil {
		return nil, fmt.Errorf("breaks its schema: %s", place(err))
	}
	return out, nil
}

// Reader reads records that another schema wrote, in the shape of this one.
type Reader struct {
	schema   *Schema
	resolved *avro.Schema
}

// Reader makes a reader of what a writer's schema wrote. references are the
// schemas that the writer's names, in the order in which they need each other.
// The error says where the two do not fit (Avro's schema resolution).
func (s *Schema) Reader(writer string, references ...string) (*Reader, error) {
	var cache avro.SchemaCache
	for _, r := range references {
		if _, err := cache.Parse(r); err != nil {
			return nil, fmt.Errorf("writer's schema: %w", err)
		}
	}
	wrote, err := cache.Parse(writer)
	if err != nil {
		return nil, fmt.Errorf("writer's schema: %w", err)
	}
	resolved, err := avro.Resolve(wrote, s.parsed)
	if err != nil {
		return nil, fmt.Errorf("writer's schema: %w", err)
	}
	return &Reader{schema: s, resolved: resolved}, nil
}

// Decode gives the data of a record as a JSON object. The error never shows a value.
func (r *Reader) Decode(record []byte) (json.RawMessage, error) {
	var v any
	rest, err := r.resolved.Decode(record, &v, avro.TaggedUnions())
	if err != nil {
		return nil, fmt.Errorf("is no record of schema %s: %s", r.schema.Name(), place(err))
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("is no record of schema %s: %d bytes are left over", r.schema.Name(), len(rest))
	}
	var f faults
	shown := r.schema.show(r.schema.root, "", "data", v, &f)
	if len(f) > 0 {
		return nil, fmt.Errorf("is no record of schema %s: %s", r.schema.Name(), f[0])
	}
	return json.Marshal(shown)
}

// place says where an error of the library arose, without the value that it may quote.
func place(err error) string {
	if e, ok := errors.AsType[*avro.SemanticError](err); ok && e.Field != "" {
		return "field data." + e.Field + ": does not fit"
	}
	if e, ok := errors.AsType[*avro.ShortBufferError](err); ok {
		return "is cut off in a " + e.Type
	}
	return "does not fit"
}
