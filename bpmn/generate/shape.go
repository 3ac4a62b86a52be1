package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vitrip/journeyman/bpmn/feel"
)

// shape is what is known of a value's type.
type shape struct {
	kind     kind
	optional bool
	fields   map[string]*shape // of an object
	item     *shape            // of a list
}

type kind int

const (
	unknown kind = iota
	text
	integer
	number
	boolean
	instant
	object
	list
	raw // said to be anything: stronger than unknown
)

func newObject() *shape { return &shape{kind: object, fields: map[string]*shape{}} }

// put sets a field by its dotted path.
func (s *shape) put(path string, v *shape) {
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		s.fields[first] = v
		return
	}
	in := s.fields[first]
	if in == nil || in.kind != object {
		in = newObject()
		s.fields[first] = in
	}
	in.put(rest, v)
}

// at gives a field by its dotted path, nil when there is none.
func (s *shape) at(path string) *shape {
	first, rest, nested := strings.Cut(path, ".")
	in := s.fields[first]
	if !nested || in == nil {
		return in
	}
	return in.at(rest)
}

// join combines what two places tell of the same value: the one that knows
// wins, two that differ make anything.
func join(a, b *shape) *shape {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := &shape{optional: a.optional || b.optional}
	switch {
	case a.kind == b.kind:
		out.kind = a.kind
	case a.kind == unknown:
		out.kind, out.fields, out.item = b.kind, b.fields, b.item
		return out
	case b.kind == unknown:
		out.kind, out.fields, out.item = a.kind, a.fields, a.item
		return out
	case a.kind == integer && b.kind == number, a.kind == number && b.kind == integer:
		out.kind = number
	default:
		out.kind = raw
		return out
	}
	if out.kind == list {
		out.item = join(a.item, b.item)
	}
	if out.kind == object {
		out.fields = map[string]*shape{}
		for name := range a.fields {
			out.fields[name] = join(a.fields[name], b.fields[name])
		}
		for name, f := range b.fields {
			if out.fields[name] == nil {
				out.fields[name] = f
			}
		}
	}
	return out
}

// ofValue reads the shape of an example.
func ofValue(v feel.Value) *shape {
	switch v.Kind() {
	case feel.Boolean:
		return &shape{kind: boolean}
	case feel.Number:
		if _, whole := v.Int(); whole {
			return &shape{kind: integer}
		}
		return &shape{kind: number}
	case feel.String:
		return &shape{kind: text}
	case feel.Date, feel.Time, feel.DateTime, feel.Duration, feel.Period:
		return &shape{kind: text} // as JSON carries them
	case feel.List, feel.Context:
		return ofJSON(v.JSON())
	}
	return &shape{}
}

// ofJSON reads the shape of a JSON document that is known to be valid.
func ofJSON(doc []byte) *shape {
	var parts map[string]json.RawMessage
	if json.Unmarshal(doc, &parts) == nil && parts != nil {
		s := newObject()
		for name, part := range parts {
			s.fields[name] = ofJSON(part)
		}
		return s
	}
	var items []json.RawMessage
	if json.Unmarshal(doc, &items) == nil && items != nil {
		s := &shape{kind: list}
		for _, item := range items {
			s.item = join(s.item, ofJSON(item))
		}
		return s
	}
	v, err := feel.FromJSON(doc)
	if err != nil || v.Kind() == feel.List || v.Kind() == feel.Context {
		return &shape{}
	}
	return ofValue(v)
}

// ofText reads a type that a property spells.
func ofText(spelled string) (*shape, error) {
	name, optional := strings.CutSuffix(strings.TrimSpace(spelled), "?")
	if inner, ok := strings.CutPrefix(name, "[]"); ok {
		item, err := ofText(inner)
		return &shape{kind: list, item: item, optional: optional}, err
	}
	kinds := map[string]kind{"string": text, "int": integer, "number": number, "bool": boolean, "time": instant, "any": raw}
	k, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("type %q: want one of %s, [] before it for a list, ? behind it for optional", spelled, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	return &shape{kind: k, optional: optional}, nil
}

// ofSource reads what an expression can only be, whatever the variables are.
func ofSource(source string) *shape {
	x, err := feel.ParseExpression(source)
	if err != nil {
		return &shape{}
	}
	if x.IsStatic() {
		return ofValue(x.Static())
	}
	if len(x.Expr().Variables()) == 0 {
		if v, _, err := x.Eval(nil); err == nil {
			return ofValue(v)
		}
	}
	return &shape{}
}

// empty says that nothing is known of a value, also inside it.
func (s *shape) empty() bool { return s == nil || s.kind == unknown }
