package worker

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

// plan is what a handler's input type declares: which variables it takes, and what each must look like.
type plan struct {
	root   *field
	fields []string // dotted paths of the leaves, for the fingerprint
	names  []string // variables to fetch
	pick   *dedup.Projection
}

type field struct {
	typ      reflect.Type
	optional bool
	leaf     bool // its own UnmarshalJSON decides, or anything goes
	members  map[string]*field
	element  *field
}

var ( //nolint:gochecknoglobals // types
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func planOf(t reflect.Type) *plan {
	p := &plan{root: &field{typ: t, members: map[string]*field{}}, pick: dedup.NewProjection(nil)}
	if t.Kind() != reflect.Struct {
		return p
	}
	p.root = describe(t, nil)
	p.names = slices.Sorted(maps.Keys(p.root.members))
	p.root.paths("", &p.fields)
	slices.Sort(p.fields)
	p.pick = dedup.NewProjection(p.fields)
	return p
}

func describe(t reflect.Type, above []reflect.Type) *field {
	f := &field{typ: t}
	for t.Kind() == reflect.Pointer {
		f.optional = true
		t = t.Elem()
	}
	f.typ = t
	if slices.Contains(above, t) || reflect.PointerTo(t).Implements(jsonUnmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler) {
		f.leaf = true
		return f
	}
	switch t.Kind() {
	case reflect.Struct:
		f.members = map[string]*field{}
		f.addMembers(t, append(slices.Clone(above), t))
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			f.leaf = true
			return f
		}
		f.element = describe(t.Elem(), above)
	case reflect.Map, reflect.Interface:
		f.leaf = true
	}
	return f
}

func (f *field) addMembers(t reflect.Type, above []reflect.Type) {
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		name, opts, _ := strings.Cut(tag, ",")
		if tag == "-" || (!sf.IsExported() && !sf.Anonymous) {
			continue
		}
		st := sf.Type
		for st.Kind() == reflect.Pointer {
			st = st.Elem()
		}
		if sf.Anonymous && name == "" && st.Kind() == reflect.Struct {
			f.addMembers(st, above)
			continue
		}
		if !sf.IsExported() {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		m := describe(sf.Type, above)
		for o := range strings.SplitSeq(opts, ",") {
			if o == "omitempty" || o == "omitzero" {
				m.optional = true
			}
		}
		f.members[name] = m
	}
}

func (f *field) paths(at string, out *[]string) {
	switch {
	case f.members != nil:
		for name, m := range f.members {
			p := name
			if at != "" {
				p = at + "." + name
			}
			m.paths(p, out)
		}
	case f.element != nil && (f.element.members != nil || f.element.element != nil):
		f.element.paths(at+"[]", out)
	default:
		*out = append(*out, at)
	}
}

// check compares a parsed document with the plan and names every field that is wrong, with what was found and expected but
// never the value.
func (p *plan) check(vars map[string]any) error {
	var bad []string
	p.root.check("", vars, &bad)
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	if len(bad) > 10 {
		bad = append(bad[:10], fmt.Sprintf("and %d more", len(bad)-10))
	}
	return outcome.Fatalf(outcome.ReasonInput, "input: %s", strings.Join(bad, "; "))
}

func (f *field) check(at string, v any, bad *[]string) {
	say := func(format string, args ...any) {
		*bad = append(*bad, fmt.Sprintf("variable %s: ", at)+fmt.Sprintf(format, args...))
	}
	if v == nil {
		if !f.optional && f.typ.Kind() != reflect.Interface {
			say("missing, want %s", wants(f.typ))
		} else if !f.optional {
			say("missing")
		}
		return
	}
	if f.leaf {
		if raw, err := json.Marshal(v); err != nil || json.Unmarshal(raw, reflect.New(f.typ).Interface()) != nil {
			say("%s does not fit %s", kindOf(v), f.typ)
		}
		return
	}
	switch f.typ.Kind() {
	case reflect.Struct:
		o, ok := v.(map[string]any)
		if !ok {
			say("is %s, want object", kindOf(v))
			return
		}
		for name, m := range f.members {
			p := name
			if at != "" {
				p = at + "." + name
			}
			m.check(p, o[name], bad)
		}
	case reflect.Slice, reflect.Array:
		l, ok := v.([]any)
		if !ok {
			say("is %s, want list", kindOf(v))
			return
		}
		for i, e := range l {
			f.element.check(fmt.Sprintf("%s[%d]", at, i), e, bad)
		}
	case reflect.String:
		if _, ok := v.(string); !ok {
			say("is %s, want string", kindOf(v))
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			say("is %s, want boolean", kindOf(v))
		}
	default:
		n, ok := v.(json.Number)
		if !ok {
			say("is %s, want %s", kindOf(v), wants(f.typ))
			return
		}
		if why := fits(n.String(), f.typ); why != "" {
			say("%s", why)
		}
	}
}

// fits says why a number in canonical spelling does not fit a numeric type, "" when it does.
func fits(n string, t reflect.Type) string {
	var err error
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err = strconv.ParseInt(n, 10, t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		_, err = strconv.ParseUint(n, 10, t.Bits())
	case reflect.Float32, reflect.Float64:
		_, err = strconv.ParseFloat(n, t.Bits())
	default:
		return "is number, want " + wants(t)
	}
	if err != nil {
		return "the number does not fit " + wants(t)
	}
	return ""
}

func wants(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return "object"
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	default:
		return t.String()
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	default:
		return "null"
	}
}

// parseVariables reads a job's variable document. An error names the byte, never the content.
func parseVariables(doc string) (map[string]any, error) {
	if doc == "" {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, outcome.Fatalf(outcome.ReasonInput, "variables cannot be decoded: invalid JSON at byte %d of %d", d.InputOffset(), len(doc))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, outcome.Fatalf(outcome.ReasonInput, "variables cannot be decoded: more than one JSON value, at byte %d", d.InputOffset())
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, outcome.Fatalf(outcome.ReasonInput, "variables cannot be decoded: they are a JSON %s, want an object", kindOf(v))
	}
	return m, nil
}
