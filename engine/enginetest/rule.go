package enginetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vitrip/journeyman/bpmn/feel"
	"github.com/vitrip/journeyman/bpmn/isotime"
)

// The fields of scenario files are the fields of Go structs, and their rules are struct tags: the check of a file and the
// JSON Schema are made from the same ones.
//
//	`rule:"need"`        must be there, and not be empty
//	`rule:"enum=A|B"`    one of these texts
//	`rule:"min=1"`       a number of at least that, an array of at least so many
//	`rule:"duration"`    an ISO 8601 duration above zero; instant: an RFC 3339 time; feel: a FEEL expression
//	`rule:"any=a|b"`     on a field named _: at least one of these fields
//	`doc:"…"`            what it means, for the schema

// field is one field of an object.
type field struct {
	name, doc string
	typ       reflect.Type
	rules     map[string]string
}

func rulesOf(tag string) map[string]string {
	rules := map[string]string{}
	for rule := range strings.FieldsSeq(tag) {
		name, value, _ := strings.Cut(rule, "=")
		rules[name] = value
	}
	return rules
}

// fieldsOf lists the fields of a struct, and those of which it must have one.
func fieldsOf(t reflect.Type) (fields []field, some []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		rules := rulesOf(f.Tag.Get("rule"))
		if f.Name == "_" {
			some = strings.Split(rules["any"], "|")
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields = append(fields, field{name: name, doc: f.Tag.Get("doc"), typ: f.Type, rules: rules})
	}
	return fields, some
}

// verify checks a value against a type and its rules.
func verify(path string, doc json.RawMessage, t reflect.Type, rules map[string]string) []*ScenarioError {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	wrong := func(want string) []*ScenarioError {
		return []*ScenarioError{{Path: path, Value: shown(doc), Want: want}}
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return nil
	case t.Kind() == reflect.Struct:
		return verifyObject(path, doc, t)
	case t.Kind() == reflect.Map:
		var v map[string]json.RawMessage
		if json.Unmarshal(doc, &v) != nil || v == nil {
			return wrong("an object, such as {\"guests\": 2}")
		}
	case t.Kind() == reflect.Slice:
		var items []json.RawMessage
		if json.Unmarshal(doc, &items) != nil || items == nil {
			return wrong("an array, [ … ]")
		}
		if least, _ := strconv.Atoi(rules["min"]); len(items) < least {
			return wrong(fmt.Sprintf("at least %d entries", least))
		}
		var out []*ScenarioError
		for i, item := range items {
			out = append(out, verify(fmt.Sprintf("%s[%d]", path, i), item, t.Elem(), rulesOf("need"))...)
		}
		return out
	case t.Kind() == reflect.Bool:
		if s := string(doc); s != "true" && s != "false" {
			return wrong("true or false")
		}
	case t.Kind() == reflect.String:
		var v *string
		if json.Unmarshal(doc, &v) != nil || v == nil {
			return wrong("a text in quotes")
		}
		if want := verifyText(*v, rules); want != "" {
			return wrong(want)
		}
	default: // whole numbers
		var v *float64
		least, limited := rules["min"]
		if json.Unmarshal(doc, &v) != nil || v == nil || *v != math.Trunc(*v) || math.Abs(*v) > math.MaxInt32 && t.Kind() != reflect.Int64 {
			return wrong("a whole number")
		}
		if n, _ := strconv.ParseFloat(least, 64); limited && *v < n {
			return wrong("a whole number of at least " + least)
		}
	}
	return nil
}

// verifyText says what is wanted instead of a text, "" when it is good.
func verifyText(v string, rules map[string]string) string {
	is := func(rule string) bool { _, ok := rules[rule]; return ok }
	switch {
	case is("enum") && !slices.Contains(strings.Split(rules["enum"], "|"), v):
		return "one of " + strings.ReplaceAll(rules["enum"], "|", ", ")
	case is("need") && v == "":
		return "a text that is not empty"
	case is("duration"):
		d, err := isotime.ParseDuration(v)
		if err != nil || !d.AddTo(time.Unix(0, 0)).After(time.Unix(0, 0)) {
			return "an ISO 8601 duration of more than no time, such as PT30M"
		}
	case is("instant"):
		if _, err := isotime.ParseDateTime(v); err != nil {
			return "an instant such as 2026-01-02T15:04:05Z"
		}
	case is("feel"):
		if _, err := feel.Compile(strings.TrimPrefix(v, "=")); err != nil {
			return "a FEEL expression; " + err.Error()
		}
	}
	return ""
}

// verifyObject checks an object; also names fields beside those of t.
func verifyObject(path string, doc json.RawMessage, t reflect.Type, also ...string) []*ScenarioError {
	var parts map[string]json.RawMessage
	if json.Unmarshal(doc, &parts) != nil || parts == nil {
		return []*ScenarioError{{Path: path, Value: shown(doc), Want: "an object, { … }"}}
	}
	fields, some := fieldsOf(t)
	names := make([]string, len(fields))
	var out []*ScenarioError
	for i, f := range fields {
		names[i] = f.name
		part, there := parts[f.name]
		if _, need := f.rules["need"]; !there && need {
			want := "a " + kindName(f.typ)
			if f.rules["enum"] != "" {
				want = "one of " + strings.ReplaceAll(f.rules["enum"], "|", ", ")
			}
			out = append(out, &ScenarioError{Path: under(path, f.name), Want: want})
		}
		if there {
			out = append(out, verify(under(path, f.name), part, f.typ, f.rules)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if !slices.Contains(names, name) && !slices.Contains(also, name) {
			out = append(out, &ScenarioError{Path: under(path, name), Value: shown(parts[name]), Want: "no such field; there are " + strings.Join(names, ", ")})
		}
	}
	if len(some) > 0 && !slices.ContainsFunc(some, func(name string) bool { _, ok := parts[name]; return ok }) {
		out = append(out, &ScenarioError{Path: path, Value: shown(doc), Want: "at least one of " + strings.Join(some, ", ")})
	}
	return out
}

// kindName is what people call a type.
func kindName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "text in quotes"
	case reflect.Bool:
		return "value true or false"
	case reflect.Slice:
		return "list, [ … ]"
	case reflect.Struct, reflect.Map:
		return "part in braces, { … }"
	default:
		return "whole number"
	}
}
