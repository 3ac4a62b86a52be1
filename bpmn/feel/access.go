package feel

import (
	"strings"
)

// pathNode is left.key; over a list it collects the key of each item.
type pathNode struct {
	left node
	key  string
}

func (n *pathNode) eval(m *machine) Value { return m.property(m.eval(n.left), n.key) }

func (m *machine) property(v Value, key string) Value {
	switch x := v.v.(type) {
	case *contextValue:
		if entry, ok := x.get(key); ok {
			return entry
		}
		return m.warn(NoContextEntryFound, "No context entry found with key '%s'. Available keys: %s", key, quotedKeys(x.keys))
	case []Value:
		if !m.spend(len(x)) {
			return Value{}
		}
		out := make([]Value, len(x))
		if m.depth++; m.depth > maxDepth {
			m.err = ErrDepth
			return Value{}
		}
		for i, item := range x {
			out[i] = m.property(item, key)
		}
		m.depth--
		return ListValue(out...)
	case nil:
		return m.warn(NoContextEntryFound, "No context entry found with key '%s'. The context is null", key)
	}
	if p, ok := temporalProperty(v, key); ok {
		return p
	}
	return m.warn(NoPropertyFound, "No property found with name '%s' of value '%s'", key, v)
}

func quotedKeys(keys []string) string {
	var b strings.Builder
	for i, k := range keys {
		if i == 20 {
			b.WriteString(", ...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("'" + k + "'")
	}
	return b.String()
}

// filterNode is list[cond]: a position, or a condition over each item.
type filterNode struct {
	left, cond node
	each       bool // the condition is a boolean by its form
}

func newFilter(left, cond node) node {
	f := &filterNode{left: left, cond: cond}
	switch c := cond.(type) {
	case *compareNode, *logicNode, *betweenNode, *inNode, *instanceNode, *quantifierNode:
		f.each = true
	case *groupNode:
		switch c.inner.(type) {
		case *compareNode, *logicNode, *betweenNode, *inNode, *instanceNode, *quantifierNode:
			f.each = true
		}
	}
	return f
}

func (n *filterNode) eval(m *machine) Value {
	left := m.eval(n.left)
	items, ok := left.List()
	if !ok {
		if left.IsNull() {
			return Value{}
		}
		return m.warn(InvalidType, "Expected list but found '%s'", left)
	}
	if !n.each {
		m.quiet++
		v := m.eval(n.cond)
		m.quiet--
		if v.kind == Number {
			return at(items, v)
		}
	}
	out := []Value{}
	for _, item := range items {
		if m.err != nil {
			return Value{}
		}
		if keep, _ := m.itemCondition(n.cond, item).Bool(); keep {
			out = append(out, item)
		}
	}
	return ListValue(out...)
}

// itemCondition evaluates cond for one item: "item" is the item, and the
// entries of a context are names of their own.
func (m *machine) itemCondition(cond node, item Value) Value {
	outer := m.frame
	m.frame = &frame{name: "item", value: item, up: m.frame}
	if c, ok := item.v.(*contextValue); ok {
		m.frame = &frame{ctx: c, up: m.frame}
	}
	v := m.eval(cond)
	m.frame = outer
	return v
}

// at returns the item at a position: 1 is the first, -1 the last.
func at(items []Value, pos Value) Value {
	i, ok := pos.Int()
	switch {
	case !ok:
		return Value{}
	case i > 0 && i <= int64(len(items)):
		return items[i-1]
	case i < 0 && -i > 0 && -i <= int64(len(items)):
		return items[int64(len(items))+i]
	}
	return Value{}
}
