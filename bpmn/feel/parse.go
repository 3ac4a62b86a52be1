package feel

import (
	"fmt"
	"slices"
	"strings"
)

// parser is a Pratt parser over the tokens of one expression.
type parser struct {
	src    string
	toks   []token
	pos    int
	depth  int
	bound  []string        // local names, innermost last
	free   map[string]bool // names read from the scope
	inItem int             // inside a filter, where any name may be an entry of the item
	asked  bool            // a "?" was read: see unary tests
}

func newParser(src string) (*parser, error) {
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	return &parser{src: src, toks: toks, free: map[string]bool{}}, nil
}

func (p *parser) variables() []string {
	out := make([]string, 0, len(p.free))
	for name := range p.free {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (p *parser) parseAll() (node, error) {
	n, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != tokEOF {
		return nil, p.failAt(t, "unexpected %s after the expression", t.describe())
	}
	return n, nil
}

func (p *parser) peek() token { return p.toks[p.pos] }

func (p *parser) peekAt(n int) token {
	if p.pos+n < len(p.toks) {
		return p.toks[p.pos+n]
	}
	return p.toks[len(p.toks)-1]
}

func (p *parser) next() token {
	t := p.toks[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) failAt(t token, format string, args ...any) error {
	return syntaxError(p.src, t.at, fmt.Sprintf(format, args...))
}

func (p *parser) expectOp(op, where string) error {
	if t := p.next(); !t.is(op) {
		return p.failAt(t, "expected %q %s, found %s", op, where, t.describe())
	}
	return nil
}

func (p *parser) expectWord(w, where string) error {
	if t := p.next(); !t.word(w) {
		return p.failAt(t, "expected %q %s, found %s", w, where, t.describe())
	}
	return nil
}

// reserved words cannot name a variable.
var reserved = map[string]bool{
	"if": true, "then": true, "else": true, "for": true, "in": true, "return": true, "some": true, "every": true,
	"satisfies": true, "and": true, "or": true, "between": true, "instance": true, "function": true,
}

// Binding powers, weakest first. As in feel-scala a sign binds tighter than **.
const (
	bpLowest = iota
	bpOr
	bpAnd
	bpCompare
	bpAdd
	bpMultiply
	bpPower
	bpSign
)

// infix tells the binding power of an operator token; 0 = not an operator.
func infix(t token) int {
	switch t.kind {
	case tokName:
		switch t.text {
		case "or":
			return bpOr
		case "and":
			return bpAnd
		case "between", "in", "instance":
			return bpCompare
		}
	case tokOp:
		switch t.text {
		case "=", "!=", "<", "<=", ">", ">=":
			return bpCompare
		case "+", "-":
			return bpAdd
		case "*", "/":
			return bpMultiply
		case "**":
			return bpPower
		}
	}
	return 0
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxNesting {
		return p.failAt(p.peek(), "is nested deeper than %d", maxNesting)
	}
	return nil
}

// expression parses operators that bind tighter than min.
func (p *parser) expression(min int) (node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	left, err := p.prefix()
	if err != nil {
		return nil, err
	}
	for chain := 0; ; chain++ {
		t := p.peek()
		bp := infix(t)
		if bp <= min {
			return left, nil
		}
		if chain >= maxChain {
			return nil, p.failAt(t, "has more than %d operators in a row", maxChain)
		}
		p.next()
		if left, err = p.operator(t, bp, left); err != nil {
			return nil, err
		}
	}
}

func (p *parser) operator(t token, bp int, left node) (node, error) {
	switch t.text {
	case "between":
		low, err := p.expression(bpCompare)
		if err != nil {
			return nil, err
		}
		if err := p.expectWord("and", "after the lower bound of between"); err != nil {
			return nil, err
		}
		high, err := p.expression(bpCompare)
		if err != nil {
			return nil, err
		}
		return &betweenNode{left, low, high}, nil
	case "in":
		return p.inTests(left)
	case "instance":
		if err := p.expectWord("of", "after instance"); err != nil {
			return nil, err
		}
		return p.instanceOf(left)
	}
	right, err := p.expression(bp)
	if err != nil {
		return nil, err
	}
	switch t.text {
	case "or":
		return &logicNode{left, right, true}, nil
	case "and":
		return &logicNode{left, right, false}, nil
	case "+", "-", "*", "/", "**":
		return &arithNode{t.text, left, right}, nil
	}
	return &compareNode{t.text, left, right}, nil
}

// typeNames maps what may follow "instance of" to the kinds that match.
var typeNames = map[string][]Kind{
	"number": {Number}, "string": {String}, "boolean": {Boolean}, "date": {Date}, "time": {Time},
	"date and time": {DateTime}, "days and time duration": {Duration}, "day-time-duration": {Duration},
	"years and months duration": {Period}, "year-month-duration": {Period}, "list": {List}, "context": {Context},
	"function": {Function}, "range": {Range}, "null": {Null},
	"Any": {Boolean, Number, String, List, Context, Date, Time, DateTime, Duration, Period, Range, Function},
}

func (p *parser) instanceOf(left node) (node, error) {
	start := p.peek()
	text, best, bestPos := "", "", p.pos
	for i := range 6 {
		t := p.peekAt(i)
		if t.kind != tokName && !t.is("-") {
			break
		}
		switch {
		case t.is("-"), strings.HasSuffix(text, "-"), text == "":
			text += t.text
		default:
			text += " " + t.text
		}
		if _, ok := typeNames[text]; ok {
			best, bestPos = text, p.pos+i+1
		}
	}
	if best == "" {
		return nil, p.failAt(start, "expected a type after instance of, found %s", start.describe())
	}
	p.pos = bestPos
	if p.peek().is("<") { // list<number>, context<a: string>: the parameter is not checked
		for open := 0; ; {
			t := p.next()
			if t.is("<") {
				open++
			} else if t.is(">") {
				if open--; open == 0 {
					break
				}
			} else if t.kind == tokEOF {
				return nil, p.failAt(t, "expected \">\" after a type parameter")
			}
		}
	}
	return &instanceNode{left, typeNames[best]}, nil
}

// inTests parses what follows "in": one test, or several in parentheses. It
// never goes back, so nested tests cost no more than their length.
func (p *parser) inTests(left node) (node, error) {
	if !p.peek().is("(") {
		t, err := p.test(bpCompare)
		if err != nil {
			return nil, err
		}
		return &inNode{left, []*testNode{t}}, nil
	}
	p.next()
	var tests []*testNode
	for {
		t, err := p.test(bpLowest)
		if err != nil {
			return nil, err
		}
		if p.peek().is("..") && t.op == "" && len(tests) == 0 {
			r, err := p.rangeTail(t.rhs, false)
			if err != nil {
				return nil, err
			}
			return &inNode{left, []*testNode{{rhs: r}}}, nil
		}
		tests = append(tests, t)
		if !p.peek().is(",") {
			break
		}
		p.next()
	}
	if err := p.expectOp(")", "after the tests of in"); err != nil {
		return nil, err
	}
	if len(tests) == 1 && tests[0].op == "" {
		// A plain parenthesis may go on: x in (a).b, x in (a + b) * 2.
		rhs, err := p.postfix(&groupNode{tests[0].rhs})
		for bp := infix(p.peek()); err == nil && bp > bpCompare; bp = infix(p.peek()) {
			rhs, err = p.operator(p.next(), bp, rhs)
		}
		if err != nil {
			return nil, err
		}
		tests[0].rhs = rhs
	}
	return &inNode{left, tests}, nil
}

// test parses one unary test; min bounds the operators of a plain expression.
func (p *parser) test(min int) (*testNode, error) {
	if t := p.peek(); t.kind == tokOp && infix(t) == bpCompare {
		p.next()
		rhs, err := p.expression(bpCompare)
		if err != nil {
			return nil, err
		}
		return &testNode{op: t.text, rhs: rhs}, nil
	}
	outer := p.asked
	p.asked = false
	rhs, err := p.expression(min)
	asked := p.asked
	p.asked = outer
	if err != nil {
		return nil, err
	}
	return &testNode{rhs: rhs, asks: asked}, nil
}
