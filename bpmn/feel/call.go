package feel

// function is a function that an expression defines.
type function struct {
	params []string
	body   node
	frame  *frame // where it was defined
}

type functionNode struct {
	params []string
	body   node
}

func (n *functionNode) eval(m *machine) Value {
	return Value{kind: Function, v: &function{n.params, n.body, m.frame}}
}

// callNode calls a function by name: one of the scope wins over a built-in.
type callNode struct {
	name    string
	args    []node
	names   []string // of named arguments; nil = by position
	builtin *builtin // nil when no built-in has this name and these arguments
}

func (n *callNode) eval(m *machine) Value {
	if n.builtin == nil || m.frame != nil {
		if f, ok := m.lookup(n.name); ok {
			if fn, ok := f.v.(*function); ok {
				return m.invoke(fn, n.args, n.names)
			}
		}
	}
	if n.builtin == nil {
		return m.warn(NoFunctionFound, "No function found with name '%s' and %d parameters", n.name, len(n.args))
	}
	return m.callBuiltin(n)
}

// invokeNode calls the function that an expression yields.
type invokeNode struct {
	fn    node
	args  []node
	names []string
}

func (n *invokeNode) eval(m *machine) Value {
	f := m.eval(n.fn)
	fn, ok := f.v.(*function)
	if !ok {
		return m.warn(NoFunctionFound, "Expected function but found '%s'", f)
	}
	return m.invoke(fn, n.args, n.names)
}

func (m *machine) invoke(f *function, args []node, names []string) Value {
	if len(args) != len(f.params) {
		return m.warn(NoFunctionFound, "Expected %d arguments but found %d", len(f.params), len(args))
	}
	values := make([]Value, len(args))
	for i, a := range args {
		at := i
		if names != nil {
			if at = indexOf(f.params, names[i]); at < 0 {
				return m.warn(NoFunctionFound, "No parameter found with name '%s'", names[i])
			}
		}
		values[at] = m.eval(a)
	}
	return m.apply(f, values)
}

// apply calls f with values.
func (m *machine) apply(f *function, values []Value) Value {
	outer := m.frame
	m.frame = f.frame
	for i, p := range f.params {
		m.frame = &frame{name: p, value: values[i], up: m.frame}
	}
	v := m.eval(f.body)
	m.frame = outer
	return v
}

func indexOf(all []string, s string) int {
	for i, a := range all {
		if a == s {
			return i
		}
	}
	return -1
}

// builtin is one overload of a built-in function.
type builtin struct {
	name     string
	params   []param
	min      int  // required parameters
	variadic bool // the last parameter repeats
	fn       func(m *machine, a []Value) Value
}

type param struct {
	name  string
	kinds []Kind // nil = any, null included
}

// matchBuiltin picks the overload for a call; nil when none fits.
func matchBuiltin(overloads []*builtin, count int, names []string) *builtin {
	for _, b := range overloads {
		if count < b.min || count > len(b.params) && !b.variadic {
			continue
		}
		fits := true
		for _, name := range names {
			fits = fits && b.param(name) >= 0
		}
		if fits {
			return b
		}
	}
	return nil
}

func (b *builtin) param(name string) int {
	for i, p := range b.params {
		if p.name == name {
			return i
		}
	}
	return -1
}

func (m *machine) callBuiltin(n *callNode) Value {
	b := n.builtin
	args := make([]Value, 0, len(n.args))
	if n.names == nil {
		for _, a := range n.args {
			args = append(args, m.eval(a))
		}
	} else {
		args = args[:0]
		given := 0
		for range b.params {
			args = append(args, Value{})
		}
		for i, a := range n.args {
			at := b.param(n.names[i])
			args[at] = m.eval(a)
			given = max(given, at+1)
		}
		args = args[:max(given, b.min)]
	}
	if m.err != nil {
		return Value{}
	}
	// Overloads of the same length differ by kind: take the one that fits.
	if !b.accepts(args) {
		for _, other := range builtins[n.name] {
			if len(args) >= other.min && (len(args) <= len(other.params) || other.variadic) && other.accepts(args) {
				return other.fn(m, args)
			}
		}
		for i, a := range args {
			if p := b.at(i); !p.takes(a) {
				return m.warn(FunctionFailure, "Failed to invoke function '%s': Illegal argument '%s' for parameter '%s'", b.name, a, p.name)
			}
		}
	}
	return b.fn(m, args)
}

func (b *builtin) at(i int) param { return b.params[min(i, len(b.params)-1)] }

func (b *builtin) accepts(args []Value) bool {
	for i, a := range args {
		if !b.at(i).takes(a) {
			return false
		}
	}
	return true
}

func (p param) takes(v Value) bool {
	if p.kinds == nil {
		return true
	}
	for _, k := range p.kinds {
		if v.kind == k {
			return true
		}
	}
	return false
}

// fail reports that a built-in function cannot do what was asked.
func (m *machine) fail(name, why string) Value {
	return m.warn(FunctionFailure, "Failed to invoke function '%s': %s", name, why)
}
