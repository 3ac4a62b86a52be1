package proto

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/vitrip/journeyman/events/schema/internal/datum"
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
		return datum.Finite(v.Float(), float32(v.Float())), nil
	case protoreflect.DoubleKind:
		return datum.Finite(v.Float(), v.Float()), nil
	default:
		return v.Interface(), nil
	}
}
