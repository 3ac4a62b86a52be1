package avro

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/avro"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/internal/datum"
)

// fill turns a value of JSON into the Go value that the encoder takes for the node, strictly.
func (s *Schema) fill(n *avro.SchemaNode, namespace, at string, v any, f *faults) any {
	n, namespace = s.follow(n, namespace)
	switch n.Type {
	case "record":
		return s.fillRecord(n, namespace, at, v, f)
	case "union":
		return s.fillUnion(n, namespace, at, v, f)
	case "array":
		list, ok := v.([]any)
		if !ok {
			return wrong(f, at, v, "array")
		}
		out := make([]any, len(list))
		for i, item := range list {
			out[i] = s.fill(n.Items, namespace, index(at, i), item, f)
		}
		return out
	case "map":
		object, ok := v.(map[string]any)
		if !ok {
			return wrong(f, at, v, "object")
		}
		out := make([]any, 0, len(object)) // as [sorted] has it
		for _, k := range slices.Sorted(maps.Keys(object)) {
			out = append(out, map[string]any{"key": k, "value": s.fill(n.Values, namespace, at+"."+k, object[k], f)})
		}
		return out
	default:
		return fillPlain(n, at, v, f)
	}
}

func (s *Schema) fillRecord(n *avro.SchemaNode, namespace, at string, v any, f *faults) any {
	object, ok := v.(map[string]any)
	if !ok {
		return wrong(f, at, v, "object")
	}
	out := make(map[string]any, len(n.Fields))
	for i := range n.Fields {
		field := &n.Fields[i]
		value, there := object[field.Name]
		switch {
		case there:
			out[field.Name] = s.fill(&field.Type, namespace, at+"."+field.Name, value, f)
		case !field.HasDefault:
			f.add(at+"."+field.Name, "missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.ContainsFunc(n.Fields, func(x avro.SchemaField) bool { return x.Name == name }) {
			f.add(at+"."+name, "not in the schema")
		}
	}
	return out
}

// fillUnion takes the first branch that fits. It names the branch, so that the encoder takes the same.
func (s *Schema) fillUnion(n *avro.SchemaNode, namespace, at string, v any, f *faults) any {
	var first faults
	tried := 0
	for i := range n.Branches {
		b, _ := s.follow(&n.Branches[i], namespace)
		if b.Type == "null" {
			if v == nil {
				return nil
			}
			continue
		}
		var here faults
		out := s.fill(&n.Branches[i], namespace, at, v, &here)
		if len(here) == 0 {
			if b.Type == "map" {
				return map[string]any{"array": out}
			}
			return map[string]any{branch(b): out}
		}
		if tried++; tried == 1 {
			first = here
		}
	}
	if tried == 1 {
		*f = append(*f, first...)
	} else {
		f.add(at, "is "+datum.Kind(v)+" that fits no type of the union")
	}
	return nil
}

func fillPlain(n *avro.SchemaNode, at string, v any, f *faults) any {
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	switch {
	case n.LogicalType == "decimal":
		return decimal(n, at, v, f)
	case isText && strings.Contains(n.LogicalType, "timestamp-"):
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			f.add(at, "want a time in RFC 3339")
		}
		return t
	case isText && n.LogicalType == "date":
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			f.add(at, "want a date, YYYY-MM-DD")
		}
		return t
	case isText && n.LogicalType == "uuid":
		if !events.ValidID(text) {
			f.add(at, "want a UUID")
		}
		return text
	}
	switch n.Type {
	case "null":
		if v == nil {
			return nil
		}
	case "boolean":
		if b, ok := v.(bool); ok {
			return b
		}
	case "int", "long":
		bits := map[string]int{"int": 32, "long": 64}[n.Type]
		if isNumber {
			i, err := strconv.ParseInt(number.String(), 10, bits)
			if err != nil {
				f.add(at, "want a whole number of "+strconv.Itoa(bits)+" bits")
				return nil
			}
			if bits == 32 {
				return int32(i) //nolint:gosec // parsed as such
			}
			return i
		}
	case "float", "double":
		if isNumber {
			x, err := number.Float64()
			if err != nil || n.Type == "float" && math.Abs(x) > math.MaxFloat32 {
				f.add(at, "want a number within the range of "+n.Type)
				return nil
			}
			if n.Type == "float" {
				return float32(x)
			}
			return x
		}
	case "string":
		if isText {
			return text
		}
	case "enum":
		if isText {
			if !slices.Contains(n.Symbols, text) {
				f.add(at, fmt.Sprintf("want one of %v", n.Symbols))
			}
			return text
		}
	case "bytes", "fixed":
		if isText {
			raw, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				f.add(at, "want base64")
			} else if n.Type == "fixed" && len(raw) != n.Size {
				f.add(at, fmt.Sprintf("has %d bytes, want %d", len(raw), n.Size))
			}
			return raw
		}
	}
	return wrong(f, at, v, n.Type)
}

// decimal takes text or a number with no more digits than the schema has.
func decimal(n *avro.SchemaNode, at string, v any, f *faults) any {
	text, ok := v.(string)
	if number, is := v.(json.Number); is {
		text, ok = number.String(), true
	}
	if !ok {
		return wrong(f, at, v, "decimal")
	}
	r, ok := new(big.Rat), len(text) <= 200 && !strings.ContainsAny(text, "/xXoObBpP_")
	if ok && strings.ContainsAny(text, "eE") {
		_, after, _ := strings.Cut(strings.ToLower(text), "e")
		exponent, err := strconv.Atoi(after)
		ok = err == nil && exponent >= -100 && exponent <= 100 // a larger one would be worked out digit by digit
	}
	if ok {
		_, ok = r.SetString(text)
	}
	if !ok {
		f.add(at, "want a decimal number")
		return nil
	}
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.Scale)), nil)))
	if !scaled.IsInt() || len(new(big.Int).Abs(scaled.Num()).String()) > n.Precision {
		f.add(at, fmt.Sprintf("want at most %d digits, %d of them after the point", n.Precision, n.Scale))
		return nil
	}
	return r
}

func wrong(f *faults, at string, v any, want string) any {
	f.add(at, "is "+datum.Kind(v)+", want "+want)
	return nil
}
