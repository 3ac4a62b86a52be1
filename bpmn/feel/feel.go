// Package feel compiles and evaluates FEEL, the expression language of DMN and
// Camunda 8: decimals of 34 digits, three-valued logic, lists, contexts and
// temporal types, with the built-in functions of feel-scala 1.17 and Zeebe's cycle.
//
// An expression that meets a missing variable or a value of the wrong type
// yields null and a [Warning]; an error means that it was stopped.
//
// Known differences from feel-scala 1.17: regular expressions are Go's (RE2: no
// back-references, no look-around); strings are counted in characters, not in
// UTF-16 units; ** takes exponents up to 9999; uuid, trim, is blank, is empty,
// partition and to base64 of later versions are there; Java functions and
// unary-tests as a language of their own are not; a time with a zone that has
// daylight saving counts with the zone's offset of January.
package feel

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Limits of one expression.
const (
	MaxSource       = 64 << 10 // bytes of source text
	DefaultMaxSteps = 1_000_000
	maxNesting      = 100   // nested expressions in the source
	maxChain        = 1_000 // operators or path steps in a row
	maxDepth        = 3_000 // nested evaluations, recursion of functions included
)

// Errors of an evaluation. Test with errors.Is.
var (
	ErrBudget = errors.New("feel: the expression took too many steps")
	ErrDepth  = errors.New("feel: the expression is nested or recurses too deeply")
	ErrAssert = errors.New("feel: assertion failed")
)

// Scope resolves the variables of an expression. Lookup returns false for a
// variable that does not exist, which reads as null with a warning.
type Scope interface {
	Lookup(name string) (Value, bool)
}

// Scopes looks a name up in each scope in turn; the first that knows it wins.
type Scopes []Scope

// Lookup implements [Scope].
func (s Scopes) Lookup(name string) (Value, bool) {
	for _, in := range s {
		if in == nil {
			continue
		}
		if v, ok := in.Lookup(name); ok {
			return v, true
		}
	}
	return Value{}, false
}

// Variables is a [Scope] over a map. A nil map has no variables.
type Variables map[string]Value

// Lookup implements [Scope].
func (v Variables) Lookup(name string) (Value, bool) {
	value, ok := v[name]
	return value, ok
}

// Warning says why a part of an expression became null.
type Warning struct {
	Type    string // for example NO_VARIABLE_FOUND
	Message string
}

// String renders the warning as Zeebe lists it.
func (w Warning) String() string { return "[" + w.Type + "] " + w.Message }

// The types of warnings.
const (
	NoVariableFound     = "NO_VARIABLE_FOUND"
	NoContextEntryFound = "NO_CONTEXT_ENTRY_FOUND"
	NoPropertyFound     = "NO_PROPERTY_FOUND"
	NotComparable       = "NOT_COMPARABLE"
	InvalidType         = "INVALID_TYPE"
	NoFunctionFound     = "NO_FUNCTION_FOUND"
	FunctionFailure     = "FUNCTION_INVOCATION_FAILURE"
	AssertFailure       = "ASSERT_FAILURE"
)

const maxWarnings = 50 // kept of one evaluation

// Expr is a compiled expression. It is immutable and safe for concurrent use.
type Expr struct {
	src  string
	root node
	vars []string
}

// Compile parses an expression, given without the leading "=" that marks it in
// a BPMN file. The error is a [*SyntaxError].
func Compile(src string) (*Expr, error) {
	p, err := newParser(src)
	if err != nil {
		return nil, err
	}
	root, err := p.parseAll()
	if err != nil {
		return nil, err
	}
	return &Expr{src: src, root: root, vars: p.variables()}, nil
}

// Source returns the text that was compiled.
func (e *Expr) Source() string { return e.src }

// Variables returns the names that the expression reads from its scope, sorted.
func (e *Expr) Variables() []string { return slices.Clone(e.vars) }

// Options bound and feed one evaluation. The zero value is usable.
type Options struct {
	Now      time.Time // for now() and today(); zero = the host's clock
	MaxSteps int       // zero = DefaultMaxSteps
	Random   io.Reader // for uuid() and random number(); nil = the host's random numbers
}

// Eval evaluates e with the zero [Options]. A nil scope has no variables.
//
// Errors: [ErrBudget], [ErrDepth], [ErrAssert]. Everything else that goes wrong
// makes the part in question null and adds a warning; at most fifty are kept.
func (e *Expr) Eval(scope Scope) (Value, []Warning, error) {
	return e.EvalWith(scope, Options{})
}

// EvalWith is [Expr.Eval] with options.
func (e *Expr) EvalWith(scope Scope, o Options) (Value, []Warning, error) {
	if scope == nil {
		scope = Variables(nil)
	}
	if o.MaxSteps <= 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	m := &machine{scope: scope, now: o.Now, steps: o.MaxSteps, random: o.Random}
	v := m.eval(e.root)
	switch e.root.(type) {
	case *constNode, *nameNode, *pathNode: // nothing was built
	default:
		m.measure(v, new(int), 0)
	}
	if m.err != nil {
		return Value{}, m.warnings, fmt.Errorf("evaluate %q: %w", clip(e.src), m.err)
	}
	return v, m.warnings, nil
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}

// SyntaxError says where an expression stops being FEEL.
type SyntaxError struct {
	Source       string
	Offset       int // 0-based, in bytes
	Line, Column int // 1-based, column in characters
	Reason       string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("failed to parse expression %q: line %d, column %d: %s", clip(e.Source), e.Line, e.Column, e.Reason)
}
