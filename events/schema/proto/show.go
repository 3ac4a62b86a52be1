package proto

import (
	"encoding/json"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// show turns a message into a value that encoding/json writes.
func show(m protoreflect.Message) (any, error) {
	if known(m.Descriptor()) {
		raw, err := protojson.Marshal(m.Interface())
		if err != nil {
			return nil, fmt.Errorf("holds a %s that has no JSON form", m.Descriptor().FullName())
		}
		return json.RawMessage(raw), nil
	}
	out := map[string]any{}
	var failed error
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.IsExtension() {
			return true
		}
		out[field.JSONName()], failed = showField(field, v)
		return failed == nil
	})
	return out, failed
}

func showField(field protoreflect.FieldDescriptor, v protoreflect.Value) (any, error) {
	switch {
	case field.IsMap():
		out := map[string]any{}
		var failed error
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			out[k.String()], failed = showOne(field.MapValue(), v)
			return failed == nil
		})
		return out, failed
	case field.IsList():
		out := make([]any, v.List().Len())
		for i := range out {
			var err error
			if out[i], err = showOne(field, v.List().Get(i)); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return showOne(field, v)
	}
}

func showOne(field protoreflect.FieldDescriptor, v protoreflect.Value) (any, error) {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return show(v.Message())
	case protoreflect.EnumKind:
		if e := field.Enum().Values().ByNumber(v.Enum()); e != nil {
			return string(e.Name()), nil
		}
		return int32(v.Enum()), nil // one that this version does not know
	case protoreflect.FloatKind:
		return finite(v.Float(), float32(v.Float())), nil
	case protoreflect.DoubleKind:
		return finite(v.Float(), v.Float()), nil
	default:
		return v.Interface(), nil
	}
}

// finite gives shown, or text for what JSON has no number for.
func finite(x float64, shown any) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return shown
}
