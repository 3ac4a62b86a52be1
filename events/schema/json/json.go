// Package json checks messages against the JSON Schemas of a catalog
// (draft 2020-12 unless a schema says otherwise).
package json

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vitrip/journeyman/events"
)

// Schemas are the compiled schemas of a catalog. It is an events.Schemas. Safe for concurrent use.
type Schemas struct {
	byType map[string]*jsonschema.Schema
}

// Compile compiles the schema of every entry of format json that has one and refuses, all at
// once, schemas that are wrong, that are not written into the catalog, or that
// refer to another document: nothing is fetched.
//
// Producers are held to what they declare: an object that lists its properties
// and says nothing of others takes no others, unless it is put together from
// parts (allOf, anyOf, oneOf, if, $ref). Consumers go on ignoring what they do not know (spec E5).
func Compile(catalog *events.Catalog) (*Schemas, error) {
	s := &Schemas{byType: map[string]*jsonschema.Schema{}}
	var errs []error
	for _, e := range catalog.Entries() {
		if e.Schema == nil || e.Format != events.FormatJSON {
			continue
		}
		compiled, err := compile(e.Schema)
		if err != nil {
			errs = append(errs, fmt.Errorf("message type %s v%d: schema: %w", e.Type, e.Version, err))
			continue
		}
		s.byType[events.Topic(e.Type, e.Version)] = compiled
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// Check refuses data that breaks the schema of its type and version and names
// each field with what is wrong, never its value. A type without schema takes everything.
func (s *Schemas) Check(messageType string, version int, data []byte) error {
	schema, ok := s.byType[events.Topic(messageType, version)]
	if !ok {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	err = schema.Validate(doc)
	if broken, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		var faults []string
		collect(broken, &faults)
		return fmt.Errorf("breaks its schema: %s", strings.Join(faults, "; "))
	}
	return err
}

// internal is the address under which a catalog's schema stands; it cannot be fetched.
const internal = "catalog:///schema.json"

func compile(written any) (*jsonschema.Schema, error) {
	if _, path := written.(string); path {
		return nil, errors.New("is a name, want the schema itself")
	}
	text, err := json.Marshal(written)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	closeObjects(doc)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(nothing{})
	if err := c.AddResource(internal, doc); err != nil {
		return nil, err
	}
	return c.Compile(internal)
}

// nothing loads no document.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("refers to %s: references to other documents are not followed", url)
}

// closeObjects makes objects that list their properties refuse others.
func closeObjects(node any) {
	schema, ok := node.(map[string]any)
	if !ok {
		return
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, p := range properties {
		closeObjects(p)
	}
	for _, below := range []string{"items", "additionalProperties"} {
		closeObjects(schema[below])
	}
	if properties == nil {
		return
	}
	for _, word := range []string{"additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef"} {
		if _, said := schema[word]; said {
			return
		}
	}
	schema["additionalProperties"] = false
}
