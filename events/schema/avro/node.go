package avro

import (
	"strconv"
	"strings"

	"github.com/twmb/avro"
)

func named(n *avro.SchemaNode) bool {
	return n.Type == "record" || n.Type == "enum" || n.Type == "fixed"
}

func fullName(n *avro.SchemaNode) string {
	if strings.Contains(n.Name, ".") || n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "." + n.Name
}

// inside is the namespace in which names below n are read.
func inside(n *avro.SchemaNode, outer string) string {
	if !named(n) {
		return outer
	}
	full := fullName(n)
	return full[:max(0, strings.LastIndexByte(full, '.'))]
}

// each calls fn with every node as it is written: references to names are not followed.
func (s *Schema) each(n *avro.SchemaNode, at string, fn func(n *avro.SchemaNode, at string)) {
	fn(n, at)
	for i := range n.Fields {
		s.each(&n.Fields[i].Type, at+"."+n.Fields[i].Name, fn)
	}
	if n.Items != nil {
		s.each(n.Items, at+"[]", fn)
	}
	if n.Values != nil {
		s.each(n.Values, at+".*", fn)
	}
	for i := range n.Branches {
		s.each(&n.Branches[i], at, fn)
	}
}

// follow gives the definition that a node stands for, and the namespace around what is below it.
func (s *Schema) follow(n *avro.SchemaNode, namespace string) (*avro.SchemaNode, string) {
	if d, ok := s.named[n.Type]; ok {
		n = d
	} else if d, ok := s.named[namespace+"."+n.Type]; ok {
		n = d
	}
	return n, inside(n, namespace)
}

// branch is the name of a union's branch: the full name of a named type, the type of others.
func branch(n *avro.SchemaNode) string {
	if named(n) {
		return fullName(n)
	}
	return n.Type
}

// faults are texts that name a field and what is wrong with it.
type faults []string

func (f *faults) add(at, what string) { *f = append(*f, "field "+at+": "+what) }

func index(at string, i int) string { return at + "." + strconv.Itoa(i) }
