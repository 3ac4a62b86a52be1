package enginetest

import (
	_ "embed"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

//go:embed scenario.schema.json
var scenarioSchema []byte

// ScenarioSchema is a JSON Schema (draft 2020-12) of scenario files, for editors that complete and check while one types. It
// says what [ParseScenarios] checks, less the FEEL expressions; journeyman test --schema prints it.
func ScenarioSchema() []byte { return slices.Clone(scenarioSchema) }

// makeSchema makes the schema from the same structs and tags that check a file.
func makeSchema() ([]byte, error) {
	all := instructions()
	var each []any
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := schemaOf(all[name].fields, nil)
		s["description"] = all[name].doc
		s["title"] = name
		s["properties"].(map[string]any)["type"] = map[string]any{"const": name} //nolint:forcetypeassert // schemaOf made it
		need, _ := s["required"].([]string)
		s["required"] = append([]string{"type"}, need...)
		each = append(each, s)
	}
	file := schemaOf(reflect.TypeFor[ScenarioFile](), nil)
	file["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	file["title"] = "Test cases of BPMN models"
	file["description"] = "Test cases for journeyman test. The fields are those of Camunda Process Test where it has them."
	cases := file["properties"].(map[string]any)["testCases"].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any) //nolint:forcetypeassert // schemaOf made it
	cases["instructions"].(map[string]any)["items"] = map[string]any{"oneOf": each}                                                     //nolint:forcetypeassert // schemaOf made it
	text, err := json.MarshalIndent(file, "", "  ")
	return append(text, '\n'), err
}

// schemaOf is the schema of a type with the rules of its field.
func schemaOf(t reflect.Type, rules map[string]string) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	least, limited := rules["min"]
	n, _ := strconv.Atoi(least)
	_, need := rules["need"]
	s := map[string]any{}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
	case t.Kind() == reflect.Struct:
		return objectSchema(t)
	case t.Kind() == reflect.Map:
		s["type"] = "object"
	case t.Kind() == reflect.Slice:
		s["type"], s["items"] = "array", schemaOf(t.Elem(), rulesOf("need"))
		if limited {
			s["minItems"] = n
		}
	case t.Kind() == reflect.Bool:
		s["type"] = "boolean"
	case t.Kind() == reflect.String:
		s["type"] = "string"
		if enum := rules["enum"]; enum != "" {
			s["enum"] = strings.Split(enum, "|")
		} else if need {
			s["minLength"] = 1
		}
		if _, ok := rules["duration"]; ok {
			s["pattern"] = "^P"
		}
		if _, ok := rules["instant"]; ok {
			s["format"] = "date-time"
		}
	default:
		s["type"] = "integer"
		if limited {
			s["minimum"] = n
		}
	}
	return s
}

func objectSchema(t reflect.Type) map[string]any {
	fields, least := fieldsOf(t)
	props, need := map[string]any{}, []string(nil)
	for _, f := range fields {
		p := schemaOf(f.typ, f.rules)
		if f.doc != "" {
			p["description"] = f.doc
		}
		props[f.name] = p
		if _, ok := f.rules["need"]; ok {
			need = append(need, f.name)
		}
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": props}
	if len(need) > 0 {
		s["required"] = need
	}
	if len(least) > 0 {
		some := make([]any, len(least))
		for i, name := range least {
			some[i] = map[string]any{"required": []string{name}}
		}
		s["anyOf"] = some
	}
	return s
}
