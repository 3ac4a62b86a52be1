package feel

import (
	"fmt"
)

var logicTable = []tableRow{
	{"not(negand: *)", func(m *machine, a []Value) Value {
		b, ok := a[0].Bool()
		if !ok {
			if !a[0].IsNull() {
				m.warn(InvalidType, "Expected Boolean but found '%s'", a[0])
			}
			return Value{}
		}
		return BoolValue(!b)
	}},
	{"is defined(value: *)", func(_ *machine, a []Value) Value { return BoolValue(!a[0].IsNull()) }},
	{"get or else(value: *, default: *)", func(_ *machine, a []Value) Value {
		if a[0].IsNull() {
			return a[1]
		}
		return a[0]
	}},
	{"assert(value: *, condition: *, cause?: s)", func(m *machine, a []Value) Value {
		if ok, _ := a[1].Bool(); ok {
			return a[0]
		}
		cause := "The condition is not fulfilled"
		if len(a) > 2 {
			cause, _ = a[2].Str()
		}
		m.warn(AssertFailure, "%s", cause)
		m.err = fmt.Errorf("%w: %s", ErrAssert, cause)
		return Value{}
	}},
	// Zeebe's own: the text of a timer cycle.
	{"cycle(interval: py)", func(_ *machine, a []Value) Value { return StringValue("R/" + a[0].text()) }},
	{"cycle(repetitions: n0, interval: py)", func(m *machine, a []Value) Value {
		if a[0].IsNull() {
			return StringValue("R/" + a[1].text())
		}
		n, ok := a[0].Int()
		if !ok || n < 0 {
			return m.fail("cycle", fmt.Sprintf("repetitions '%s' is not a whole number from 0", a[0]))
		}
		return StringValue(fmt.Sprintf("R%d/%s", n, a[1].text()))
	}},
}

var contextTable = []tableRow{
	{"get value(context: c, key: s)", func(m *machine, a []Value) Value {
		key, _ := a[1].Str()
		if v, ok := a[0].Get(key); ok {
			return v
		}
		return m.property(a[0], key)
	}},
	{"get value(context: c, keys: l)", func(m *machine, a []Value) Value {
		at := a[0]
		for _, k := range a[1].v.([]Value) {
			key, ok := k.Str()
			if !ok {
				return m.fail("get value", fmt.Sprintf("key '%s' is not a string", k))
			}
			if at, ok = at.Get(key); !ok {
				return Value{}
			}
		}
		return at
	}},
	{"get entries(context: c)", func(m *machine, a []Value) Value {
		c := a[0].v.(*contextValue)
		out := make([]Value, 0, len(c.keys))
		m.spend(len(c.keys))
		for i, k := range c.keys {
			out = append(out, Value{kind: Context, v: &contextValue{keys: []string{"key", "value"}, values: []Value{StringValue(k), c.values[i]}}})
		}
		return ListValue(out...)
	}},
	{"context put(context: c, key: s, value: *)", contextPut},
	{"put(context: c, key: s, value: *)", contextPut},
	{"context put(context: c, keys: l, value: *)", contextPutPath},
	{"context merge(contexts: l)", func(m *machine, a []Value) Value { return contextMerge(m, a[0].v.([]Value)) }},
	{"context merge(contexts...: c)", contextMerge},
	{"put all(contexts...: c)", contextMerge},
	{"context(entries: l)", func(m *machine, a []Value) Value {
		c := &contextValue{}
		for _, e := range a[0].v.([]Value) {
			k, _ := e.Get("key")
			key, ok := k.Str()
			v, hasValue := e.Get("value")
			if !ok || !hasValue || !m.spend(1) {
				return m.fail("context", fmt.Sprintf("'%s' is no entry with key and value", e))
			}
			c.put(key, v)
		}
		return Value{kind: Context, v: c}
	}},
}

func contextPut(m *machine, a []Value) Value {
	m.spend(len(a[0].v.(*contextValue).keys))
	key, _ := a[1].Str()
	return a[0].With(key, a[2])
}

func contextPutPath(m *machine, a []Value) Value {
	keys := a[1].v.([]Value)
	if len(keys) == 0 || len(keys) > maxNesting {
		return m.fail("context put", fmt.Sprintf("%d keys: expected 1 to %d", len(keys), maxNesting))
	}
	key, ok := keys[0].Str()
	if !ok {
		return m.fail("context put", fmt.Sprintf("key '%s' is not a string", keys[0]))
	}
	m.spend(len(a[0].v.(*contextValue).keys))
	if len(keys) == 1 {
		return a[0].With(key, a[2])
	}
	inner, _ := a[0].Get(key)
	if inner.kind != Context {
		inner = Value{kind: Context, v: &contextValue{}}
	}
	return a[0].With(key, contextPutPath(m, []Value{inner, ListValue(keys[1:]...), a[2]}))
}

func contextMerge(m *machine, all []Value) Value {
	out := &contextValue{}
	for _, v := range all {
		c, ok := v.v.(*contextValue)
		if !ok || !m.spend(len(c.keys)) {
			return m.fail("context merge", fmt.Sprintf("expected contexts but found '%s'", v))
		}
		for i, k := range c.keys {
			out.put(k, c.values[i])
		}
	}
	return Value{kind: Context, v: out}
}
