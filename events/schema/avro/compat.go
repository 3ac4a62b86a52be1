package avro

import (
	"errors"
	"fmt"

	"github.com/twmb/avro"
)

// Difference is a change between two schemas that breaks somebody.
type Difference struct{ Field, From, To string }

// Breaks lists what breaks between two schemas of one version: what the new one
// cannot read of the old one's records, what the old one cannot read of the new
// one's, a field that is gone, and a logical type that means something else.
// Fields with defaults may be added.
func Breaks(was, is *Schema) []Difference {
	var found []Difference
	add := func(d Difference) {
		for _, f := range found {
			if f.Field == d.Field {
				return
			}
		}
		found = append(found, d)
	}
	gone(was, is, was.root, is.root, "", "", "data", map[string]bool{}, add)
	for _, way := range []struct {
		writer, reader *Schema
		words          string
	}{{was, is, "new readers cannot read old records"}, {is, was, "old readers cannot read new records"}} {
		err := avro.CheckCompatibility(way.writer.parsed, way.reader.parsed)
		if e, ok := errors.AsType[*avro.CompatibilityError](err); ok {
			from, to := e.WriterType, e.ReaderType
			if way.writer == is {
				from, to = to, from
			}
			add(Difference{field(e.Path), from, fmt.Sprintf("%s (%s: %s)", to, way.words, e.Detail)})
		} else if err != nil {
			add(Difference{"data", was.Name(), fmt.Sprintf("%s (%s: %v)", is.Name(), way.words, err)})
		}
	}
	return found
}

// field is our name for a path of the library.
func field(path string) string {
	if path == "(root)" {
		return "data"
	}
	return "data." + path
}

// gone walks what two schemas have in common.
func gone(was, is *Schema, a, b *avro.SchemaNode, nsA, nsB, at string, seen map[string]bool, add func(Difference)) {
	a, nsA = was.follow(a, nsA)
	b, nsB = is.follow(b, nsB)
	if named(a) {
		if seen[fullName(a)] {
			return
		}
		seen[fullName(a)] = true
	}
	if a.LogicalType != b.LogicalType {
		add(Difference{at, a.Type + " " + a.LogicalType, b.Type + " " + b.LogicalType})
	}
	for i := range a.Fields {
		old, there := &a.Fields[i], false
		for j := range b.Fields {
			if b.Fields[j].Name == old.Name {
				there = true
				gone(was, is, &old.Type, &b.Fields[j].Type, nsA, nsB, at+"."+old.Name, seen, add)
			}
		}
		if !there && b.Type == "record" {
			add(Difference{at + "." + old.Name, old.Type.Type, ""})
		}
	}
	switch {
	case a.Items != nil && b.Items != nil:
		gone(was, is, a.Items, b.Items, nsA, nsB, at+"[]", seen, add)
	case a.Values != nil && b.Values != nil:
		gone(was, is, a.Values, b.Values, nsA, nsB, at+".*", seen, add)
	}
	for i := range a.Branches {
		for j := range b.Branches {
			x, _ := was.follow(&a.Branches[i], nsA)
			y, _ := is.follow(&b.Branches[j], nsB)
			if branch(x) == branch(y) {
				gone(was, is, x, y, nsA, nsB, at, seen, add)
			}
		}
	}
}
