package feel

import "github.com/cockroachdb/apd/v3"

// Computes says whether an expression calculates rather than looks at a result:
// arithmetic, or an order comparison with a number other than 0 and 1. Text
// concatenation, positions and counts against zero are not calculation.
func (e *Expr) Computes() bool { return computes(e.root) }

func computes(n node) bool {
	found := false
	walk(n, func(n node) {
		switch x := n.(type) {
		case *arithNode:
			if x.op != "+" || !isText(x.left) && !isText(x.right) {
				found = true
			}
		case *compareNode:
			if x.op != "=" && x.op != "!=" && (isThreshold(x.left) || isThreshold(x.right)) {
				found = true
			}
		case *betweenNode:
			found = true
		case *rangeNode:
			found = true
		case *testNode:
			if x.op != "" && x.op != "=" && x.op != "!=" && isThreshold(x.rhs) {
				found = true
			}
		}
	})
	return found
}

func isText(n node) bool {
	switch x := n.(type) {
	case *constNode:
		return x.v.kind == String
	case *callNode:
		return x.name == "string" || x.name == "string join"
	case *arithNode:
		return isText(x.left) || isText(x.right)
	case *groupNode:
		return isText(x.inner)
	}
	return false
}

func isThreshold(n node) bool {
	c, ok := n.(*constNode)
	if !ok {
		return false
	}
	d, ok := c.v.Number()
	return !ok && c.v.kind != String || ok && !d.IsZero() && d.Cmp(apd.New(1, 0)) != 0
}

// walk calls visit for n and everything below it.
func walk(n node, visit func(node)) {
	if n == nil {
		return
	}
	visit(n)
	all := func(nodes ...node) {
		for _, c := range nodes {
			if c != nil {
				walk(c, visit)
			}
		}
	}
	iterators := func(its []iterator) {
		for _, it := range its {
			all(it.over, it.to)
		}
	}
	switch x := n.(type) {
	case *groupNode:
		all(x.inner)
	case *listNode:
		all(x.items...)
	case *contextNode:
		all(x.values...)
	case *rangeNode:
		all(x.from, x.to)
	case *logicNode:
		all(x.left, x.right)
	case *negateNode:
		all(x.inner)
	case *ifNode:
		all(x.cond, x.then, x.other)
	case *instanceNode:
		all(x.left)
	case *forNode:
		iterators(x.its)
		all(x.body)
	case *quantifierNode:
		iterators(x.its)
		all(x.cond)
	case *pathNode:
		all(x.left)
	case *filterNode:
		all(x.left, x.cond)
	case *compareNode:
		all(x.left, x.right)
	case *betweenNode:
		all(x.x, x.low, x.high)
	case *inNode:
		all(x.left)
		for _, t := range x.tests {
			visit(t)
			all(t.rhs)
		}
	case *arithNode:
		all(x.left, x.right)
	case *functionNode:
		all(x.body)
	case *callNode:
		all(x.args...)
	case *invokeNode:
		all(x.fn)
		all(x.args...)
	}
}

// eval makes a test a node for walk alone; inNode evaluates it with its value.
func (t *testNode) eval(m *machine) Value { return m.eval(t.rhs) }
