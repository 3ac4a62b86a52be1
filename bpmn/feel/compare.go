package feel

import (
	"cmp"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"
)

type compareNode struct {
	op          string
	left, right node
}

func (n *compareNode) eval(m *machine) Value {
	return m.compare(n.op, m.eval(n.left), m.eval(n.right))
}

// compare applies =, !=, <, <=, >, >=. Values that cannot be compared give null.
func (m *machine) compare(op string, a, b Value) Value {
	if op == "=" || op == "!=" {
		same, ok := m.equal(a, b)
		if !ok {
			return m.warn(NotComparable, "Can't compare '%s' with '%s'", a, b)
		}
		return BoolValue(same == (op == "="))
	}
	if a.IsNull() || b.IsNull() {
		return Value{}
	}
	order, ok := order(a, b)
	if !ok {
		return m.warn(NotComparable, "Can't compare '%s' with '%s'", a, b)
	}
	switch op {
	case "<":
		return BoolValue(order < 0)
	case "<=":
		return BoolValue(order <= 0)
	case ">":
		return BoolValue(order > 0)
	}
	return BoolValue(order >= 0)
}

// equal compares deeply; ok is false for values of different kinds. Null equals
// null alone.
func (m *machine) equal(a, b Value) (same, ok bool) {
	if a.IsNull() || b.IsNull() {
		return a.kind == b.kind, true
	}
	if a.kind != b.kind || !m.spend(1) {
		return false, false
	}
	switch x := a.v.(type) {
	case bool:
		return x == b.v.(bool), true
	case string:
		return x == b.v.(string), true
	case []Value:
		y := b.v.([]Value)
		if len(x) != len(y) {
			return false, true
		}
		for i := range x {
			if same, ok := m.equal(x[i], y[i]); !same || !ok {
				return false, true
			}
		}
		return true, true
	case *contextValue:
		y := b.v.(*contextValue)
		if len(x.keys) != len(y.keys) {
			return false, true
		}
		for i, k := range x.keys {
			v, found := y.get(k)
			if !found {
				return false, true
			}
			if same, ok := m.equal(x.values[i], v); !same || !ok {
				return false, true
			}
		}
		return true, true
	case *rangeValue:
		y := b.v.(*rangeValue)
		from, ok1 := m.equal(x.from, y.from)
		to, ok2 := m.equal(x.to, y.to)
		return from && to && x.fromClosed == y.fromClosed && x.toClosed == y.toClosed, ok1 && ok2
	case *function:
		return x == b.v.(*function), true
	}
	o, ok := order(a, b)
	return o == 0, ok
}

// Equal says whether two values are equal as FEEL's "=" sees it; values of
// different kinds are not.
func Equal(a, b Value) bool {
	m := &machine{steps: DefaultMaxSteps}
	same, ok := m.equal(a, b)
	return same && ok
}

// order compares two values of one ordered kind.
func order(a, b Value) (int, bool) {
	if a.kind != b.kind {
		return 0, false
	}
	switch x := a.v.(type) {
	case *apd.Decimal:
		return x.Cmp(b.v.(*apd.Decimal)), true
	case string:
		return strings.Compare(x, b.v.(string)), true
	case time.Duration:
		return cmp.Compare(x, b.v.(time.Duration)), true
	case months:
		return cmp.Compare(x, b.v.(months)), true
	case date:
		return x.t.Compare(b.v.(date).t), true
	case dateTime:
		y := b.v.(dateTime)
		return x.t.Compare(y.t), x.local == y.local
	case clockTime:
		y := b.v.(clockTime)
		return cmp.Compare(x.utc(), y.utc()), (x.loc == nil) == (y.loc == nil)
	}
	return 0, false
}

type betweenNode struct{ x, low, high node }

func (n *betweenNode) eval(m *machine) Value {
	x := m.eval(n.x)
	a, aKnown := m.compare(">=", x, m.eval(n.low)).Bool()
	b, bKnown := m.compare("<=", x, m.eval(n.high)).Bool()
	if aKnown && !a || bKnown && !b {
		return BoolValue(false)
	}
	if !aKnown || !bKnown {
		return Value{}
	}
	return BoolValue(true)
}

// testNode is one unary test: an operator with its operand, or a value, list,
// range, or condition over "?".
type testNode struct {
	op   string
	rhs  node
	asks bool
}

type inNode struct {
	left  node
	tests []*testNode
}

func (n *inNode) eval(m *machine) Value {
	x := m.eval(n.left)
	open := false
	for _, t := range n.tests {
		b, ok := m.test(x, t).Bool()
		if b {
			return BoolValue(true)
		}
		open = open || !ok
	}
	if open {
		return Value{}
	}
	return BoolValue(false)
}

func (m *machine) test(x Value, t *testNode) Value {
	m.frame = &frame{name: "?", value: x, up: m.frame}
	rhs := m.eval(t.rhs)
	m.frame = m.frame.up
	if t.op != "" {
		return m.compare(t.op, x, rhs)
	}
	switch {
	case t.asks:
		if _, ok := rhs.Bool(); ok {
			return rhs
		}
		return Value{}
	case rhs.kind == Range && x.kind != Range:
		return m.inRange(x, rhs.v.(*rangeValue))
	case rhs.kind == List:
		if same, ok := m.equal(x, rhs); ok && same {
			return BoolValue(true)
		}
		for _, item := range rhs.v.([]Value) {
			if item.kind == Range && x.kind != Range {
				if in, _ := m.inRange(x, item.v.(*rangeValue)).Bool(); in {
					return BoolValue(true)
				}
				continue
			}
			if same, ok := m.equal(x, item); ok && same {
				return BoolValue(true)
			}
		}
		return BoolValue(false)
	}
	return m.compare("=", x, rhs)
}

func (m *machine) inRange(x Value, r *rangeValue) Value {
	low, high := ">", "<"
	if r.fromClosed {
		low = ">="
	}
	if r.toClosed {
		high = "<="
	}
	known := true
	for _, side := range []struct {
		op    string
		bound Value
	}{{low, r.from}, {high, r.to}} {
		b, ok := m.compare(side.op, x, side.bound).Bool()
		if ok && !b {
			return BoolValue(false)
		}
		known = known && ok
	}
	if !known {
		return Value{}
	}
	return BoolValue(true)
}
