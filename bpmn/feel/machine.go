package feel

import (
	"fmt"
	"io"
	"time"
)

// node is one compiled part of an expression.
type node interface {
	eval(m *machine) Value
}

// machine evaluates one expression once.
type machine struct {
	scope    Scope
	frame    *frame // local names, innermost first
	now      time.Time
	random   io.Reader
	steps    int // left
	depth    int
	warnings []Warning
	quiet    int // > 0: warnings are dropped
	err      error
}

// frame binds one name, or all entries of a context.
type frame struct {
	name  string
	value Value
	ctx   *contextValue // not nil: binds its entries instead of name
	up    *frame
}

func (m *machine) eval(n node) Value {
	if m.err != nil {
		return Value{}
	}
	if m.depth++; m.depth > maxDepth {
		m.err = ErrDepth
	}
	m.spend(1)
	v := n.eval(m)
	m.depth--
	if m.err != nil {
		return Value{}
	}
	return v
}

// spend takes steps from the budget and says whether any are left.
func (m *machine) spend(n int) bool {
	if m.steps -= n; m.steps < 0 && m.err == nil {
		m.err = ErrBudget
	}
	return m.err == nil
}

func (m *machine) warn(kind, format string, args ...any) Value {
	if m.quiet == 0 && len(m.warnings) < maxWarnings {
		m.warnings = append(m.warnings, Warning{Type: kind, Message: fmt.Sprintf(format, args...)})
	}
	return Value{}
}

func (m *machine) lookup(name string) (Value, bool) {
	for f := m.frame; f != nil; f = f.up {
		if f.ctx != nil {
			if v, ok := f.ctx.get(name); ok {
				return v, true
			}
			continue
		}
		if f.name == name {
			return f.value, true
		}
	}
	return m.scope.Lookup(name)
}

func (m *machine) clock() time.Time {
	if m.now.IsZero() {
		m.now = time.Now()
	}
	return m.now
}

const maxNodes = 2_000_000 // values in a result, counted as a tree

// measure refuses a result that would be huge once written out: values share
// their parts, so a short loop can build a tree of any size.
func (m *machine) measure(v Value, nodes *int, depth int) {
	if *nodes++; *nodes > maxNodes && m.err == nil {
		m.err = ErrBudget
	}
	if depth > maxJSONDepth-2 && m.err == nil {
		m.err = ErrDepth
	}
	if m.err != nil {
		return
	}
	switch x := v.v.(type) {
	case []Value:
		for _, item := range x {
			m.measure(item, nodes, depth+1)
		}
	case *contextValue:
		for _, item := range x.values {
			m.measure(item, nodes, depth+1)
		}
	}
}
