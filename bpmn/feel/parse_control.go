package feel

func (p *parser) conditional() (node, error) {
	p.next()
	cond, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	if err := p.expectWord("then", "after the condition of if"); err != nil {
		return nil, err
	}
	then, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	if err := p.expectWord("else", "after the first branch of if"); err != nil {
		return nil, err
	}
	other, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	return &ifNode{cond, then, other}, nil
}

// iterators parses "x in xs, y in ys"; the names stay bound for the caller.
func (p *parser) iterators() ([]iterator, error) {
	var out []iterator
	for {
		t := p.next()
		if t.kind != tokName && t.kind != tokQuoted || reserved[t.text] && t.kind == tokName {
			return nil, p.failAt(t, "expected the name of a loop variable, found %s", t.describe())
		}
		if err := p.expectWord("in", "after a loop variable"); err != nil {
			return nil, err
		}
		over, err := p.expression(bpLowest)
		if err != nil {
			return nil, err
		}
		it := iterator{name: t.text, over: over}
		if p.peek().is("..") {
			p.next()
			if it.to, err = p.expression(bpLowest); err != nil {
				return nil, err
			}
		}
		out = append(out, it)
		p.bound = append(p.bound, t.text)
		if !p.peek().is(",") {
			return out, nil
		}
		p.next()
	}
}

func (p *parser) loop() (node, error) {
	p.next()
	bound := len(p.bound)
	defer func() { p.bound = p.bound[:bound] }()
	its, err := p.iterators()
	if err != nil {
		return nil, err
	}
	if err := p.expectWord("return", "after the lists of for"); err != nil {
		return nil, err
	}
	p.bound = append(p.bound, "partial")
	body, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	return &forNode{its, body}, nil
}

func (p *parser) quantifier() (node, error) {
	every := p.next().text == "every"
	bound := len(p.bound)
	defer func() { p.bound = p.bound[:bound] }()
	its, err := p.iterators()
	if err != nil {
		return nil, err
	}
	if err := p.expectWord("satisfies", "after the lists of some or every"); err != nil {
		return nil, err
	}
	cond, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	return &quantifierNode{its, cond, every}, nil
}

// functionLiteral parses function(a, b) body; a type after a parameter is skipped.
func (p *parser) functionLiteral() (node, error) {
	p.next()
	p.next()
	bound := len(p.bound)
	defer func() { p.bound = p.bound[:bound] }()
	var params []string
	for !p.peek().is(")") {
		t := p.next()
		if t.kind != tokName && t.kind != tokQuoted {
			return nil, p.failAt(t, "expected the name of a parameter, found %s", t.describe())
		}
		params = append(params, t.text)
		if p.peek().is(":") {
			for !p.peek().is(",") && !p.peek().is(")") && p.peek().kind != tokEOF {
				p.next()
			}
		}
		if !p.peek().is(",") {
			break
		}
		p.next()
	}
	if err := p.expectOp(")", "after parameters"); err != nil {
		return nil, err
	}
	p.bound = append(p.bound, params...)
	body, err := p.expression(bpLowest)
	if err != nil {
		return nil, err
	}
	return &functionNode{params, body}, nil
}
