package feel

import (
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// prefix parses an operand with everything that sticks to it.
func (p *parser) prefix() (node, error) {
	t := p.peek()
	if t.is("-") {
		p.next()
		inner, err := p.expression(bpPower)
		if err != nil {
			return nil, err
		}
		if c, ok := inner.(*constNode); ok && c.v.kind == Number {
			d, _ := c.v.Number()
			return &constNode{NumberValue(new(apd.Decimal).Neg(d))}, nil
		}
		return &negateNode{inner}, nil
	}
	if t.kind == tokName {
		switch t.text {
		case "if":
			return p.conditional()
		case "for":
			return p.loop()
		case "some", "every":
			return p.quantifier()
		case "function":
			if p.peekAt(1).is("(") {
				return p.functionLiteral()
			}
		}
	}
	left, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.postfix(left)
}

func (p *parser) primary() (node, error) {
	t := p.next()
	switch t.kind {
	case tokNumber:
		d, err := parseNumber(t.text)
		if err != nil {
			return nil, p.failAt(t, "number %s is out of range", clip(t.text))
		}
		return &constNode{NumberValue(d)}, nil
	case tokString:
		return &constNode{StringValue(t.text)}, nil
	case tokTemporal:
		v, ok := parseTemporal(t.text)
		if !ok {
			return nil, p.failAt(t, "%q is no date, time, date and time or duration", clip(t.text))
		}
		return &constNode{v}, nil
	case tokQuoted:
		return p.name(t.text), nil
	case tokName:
		return p.nameOrCall(t)
	case tokOp:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			return p.bracket()
		case "]":
			return p.openRange()
		case "{":
			return p.context()
		case "?":
			p.asked = true
			return &askNode{}, nil
		}
	}
	return nil, p.failAt(t, "expected a value, found %s", t.describe())
}

func (p *parser) name(text string) node {
	for i := len(p.bound) - 1; i >= 0; i-- {
		if p.bound[i] == text {
			return &nameNode{text}
		}
	}
	if p.inItem == 0 {
		p.free[text] = true
	}
	return &nameNode{text}
}

// nameOrCall reads a literal word, a variable or a function call. Only names of
// built-in functions may hold spaces.
func (p *parser) nameOrCall(t token) (node, error) {
	switch t.text {
	case "true", "false":
		return &constNode{BoolValue(t.text == "true")}, nil
	case "null":
		return &constNode{}, nil
	}
	words, best, bestPos := t.text, "", 0
	for i := 0; ; i++ {
		if p.peekAt(i).is("(") {
			if _, ok := builtins[words]; ok {
				best, bestPos = words, p.pos+i
			}
		}
		if i >= 5 || p.peekAt(i).kind != tokName {
			break
		}
		words += " " + p.peekAt(i).text
	}
	if best != "" {
		p.pos = bestPos
		return p.call(best)
	}
	if reserved[t.text] {
		return nil, p.failAt(t, "expected a value, found the word %q", t.text)
	}
	if p.peek().is("(") {
		return p.call(t.text)
	}
	return p.name(t.text), nil
}

// call parses the arguments of a function; the next token is "(".
func (p *parser) call(name string) (node, error) {
	args, names, err := p.arguments()
	if err != nil {
		return nil, err
	}
	c := &callNode{name: name, args: args, names: names}
	if fns := builtins[name]; fns != nil {
		c.builtin = matchBuiltin(fns, len(args), names)
	}
	return c, nil
}

func (p *parser) arguments() (args []node, names []string, err error) {
	if err := p.expectOp("(", "before arguments"); err != nil {
		return nil, nil, err
	}
	for !p.peek().is(")") {
		name := ""
		if words, n := p.wordsBefore(":"); n > 0 {
			name = words
			p.pos += n + 1
		}
		if (name != "") != (names != nil) && len(args) > 0 {
			return nil, nil, p.failAt(p.peek(), "named and positional arguments are mixed")
		}
		if name != "" {
			names = append(names, name)
		}
		arg, err := p.expression(bpLowest)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, arg)
		if !p.peek().is(",") {
			break
		}
		p.next()
	}
	return args, names, p.expectOp(")", "after arguments")
}

// wordsBefore joins the names that stand directly before an operator.
func (p *parser) wordsBefore(op string) (words string, n int) {
	var parts []string
	for {
		t := p.peekAt(n)
		if t.kind == tokName || t.kind == tokQuoted {
			parts = append(parts, t.text)
			n++
			continue
		}
		if n > 0 && t.is(op) {
			return strings.Join(parts, " "), n
		}
		return "", 0
	}
}

