package avro

import (
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/twmb/avro"

	"github.com/vitrip/journeyman/events/schema/internal/datum"
)

// show turns a decoded value, its unions tagged, into one that encoding/json
// writes. It finds text that is not UTF-8, which JSON would change silently.
func (s *Schema) show(n *avro.SchemaNode, namespace, at string, v any, f *faults) any {
	n, namespace = s.follow(n, namespace)
	switch x := v.(type) {
	case map[string]any:
		return s.showObject(n, namespace, at, x, f)
	case []any:
		if n.Items != nil {
			for i := range x {
				x[i] = s.show(n.Items, namespace, index(at, i), x[i], f)
			}
		}
	case string:
		if !utf8.ValidString(x) {
			f.add(at, "is not UTF-8")
		}
	case time.Time:
		if n.LogicalType == "date" {
			return x.UTC().Format(time.DateOnly)
		}
		return x.UTC().Format(time.RFC3339Nano) // also beyond the year 9999, which Time's own form refuses
	case time.Duration: // time-millis, time-micros
		if n.LogicalType == "time-millis" {
			return x.Milliseconds()
		}
		return x.Microseconds()
	case *big.Rat:
		return x.FloatString(n.Scale)
	case float32:
		return datum.Finite(float64(x), x)
	case float64:
		return datum.Finite(x, x)
	}
	return v
}

func (s *Schema) showObject(n *avro.SchemaNode, namespace, at string, object map[string]any, f *faults) any {
	switch n.Type {
	case "union":
		for i := range n.Branches {
			b, _ := s.follow(&n.Branches[i], namespace)
			if inner, ok := object[branch(b)]; ok && len(object) == 1 {
				return s.show(&n.Branches[i], namespace, at, inner, f)
			}
		}
	case "record":
		for i := range n.Fields {
			name := n.Fields[i].Name
			if value, ok := object[name]; ok {
				object[name] = s.show(&n.Fields[i].Type, namespace, at+"."+name, value, f)
			}
		}
	case "map":
		for k, value := range object {
			if !utf8.ValidString(k) {
				f.add(at, "has a key that is not UTF-8")
			}
			object[k] = s.show(n.Values, namespace, at+".*", value, f)
		}
	}
	return object
}
