package feel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

func list(v Value) []Value { return v.v.([]Value) }

// overList makes the two forms f([a, b]) and f(a, b) of one function.
func overList(name string, fn func(m *machine, items []Value) Value) []tableRow {
	return []tableRow{
		{name + "(list: l)", func(m *machine, a []Value) Value {
			m.spend(len(list(a[0])))
			return fn(m, list(a[0]))
		}},
		{name + "(values...: *)", fn},
	}
}

var listTable = slices.Concat([]tableRow{
	{"list contains(list: l, element: *)", func(m *machine, a []Value) Value {
		return BoolValue(position(m, list(a[0]), a[1]) >= 0)
	}},
	{"count(list: l)", func(_ *machine, a []Value) Value { return IntValue(int64(len(list(a[0])))) }},
	{"is empty(list: l)", func(_ *machine, a []Value) Value { return BoolValue(len(list(a[0])) == 0) }},
	{"sublist(list: l, start position: n)", sublist},
	{"sublist(list: l, start position: n, length: n)", sublist},
	{"append(list: l, items...: *)", func(m *machine, a []Value) Value {
		m.spend(len(list(a[0])))
		return ListValue(slices.Concat(list(a[0]), a[1:])...)
	}},
	{"concatenate(lists...: l)", concatenate},
	{"insert before(list: l, position: n, newItem: *)", func(m *machine, a []Value) Value {
		i, ok := index(a[1], len(list(a[0])))
		if !ok || !m.spend(len(list(a[0]))) {
			return m.fail("insert before", fmt.Sprintf("position '%s' is outside the list", a[1]))
		}
		return ListValue(slices.Insert(slices.Clone(list(a[0])), i, a[2])...)
	}},
	{"remove(list: l, position: n)", func(m *machine, a []Value) Value {
		i, ok := index(a[1], len(list(a[0])))
		if !ok || !m.spend(len(list(a[0]))) {
			return m.fail("remove", fmt.Sprintf("position '%s' is outside the list", a[1]))
		}
		return ListValue(slices.Delete(slices.Clone(list(a[0])), i, i+1)...)
	}},
	{"reverse(list: l)", func(m *machine, a []Value) Value {
		m.spend(len(list(a[0])))
		out := slices.Clone(list(a[0]))
		slices.Reverse(out)
		return ListValue(out...)
	}},
	{"index of(list: l, match: *)", func(m *machine, a []Value) Value {
		out := []Value{}
		for i, item := range list(a[0]) {
			if same, ok := m.equal(item, a[1]); ok && same {
				out = append(out, IntValue(int64(i+1)))
			}
		}
		return ListValue(out...)
	}},
	{"union(lists...: l)", func(m *machine, a []Value) Value { return distinct(m, list(concatenate(m, a))) }},
	{"distinct values(list: l)", func(m *machine, a []Value) Value { return distinct(m, list(a[0])) }},
	{"duplicate values(list: l)", func(m *machine, a []Value) Value {
		out := []Value{}
		for i, item := range list(a[0]) {
			if position(m, list(a[0])[i+1:], item) >= 0 && position(m, out, item) < 0 {
				out = append(out, item)
			}
		}
		return ListValue(out...)
	}},
	{"flatten(list: l)", func(m *machine, a []Value) Value { return ListValue(flatten(m, []Value{}, list(a[0]), 0)...) }},
	{"sort(list: l, precedes: f)", sortBy},
	{"string join(list: l)", stringJoin},
	{"string join(list: l, delimiter: s0)", stringJoin},
	{"string join(list: l, delimiter: s0, prefix: s, suffix: s)", stringJoin},
	{"partition(list: l, size: n)", func(m *machine, a []Value) Value {
		size, ok := a[1].Int()
		if !ok || size < 1 {
			return m.fail("partition", "size must be a whole number from 1")
		}
		out := []Value{}
		for part := range slices.Chunk(list(a[0]), int(min(size, int64(len(list(a[0]))+1)))) {
			out = append(out, ListValue(slices.Clone(part)...))
		}
		return ListValue(out...)
	}},
},
	overList("min", func(m *machine, items []Value) Value { return extreme(m, "min", items, -1) }),
	overList("max", func(m *machine, items []Value) Value { return extreme(m, "max", items, 1) }),
	overList("sum", func(m *machine, items []Value) Value { return total(m, "sum", items, "+") }),
	overList("product", func(m *machine, items []Value) Value { return total(m, "product", items, "*") }),
	overList("mean", mean),
	overList("median", median),
	overList("stddev", stddev),
	overList("mode", mode),
	overList("all", func(m *machine, items []Value) Value { return quantify(items, false) }),
	overList("any", func(m *machine, items []Value) Value { return quantify(items, true) }),
)

func position(m *machine, items []Value, v Value) int {
	for i, item := range items {
		if same, ok := m.equal(item, v); ok && same {
			return i
		}
		if !m.spend(1) {
			return -1
		}
	}
	return -1
}

