package avro

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/avro"
)

// sorted parses the schema with each map written as an array of its entries,
// which has the same bytes. The library writes maps in Go's random order, and the
// same data must become the same bytes: consumers tell a repeat from a conflict by them.
func sorted(text string) (*avro.Schema, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, err
	}
	n := 0
	raw, err := json.Marshal(entries(v, &n))
	if err != nil {
		return nil, err
	}
	s, err := avro.Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("a map stands where it cannot be written in order (a union with an array, a default inside a default): %w", err)
	}
	return s, nil
}

// entries rewrites the maps below a node of a schema.
func entries(v any, n *int) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = entries(x[i], n)
		}
	case map[string]any:
		if x["type"] == "map" {
			*n++
			return map[string]any{"type": "array", "items": map[string]any{
				"type": "record", "name": fmt.Sprintf("journeyman_entry_%d", *n),
				"fields": []any{map[string]any{"name": "key", "type": "string"}, map[string]any{"name": "value", "type": entries(x["values"], n)}},
			}}
		}
		for _, word := range []string{"type", "items"} {
			x[word] = entries(x[word], n)
			if x[word] == nil {
				delete(x, word)
			}
		}
		fields, _ := x["fields"].([]any)
		for _, f := range fields {
			field, ok := f.(map[string]any)
			if !ok {
				continue
			}
			was, _ := field["type"].(map[string]any)
			entries(field, n)
			if object, ok := field["default"].(map[string]any); ok && was["type"] == "map" {
				list := []any{}
				for _, k := range slices.Sorted(maps.Keys(object)) {
					list = append(list, map[string]any{"key": k, "value": object[k]})
				}
				field["default"] = list
			}
		}
	}
	return v
}
