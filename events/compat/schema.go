package compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// difference is one breaking difference between two schemas.
type difference struct{ field, from, to string }

// silent words say nothing of the data.
var silent = []string{"title", "description", "default", "examples", "$comment", "deprecated"} //nolint:gochecknoglobals // constant list

// schemas lists the breaking differences between two JSON Schemas as a catalog holds them.
func schemas(was, is any) []difference {
	if was == nil {
		return nil
	}
	if is == nil {
		return []difference{{"data", "a schema", ""}}
	}
	var found []difference
	walk("data", plain(was), plain(is), &found)
	return found
}

// plain gives a value in the types of encoding/json, so that an integer from YAML equals one from elsewhere.
func plain(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v // it is compared as it is
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return v
	}
	return out
}

func walk(at string, was, is any, found *[]difference) {
	a, aok := was.(map[string]any)
	b, bok := is.(map[string]any)
	if !aok || !bok {
		if !reflect.DeepEqual(was, is) {
			*found = append(*found, difference{at, text(was), text(is)})
		}
		return
	}
	for _, word := range words(a, b) {
		x, y := a[word], b[word]
		switch word {
		case "properties":
			properties(at, x, y, found)
		case "$defs", "definitions":
			each(at+" "+word, x, y, found)
		case "items", "additionalProperties":
			if x != nil && y != nil {
				walk(below(at, word), x, y, found)
			} else {
				*found = append(*found, difference{at + " " + word, text(x), text(y)})
			}
		case "required":
			required(at, list(x), list(y), found)
		case "type", "enum":
			if !reflect.DeepEqual(sorted(x), sorted(y)) {
				*found = append(*found, difference{at + " " + word, text(x), text(y)})
			}
		default:
			if !slices.Contains(silent, word) && !reflect.DeepEqual(x, y) {
				*found = append(*found, difference{at + " " + word, text(x), text(y)})
			}
		}
	}
}

func below(at, word string) string {
	if word == "items" {
		return at + "[]"
	}
	return at + ".*"
}

// properties may be added; one that is gone or changed breaks.
func properties(at string, was, is any, found *[]difference) {
	a, _ := was.(map[string]any)
	b, _ := is.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if _, there := b[name]; !there {
			*found = append(*found, difference{at + "." + name, text(a[name]), ""})
			continue
		}
		walk(at+"."+name, a[name], b[name], found)
	}
}

// each compares named schemas, new ones are fine.
func each(at string, was, is any, found *[]difference) { properties(at, was, is, found) }

// required may not change either way: old messages lack what is new, readers rely on what is gone.
func required(at string, was, is []string, found *[]difference) {
	for _, name := range was {
		if !slices.Contains(is, name) {
			*found = append(*found, difference{at + "." + name, "required", "optional"})
		}
	}
	for _, name := range is {
		if !slices.Contains(was, name) {
			*found = append(*found, difference{at + "." + name, "optional", "required"})
		}
	}
}

func words(a, b map[string]any) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func list(v any) []string {
	var out []string
	items, _ := v.([]any)
	for _, x := range items {
		out = append(out, fmt.Sprint(x))
	}
	return out
}

// sorted makes "string" and lists comparable whatever their order.
func sorted(v any) []string {
	items, ok := v.([]any)
	if !ok {
		items = []any{v}
	}
	var out []string
	for _, x := range items {
		out = append(out, text(x))
	}
	slices.Sort(out)
	return out
}

func text(v any) string {
	if v == nil {
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