// properties of temporal values and ranges whose names hold a space.
var spacedProperties = map[string]string{"time": "offset", "start": "included", "end": "included"}

func (p *parser) postfix(left node) (node, error) {
	for chain := 0; ; chain++ {
		t := p.peek()
		if chain > maxChain {
			return nil, p.failAt(t, "has more than %d steps in a row", maxChain)
		}
		switch {
		case t.is("."):
			p.next()
			key := p.next()
			if key.kind != tokName && key.kind != tokQuoted {
				return nil, p.failAt(key, "expected a name after \".\", found %s", key.describe())
			}
			name := key.text
			if second, ok := spacedProperties[name]; ok && p.peek().word(second) {
				p.next()
				name += " " + second
			}
			if p.peek().is("(") {
				args, names, err := p.arguments()
				if err != nil {
					return nil, err
				}
				left = &invokeNode{&pathNode{left, name}, args, names}
				continue
			}
			left = &pathNode{left, name}
		case t.is("["):
			if p.endsRange() {
				return left, nil
			}
			p.next()
			p.inItem++
			cond, err := p.expression(bpLowest)
			p.inItem--
			if err != nil {
				return nil, err
			}
			if err := p.expectOp("]", "after a filter"); err != nil {
				return nil, err
			}
			left = newFilter(left, cond)
		case t.is("("):
			switch left.(type) {
			case *groupNode, *invokeNode, *filterNode:
			default:
				return left, nil
			}
			args, names, err := p.arguments()
			if err != nil {
				return nil, err
			}
			left = &invokeNode{left, args, names}
		default:
			return left, nil
		}
	}
}

// endsRange says whether the "[" ahead closes an open range such as [1..5[.
func (p *parser) endsRange() bool {
	t := p.peekAt(1)
	switch t.kind {
	case tokEOF:
		return true
	case tokOp:
		return t.is(")") || t.is("]") || t.is("}") || t.is(",") || t.is("=") || t.is("!=")
	case tokName:
		return reserved[t.text] && t.text != "if" && t.text != "for" && t.text != "some" && t.text != "every" && t.text != "function"
	}
	return false
}

// parenthesis parses (x), or a range that starts open: (1..5].
func (p *parser) parenthesis() (node, error) {
	inner, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	if p.peek().is("..") {
		return p.rangeTail(inner, false)
	}
	if err := p.expectOp(")", "to close the parenthesis"); err != nil {
		return nil, err
	}
	if c, ok := inner.(*constNode); ok {
		return c, nil
	}
	return &groupNode{inner}, nil
}

func (p *parser) openRange() (node, error) {
	from, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	if !p.peek().is("..") {
		return nil, p.failAt(p.peek(), "expected \"..\" in a range, found %s", p.peek().describe())
	}
	return p.rangeTail(from, false)
}

func (p *parser) rangeTail(from node, closed bool) (node, error) {
	p.next() // ..
	to, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	t := p.next()
	switch {
	case t.is("]"):
		return &rangeNode{from, to, closed, true}, nil
	case t.is(")"), t.is("["):
		return &rangeNode{from, to, closed, false}, nil
	}
	return nil, p.failAt(t, "expected \"]\", \")\" or \"[\" after a range, found %s", t.describe())
}

// bracket parses a list, or a range that starts closed: [1..5].
func (p *parser) bracket() (node, error) {
	var items []node
	for !p.peek().is("]") {
		item, err := p.expression(bpLowest)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 && p.peek().is("..") {
			return p.rangeTail(item, true)
		}
		items = append(items, item)
		if !p.peek().is(",") {
			break
		}
		p.next()
	}
	return &listNode{items}, p.expectOp("]", "to close the list")
}

func (p *parser) context() (node, error) {
	c := &contextNode{}
	bound := len(p.bound)
	defer func() { p.bound = p.bound[:bound] }()
	for !p.peek().is("}") {
		t := p.peek()
		key := ""
		switch {
		case t.kind == tokString || t.kind == tokQuoted:
			key = t.text
			p.next()
		default:
			words, n := p.wordsBefore(":")
			if n == 0 {
				return nil, p.failAt(t, "expected a key in a context, found %s", t.describe())
			}
			key = words
			p.pos += n
		}
		if err := p.expectOp(":", "after a key of a context"); err != nil {
			return nil, err
		}
		value, err := p.expression(bpLowest)
		if err != nil {
			return nil, err
		}
		c.keys, c.values = append(c.keys, key), append(c.values, value)
		p.bound = append(p.bound, key)
		if !p.peek().is(",") {
			break
		}
		p.next()
	}
	return c, p.expectOp("}", "to close the context")
}
