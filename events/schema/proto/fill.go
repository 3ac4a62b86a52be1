package proto

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/vitrip/journeyman/events/schema/internal/datum"
)

// faults are texts that name a field and what is wrong with it.
type faults []string

func (f *faults) add(at, what string) { *f = append(*f, "field "+at+": "+what) }

// known reports whether a message has a JSON form of its own.
func known(d protoreflect.MessageDescriptor) bool {
	return d.ParentFile() != nil && strings.HasPrefix(string(d.FullName()), "google.protobuf.")
}

// fill sets the fields of m from a value of JSON, strictly.
func fill(m protoreflect.Message, at string, v any, depth int, f *faults) {
	d := m.Descriptor()
	if known(d) {
		raw, err := json.Marshal(v)
		if err != nil || protojson.Unmarshal(raw, m.Interface()) != nil {
			f.add(at, "want the JSON form of "+string(d.FullName()))
		}
		return
	}
	object, ok := v.(map[string]any)
	if !ok || depth > maxDepth {
		f.add(at, "is "+datum.Kind(v)+", want object of at most 100 levels")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		here := at + "." + name
		field := d.Fields().ByJSONName(name)
		if field == nil {
			if other := d.Fields().ByTextName(name); other != nil {
				f.add(here, "not in the schema, want "+other.JSONName())
			} else {
				f.add(here, "not in the schema")
			}
			continue
		}
		if object[name] == nil && (field.Message() == nil || field.IsList() || field.IsMap() || field.Message().FullName() != "google.protobuf.Value") {
			continue // as if it were left out
		}
		if o := field.ContainingOneof(); o != nil && m.WhichOneof(o) != nil {
			f.add(here, "only one of "+string(o.Name())+" may be there")
			continue
		}
		fillField(m, field, here, object[name], depth, f)
	}
}

func fillField(m protoreflect.Message, field protoreflect.FieldDescriptor, at string, v any, depth int, f *faults) {
	switch {
	case field.IsMap():
		object, ok := v.(map[string]any)
		if !ok {
			f.add(at, "is "+datum.Kind(v)+", want object")
			return
		}
		out := m.Mutable(field).Map()
		for _, name := range slices.Sorted(maps.Keys(object)) {
			key, ok := mapKey(field.MapKey(), name)
			if !ok {
				f.add(at, "has a key that is no "+field.MapKey().Kind().String())
				continue
			}
			value := out.NewValue()
			if value, ok = single(field.MapValue(), value, at+"."+name, object[name], depth, f); ok {
				out.Set(key, value)
			}
		}
	case field.IsList():
		list, ok := v.([]any)
		if !ok {
			f.add(at, "is "+datum.Kind(v)+", want array")
			return
		}
		out := m.Mutable(field).List()
		for i, item := range list {
			if value, ok := single(field, out.NewElement(), at+"."+strconv.Itoa(i), item, depth, f); ok {
				out.Append(value)
			}
		}
	default:
		if value, ok := single(field, m.NewField(field), at, v, depth, f); ok {
			m.Set(field, value)
		}
	}
}

// single gives one value of a field. empty is a new one, filled when it is a message.
func single(field protoreflect.FieldDescriptor, empty protoreflect.Value, at string, v any, depth int, f *faults) (protoreflect.Value, bool) {
	if field.Message() != nil {
		before := len(*f)
		fill(empty.Message(), at, v, depth+1, f)
		return empty, len(*f) == before
	}
	value, want := scalar(field, v)
	if want != "" {
		f.add(at, "is "+datum.Kind(v)+", want "+want)
	}
	return value, want == ""
}

// scalar gives a value of a field's kind, or what was wanted.
func scalar(field protoreflect.FieldDescriptor, v any) (value protoreflect.Value, want string) {
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	digits := text
	if isNumber {
		digits = number.String()
	}
	var err error
	k := field.Kind()
	switch k {
	case protoreflect.BoolKind:
		if b, ok := v.(bool); ok {
			return protoreflect.ValueOfBool(b), ""
		}
	case protoreflect.StringKind:
		if isText {
			return protoreflect.ValueOfString(text), ""
		}
	case protoreflect.BytesKind:
		if raw, e := base64.StdEncoding.DecodeString(text); isText && e == nil {
			return protoreflect.ValueOfBytes(raw), ""
		}
		return value, "base64"
	case protoreflect.EnumKind:
		if e := field.Enum().Values().ByName(protoreflect.Name(text)); isText && e != nil {
			return protoreflect.ValueOfEnum(e.Number()), ""
		}
		if n, e := strconv.ParseInt(digits, 10, 32); isNumber && e == nil {
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), "" //nolint:gosec // parsed as 32 bits
		}
		return value, "a name of " + string(field.Enum().FullName())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		var n int64
		if n, err = strconv.ParseInt(digits, 10, 32); err == nil {
			return protoreflect.ValueOfInt32(int32(n)), "" //nolint:gosec // parsed as such
		}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		var n int64
		if n, err = strconv.ParseInt(digits, 10, 64); err == nil {
			return protoreflect.ValueOfInt64(n), ""
		}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		var n uint64
		if n, err = strconv.ParseUint(digits, 10, 32); err == nil {
			return protoreflect.ValueOfUint32(uint32(n)), "" //nolint:gosec // parsed as such
		}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		var n uint64
		if n, err = strconv.ParseUint(digits, 10, 64); err == nil {
			return protoreflect.ValueOfUint64(n), ""
		}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		x, ok := float(text, number, isNumber)
		switch {
		case !ok || k == protoreflect.FloatKind && !math.IsInf(x, 0) && math.Abs(x) > math.MaxFloat32:
		case k == protoreflect.FloatKind:
			return protoreflect.ValueOfFloat32(float32(x)), ""
		default:
			return protoreflect.ValueOfFloat64(x), ""
		}
	}
	return value, "a value of " + k.String()
}

func float(text string, number json.Number, isNumber bool) (float64, bool) {
	if isNumber {
		x, err := number.Float64()
		return x, err == nil
	}
	x, ok := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[text]
	return x, ok
}

func mapKey(field protoreflect.FieldDescriptor, name string) (protoreflect.MapKey, bool) {
	v := any(name)
	switch field.Kind() {
	case protoreflect.BoolKind:
		v = map[string]any{"true": true, "false": false}[name]
	case protoreflect.StringKind:
	default:
		v = json.Number(name)
	}
	value, want := scalar(field, v)
	if want != "" {
		return protoreflect.MapKey{}, false
	}
	return value.MapKey(), true
}
