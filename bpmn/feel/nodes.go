package feel

import (
	"time"

	"github.com/cockroachdb/apd/v3"
)

type constNode struct{ v Value }

func (n *constNode) eval(*machine) Value { return n.v }

type groupNode struct{ inner node }

func (n *groupNode) eval(m *machine) Value { return m.eval(n.inner) }

type nameNode struct{ name string }

func (n *nameNode) eval(m *machine) Value {
	v, ok := m.lookup(n.name)
	if !ok {
		return m.warn(NoVariableFound, "No variable found with name '%s'", n.name)
	}
	return v
}

// askNode is the "?" that stands for the tested value.
type askNode struct{}

func (n *askNode) eval(m *machine) Value {
	v, ok := m.lookup("?")
	if !ok {
		return m.warn(NoVariableFound, "No variable found with name '?'")
	}
	return v
}

type listNode struct{ items []node }

func (n *listNode) eval(m *machine) Value {
	items := make([]Value, len(n.items))
	for i, item := range n.items {
		items[i] = m.eval(item)
	}
	return ListValue(items...)
}

type contextNode struct {
	keys   []string
	values []node
}

// eval lets an entry see those before it.
func (n *contextNode) eval(m *machine) Value {
	c := &contextValue{}
	m.frame = &frame{ctx: c, up: m.frame}
	for i, key := range n.keys {
		c.put(key, m.eval(n.values[i]))
	}
	m.frame = m.frame.up
	return Value{kind: Context, v: c}
}

type rangeNode struct {
	from, to             node
	fromClosed, toClosed bool
}

func (n *rangeNode) eval(m *machine) Value {
	return Value{kind: Range, v: &rangeValue{m.eval(n.from), m.eval(n.to), n.fromClosed, n.toClosed}}
}

// logicNode is a three-valued "and" or "or".
type logicNode struct {
	left, right node
	or          bool
}

func (n *logicNode) eval(m *machine) Value {
	a, aKnown := m.eval(n.left).Bool()
	if aKnown && a == n.or {
		return BoolValue(n.or)
	}
	b, bKnown := m.eval(n.right).Bool()
	switch {
	case bKnown && b == n.or:
		return BoolValue(n.or)
	case aKnown && bKnown:
		return BoolValue(!n.or)
	}
	return Value{}
}

type negateNode struct{ inner node }

func (n *negateNode) eval(m *machine) Value {
	v := m.eval(n.inner)
	switch x := v.v.(type) {
	case *apd.Decimal:
		return NumberValue(new(apd.Decimal).Neg(x))
	case months:
		return Value{kind: Period, v: -x}
	case time.Duration:
		return DurationValue(-x)
	}
	if v.IsNull() {
		return Value{}
	}
	return m.warn(InvalidType, "Expected number, or duration but found '%s'", v)
}

type ifNode struct{ cond, then, other node }

func (n *ifNode) eval(m *machine) Value {
	cond := m.eval(n.cond)
	b, ok := cond.Bool()
	if !ok && !cond.IsNull() {
		m.warn(InvalidType, "Expected Boolean but found '%s'", cond)
	}
	if b {
		return m.eval(n.then)
	}
	return m.eval(n.other)
}

type instanceNode struct {
	left  node
	kinds []Kind
}

func (n *instanceNode) eval(m *machine) Value {
	k := m.eval(n.left).kind
	for _, want := range n.kinds {
		if k == want {
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}

type iterator struct {
	name string
	over node
	to   node // not nil: a range of whole numbers
}

// each calls body once per combination of the iterators, while it returns true.
func (m *machine) each(its []iterator, body func() bool) bool {
	if len(its) == 0 {
		return body()
	}
	it := its[0]
	step := func(v Value) bool {
		m.frame = &frame{name: it.name, value: v, up: m.frame}
		more := m.spend(1) && m.each(its[1:], body)
		m.frame = m.frame.up
		return more && m.err == nil
	}
	over := m.eval(it.over)
	if it.to != nil {
		from, ok1 := over.Int()
		last := m.eval(it.to)
		to, ok2 := last.Int()
		if !ok1 || !ok2 {
			m.warn(InvalidType, "Expected whole numbers in a range but found '%s' and '%s'", over, last)
			return false
		}
		dir := int64(1)
		if to < from {
			dir = -1
		}
		for i := from; ; i += dir {
			if !step(IntValue(i)) {
				return false
			}
			if i == to {
				return true
			}
		}
	}
	items, ok := over.List()
	if !ok {
		m.warn(InvalidType, "Expected list but found '%s'", over)
		return false
	}
	for _, item := range items {
		if !step(item) {
			return false
		}
	}
	return true
}

type forNode struct {
	its  []iterator
	body node
}

func (n *forNode) eval(m *machine) Value {
	var out []Value
	done := m.each(n.its, func() bool {
		m.frame = &frame{name: "partial", value: ListValue(out[:len(out):len(out)]...), up: m.frame}
		v := m.eval(n.body)
		m.frame = m.frame.up
		out = append(out, v)
		return m.err == nil
	})
	if !done {
		return Value{}
	}
	return ListValue(out...)
}

type quantifierNode struct {
	its   []iterator
	cond  node
	every bool
}

// eval is three-valued: a condition that is null leaves the answer open unless
// another item decides it.
func (n *quantifierNode) eval(m *machine) Value {
	decided, open := false, false
	done := m.each(n.its, func() bool {
		b, ok := m.eval(n.cond).Bool()
		switch {
		case !ok:
			open = true
		case b != n.every:
			decided = true
			return false
		}
		return true
	})
	switch {
	case decided:
		return BoolValue(!n.every)
	case !done || open:
		return Value{}
	}
	return BoolValue(n.every)
}
