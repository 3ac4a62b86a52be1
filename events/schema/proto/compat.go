package proto

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Difference is a change between two schemas that breaks somebody.
type Difference struct{ Field, From, To string }

// Breaks lists what breaks between two schemas of one version: another message
// or package, a field whose number, type, cardinality, oneof or JSON name
// changed, a field or enum value that is gone without its number and name being
// reserved, and a reservation that was lifted. Fields with new numbers may be added.
func Breaks(was, is *Schema) []Difference {
	if was.Name() != is.Name() {
		return []Difference{{"data message", was.Name(), is.Name()}}
	}
	var found []Difference
	compare(was.message, is.message, "data", map[protoreflect.FullName]bool{}, func(d Difference, _ bool) { found = append(found, d) })
	return found
}

// compare tells every difference; wire says that one side would misread the other's bytes.
func compare(was, is protoreflect.MessageDescriptor, at string, seen map[protoreflect.FullName]bool, tell func(d Difference, wire bool)) {
	if seen[was.FullName()] {
		return
	}
	seen[was.FullName()] = true
	for i := range was.Fields().Len() {
		old := was.Fields().Get(i)
		here := at + "." + old.JSONName()
		now := is.Fields().ByNumber(old.Number())
		if now == nil {
			switch other := is.Fields().ByName(old.Name()); {
			case other != nil:
				tell(Difference{here, "number " + number(old), "number " + number(other)}, false)
			case !is.ReservedRanges().Has(old.Number()) || !is.ReservedNames().Has(old.Name()):
				tell(Difference{here, shape(old) + " = " + number(old), "gone, and its number and name are not reserved"}, false)
			}
			continue
		}
		if old.JSONName() != now.JSONName() || old.Name() != now.Name() {
			tell(Difference{here, fmt.Sprintf("%s = %s", old.Name(), number(old)), fmt.Sprintf("%s = %s", now.Name(), number(now))}, false)
		}
		if shape(old) != shape(now) {
			tell(Difference{here, shape(old), shape(now)}, true)
			continue
		}
		if a, b := oneof(old), oneof(now); a != b {
			tell(Difference{here, a, b}, false)
		}
		a, b := below(old), below(now)
		if a.Message() != nil {
			compare(a.Message(), b.Message(), here, seen, tell)
		}
		if a.Enum() != nil {
			compareEnums(a.Enum(), b.Enum(), here, seen, tell)
		}
	}
	for i := range is.Fields().Len() {
		if added := is.Fields().Get(i); was.Fields().ByNumber(added.Number()) == nil {
			here := at + "." + added.JSONName()
			if added.Cardinality() == protoreflect.Required {
				tell(Difference{here, "", shape(added)}, false)
			}
			if was.ReservedRanges().Has(added.Number()) || was.ReservedNames().Has(added.Name()) {
				tell(Difference{here, "reserved", shape(added) + " = " + number(added)}, false)
			}
		}
	}
	for i := range was.ReservedRanges().Len() {
		r := was.ReservedRanges().Get(i)
		if !is.ReservedRanges().Has(r[0]) || !is.ReservedRanges().Has(r[1]-1) {
			tell(Difference{at, fmt.Sprintf("reserved %d to %d", r[0], r[1]-1), "not reserved"}, false)
		}
	}
	for i := range was.ReservedNames().Len() {
		if name := was.ReservedNames().Get(i); !is.ReservedNames().Has(name) {
			tell(Difference{at, "reserved " + string(name), "not reserved"}, false)
		}
	}
}

func compareEnums(was, is protoreflect.EnumDescriptor, at string, seen map[protoreflect.FullName]bool, tell func(d Difference, wire bool)) {
	if seen[was.FullName()] {
		return
	}
	seen[was.FullName()] = true
	for i := range was.Values().Len() {
		old := was.Values().Get(i)
		name := fmt.Sprintf("%s = %d", old.Name(), old.Number())
		same := is.Values().ByName(old.Name())
		switch now := is.Values().ByNumber(old.Number()); {
		case same != nil && same.Number() == old.Number():
		case now != nil:
			tell(Difference{at, name, fmt.Sprintf("%s = %d", now.Name(), now.Number())}, false)
		case !is.ReservedRanges().Has(old.Number()) || !is.ReservedNames().Has(old.Name()):
			tell(Difference{at, name, "gone, and its number and name are not reserved"}, false)
		}
	}
	for i := range was.ReservedRanges().Len() {
		r := was.ReservedRanges().Get(i)
		if !is.ReservedRanges().Has(r[0]) || !is.ReservedRanges().Has(r[1]) {
			tell(Difference{at, fmt.Sprintf("reserved %d to %d", r[0], r[1]), "not reserved"}, false)
		}
	}
}

func number(f protoreflect.FieldDescriptor) string { return strconv.Itoa(int(f.Number())) }

// below is the field that holds a map's values, or the field itself.
func below(f protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if f.IsMap() {
		return f.MapValue()
	}
	return f
}

// shape is a field's type with its cardinality. A field with and one without presence have the same bytes.
func shape(f protoreflect.FieldDescriptor) string {
	kind := func(f protoreflect.FieldDescriptor) string {
		switch {
		case f.Message() != nil:
			return string(f.Message().FullName())
		case f.Enum() != nil:
			return string(f.Enum().FullName())
		}
		return f.Kind().String()
	}
	switch {
	case f.IsMap():
		return "map<" + kind(f.MapKey()) + ", " + kind(f.MapValue()) + ">"
	case f.IsList():
		return "repeated " + kind(f)
	case f.Cardinality() == protoreflect.Required:
		return "required " + kind(f)
	}
	return kind(f)
}

func oneof(f protoreflect.FieldDescriptor) string {
	if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
		return "in oneof " + string(o.Name())
	}
	return "in no oneof"
}