// index turns a 1-based or negative position into an index.
func index(v Value, n int) (int, bool) {
	i, ok := v.Int()
	switch {
	case !ok:
		return 0, false
	case i > 0 && i <= int64(n):
		return int(i - 1), true
	case i < 0 && i >= -int64(n):
		return n + int(i), true
	}
	return 0, false
}

func sublist(m *machine, a []Value) Value {
	items := list(a[0])
	from, ok := index(a[1], len(items))
	if !ok {
		return m.fail("sublist", fmt.Sprintf("start position '%s' is outside the list", a[1]))
	}
	to := len(items)
	if len(a) > 2 {
		n, ok := a[2].Int()
		if !ok || n < 0 {
			return m.fail("sublist", fmt.Sprintf("length '%s' is not a whole number from 0", a[2]))
		}
		to = int(min(int64(to), int64(from)+min(n, int64(to))))
	}
	return ListValue(items[from:to:to]...)
}

func concatenate(m *machine, a []Value) Value {
	out := []Value{}
	for _, l := range a {
		if !m.spend(len(list(l))) {
			return ListValue()
		}
		out = append(out, list(l)...)
	}
	return ListValue(out...)
}

func distinct(m *machine, items []Value) Value {
	out := []Value{}
	for _, item := range items {
		if position(m, out, item) < 0 {
			out = append(out, item)
		}
	}
	return ListValue(out...)
}

func flatten(m *machine, out, items []Value, depth int) []Value {
	if depth > maxJSONDepth {
		m.err = ErrDepth
	}
	for _, item := range items {
		if !m.spend(1) {
			return out
		}
		if inner, ok := item.List(); ok {
			out = flatten(m, out, inner, depth+1)
		} else {
			out = append(out, item)
		}
	}
	return out
}

func sortBy(m *machine, a []Value) Value {
	f := a[1].v.(*function)
	if len(f.params) != 2 {
		return m.fail("sort", "the function needs two parameters")
	}
	out := slices.Clone(list(a[0]))
	slices.SortStableFunc(out, func(x, y Value) int {
		if before, _ := m.apply(f, []Value{x, y}).Bool(); before {
			return -1
		}
		if after, _ := m.apply(f, []Value{y, x}).Bool(); after {
			return 1
		}
		return 0
	})
	return ListValue(out...)
}

func stringJoin(m *machine, a []Value) Value {
	var parts []string
	size := 0
	for _, item := range list(a[0]) {
		s, ok := item.Str()
		if !ok {
			if item.IsNull() {
				continue
			}
			return m.fail("string join", fmt.Sprintf("expected strings but found '%s'", item))
		}
		size += len(s)
		parts = append(parts, s)
	}
	text := func(i int) string {
		if i < len(a) {
			s, _ := a[i].Str()
			return s
		}
		return ""
	}
	if !m.spend((size + len(parts)*len(text(1))) / 64) {
		return Value{}
	}
	return StringValue(text(2) + strings.Join(parts, text(1)) + text(3))
}

func extreme(m *machine, name string, items []Value, sign int) Value {
	if len(items) == 0 {
		return Value{}
	}
	best := items[0]
	for _, item := range items[1:] {
		o, ok := order(item, best)
		if !ok {
			return m.fail(name, fmt.Sprintf("Can't compare '%s' with '%s'", item, best))
		}
		if o*sign > 0 {
			best = item
		}
	}
	if _, ok := order(best, best); !ok {
		return m.fail(name, fmt.Sprintf("'%s' has no order", best))
	}
	return best
}

func total(m *machine, name string, items []Value, op string) Value {
	if len(items) == 0 {
		return Value{}
	}
	sum := items[0]
	if _, ok := numbers(items); !ok {
		for _, item := range items[1:] {
			v, ok := Value{}, false
			if op == "+" && item.kind == sum.kind && (item.kind == Duration || item.kind == Period) {
				v, ok = addTemporal(sum, item, 1)
			}
			if !ok {
				return m.fail(name, fmt.Sprintf("expected numbers or durations but found '%s'", item))
			}
			sum = v
		}
		if sum.kind != Duration && sum.kind != Period {
			return m.fail(name, fmt.Sprintf("expected numbers but found '%s'", sum))
		}
		return sum
	}
	for _, item := range items[1:] {
		x, ok := sum.Number()
		if !ok {
			return Value{}
		}
		y, _ := item.Number()
		sum = m.numbers(op, x, y)
	}
	return sum
}

func numbers(items []Value) ([]*apd.Decimal, bool) {
	out := make([]*apd.Decimal, len(items))
	for i, item := range items {
		d, ok := item.Number()
		if !ok {
			return nil, false
		}
		out[i] = d
	}
	return out, true
}

func quantify(items []Value, decides bool) Value {
	open := false
	for _, item := range items {
		b, ok := item.Bool()
		if ok && b == decides {
			return BoolValue(decides)
		}
		open = open || !ok
	}
	if open {
		return Value{}
	}
	return BoolValue(!decides)
}
