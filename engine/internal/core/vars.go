package core

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Variable is one variable of one scope.
type Variable struct {
	Key   int64
	Name  string
	Value json.RawMessage
	Scope *Element
}

// lookup finds a variable by climbing from e to the process instance.
func (e *Element) lookup(name string) (json.RawMessage, bool) {
	for ; e != nil; e = e.Parent {
		if v, ok := e.vars[name]; ok {
			return v.Value, true
		}
	}
	return nil, false
}

// visible collects the variables e sees; inner scopes shadow outer ones. With
// names, only those are collected.
func (e *Element) visible(names []string) Doc {
	d := Doc{}
	if len(names) > 0 {
		for _, n := range names {
			if v, ok := e.lookup(n); ok {
				d[n] = v
			}
		}
		return d
	}
	for ; e != nil; e = e.Parent {
		for n, v := range e.vars {
			if _, inner := d[n]; !inner {
				d[n] = v.Value
			}
		}
	}
	return d
}

// setLocal creates or updates one variable in e's own scope.
func (c *Core) setLocal(e *Element, name string, value json.RawMessage) {
	if v, ok := e.vars[name]; ok {
		v.Value = value
		return
	}
	if e.vars == nil {
		e.vars = map[string]*Variable{}
	}
	v := &Variable{Key: c.key(), Name: name, Value: value, Scope: e}
	e.vars[name] = v
	c.variables[v.Key] = v
	c.varOrder.add(v)
	e.Inst.vars = append(e.Inst.vars, v)
}

func (c *Core) mergeLocal(e *Element, d Doc) {
	for _, n := range d.Names() {
		c.setLocal(e, n, d[n])
	}
}

// propagate updates each name in the nearest scope from e outward that has it,
// and creates the others at the process instance.
func (c *Core) propagate(e *Element, d Doc) {
	for _, n := range d.Names() {
		s := e
		for s.Parent != nil {
			if _, has := s.vars[n]; has {
				break
			}
			s = s.Parent
		}
		c.setLocal(s, n, d[n])
	}
}

// evalMappings evaluates mappings as one context: later entries see earlier
// ones, a path target nests, the last of equal targets wins.
func (c *Core) evalMappings(ms []mapping, e *Element, seed func(top string) (json.RawMessage, bool)) (Doc, error) {
	out := Doc{}
	look := func(name string) (json.RawMessage, bool) {
		if v, ok := out[name]; ok {
			return v, true
		}
		return e.lookup(name)
	}
	for _, m := range ms {
		v, err := m.source.eval(c, look)
		if err != nil {
			return nil, err
		}
		top := m.target[0]
		if len(m.target) == 1 {
			out[top] = v.raw
			continue
		}
		base, ok := out[top]
		if !ok && seed != nil {
			base, _ = seed(top)
		}
		out[top] = nest(base, m.target[1:], v.raw)
	}
	return out, nil
}

// nest sets the value at path inside the object base; what is no object is replaced.
func nest(base json.RawMessage, path []string, value json.RawMessage) json.RawMessage {
	obj := Doc{}
	if trimmed := bytes.TrimSpace(base); len(trimmed) > 0 && trimmed[0] == '{' {
		if err := json.Unmarshal(trimmed, &obj); err != nil {
			obj = Doc{}
		}
	}
	if len(path) == 1 {
		obj[path[0]] = value
	} else {
		obj[path[0]] = nest(obj[path[0]], path[1:], value)
	}
	return json.RawMessage(obj.JSON())
}

// applyInputs evaluates the input mappings into e's local variables.
func (c *Core) applyInputs(e *Element) error {
	if len(e.Node.inputs) == 0 {
		return nil
	}
	d, err := c.evalMappings(e.Node.inputs, e, nil)
	if err != nil {
		return err
	}
	c.mergeLocal(e, d)
	return nil
}

// applyOutputs hands on what e produced: its output mappings, or its document.
func (c *Core) applyOutputs(e *Element) error {
	n := e.Node
	if len(n.outputs) > 0 {
		c.mergeLocal(e, e.doc)
		e.doc = nil
		target := e.Parent
		if e.Inner {
			target = e
		}
		d, err := c.evalMappings(n.outputs, e, target.lookup)
		if err != nil {
			return err
		}
		c.propagate(target, d)
		return nil
	}
	if len(e.doc) == 0 {
		return nil
	}
	switch {
	case e.localDoc:
		c.mergeLocal(e, e.doc)
	case n.isCatch:
		c.propagate(e.Parent, e.doc)
	default:
		c.propagate(e, e.doc)
	}
	return nil
}

// kindOf names the FEEL type of a JSON value.
func kindOf(raw json.RawMessage) string {
	s := strings.TrimSpace(string(raw))
	switch {
	case s == "" || s == "null":
		return "NULL"
	case s == "true" || s == "false":
		return "BOOLEAN"
	case s[0] == '"':
		return "STRING"
	case s[0] == '[':
		return "ARRAY"
	case s[0] == '{':
		return "OBJECT"
	}
	return "NUMBER"
}
