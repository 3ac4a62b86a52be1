package feel

// contextValue keeps entries in the order in which they were put.
type contextValue struct {
	keys   []string
	values []Value
	index  map[string]int // nil while small
}

const indexFrom = 9 // entries from which a map beats a scan

func (c *contextValue) find(key string) int {
	if c.index != nil {
		if i, ok := c.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range c.keys {
		if k == key {
			return i
		}
	}
	return -1
}

func (c *contextValue) get(key string) (Value, bool) {
	if i := c.find(key); i >= 0 {
		return c.values[i], true
	}
	return Value{}, false
}

func (c *contextValue) put(key string, v Value) {
	if i := c.find(key); i >= 0 {
		c.values[i] = v
		return
	}
	c.keys = append(c.keys, key)
	c.values = append(c.values, v)
	switch {
	case c.index != nil:
		c.index[key] = len(c.keys) - 1
	case len(c.keys) >= indexFrom:
		c.index = make(map[string]int, 2*len(c.keys))
		for i, k := range c.keys {
			c.index[k] = i
		}
	}
}

func (c *contextValue) clone() *contextValue {
	out := &contextValue{keys: append([]string(nil), c.keys...), values: append([]Value(nil), c.values...)}
	if c.index != nil {
		out.index = make(map[string]int, len(c.index))
		for k, i := range c.index {
			out.index[k] = i
		}
	}
	return out
}

// Builder makes a context value entry by entry. The zero Builder is ready. It
// must not be used after Value.
type Builder struct{ c *contextValue }

// Put sets an entry; a key that is there keeps its place and gets the new value.
func (b *Builder) Put(key string, v Value) {
	if b.c == nil {
		b.c = &contextValue{}
	}
	b.c.put(key, v)
}

// Value returns the context.
func (b *Builder) Value() Value {
	if b.c == nil {
		b.c = &contextValue{}
	}
	return Value{kind: Context, v: b.c}
}

// With returns a copy of context v with one entry put; on another kind it
// returns a context with that entry alone.
func (v Value) With(key string, entry Value) Value {
	c, ok := v.v.(*contextValue)
	if !ok {
		c = &contextValue{}
	}
	out := c.clone()
	out.put(key, entry)
	return Value{kind: Context, v: out}
}

// Lookup makes a context a [Scope].
func (v Value) Lookup(name string) (Value, bool) { return v.Get(name) }
