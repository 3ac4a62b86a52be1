package core

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// loopState counts the iterations of a multi-instance body.
type loopState struct {
	total, created, completed, terminated int
	output                                []json.RawMessage
}

// activateBody evaluates the input collection and starts the iterations: all, or the first.
func (c *Core) activateBody(e *Element) {
	items, err := c.collection(e)
	if err != nil {
		c.raise(e, opActivate, ExtractValueError, err.Error())
		return
	}
	if err := c.subscribe(e); err != nil {
		c.raise(e, opActivate, ExtractValueError, err.Error())
		return
	}
	spec := e.Node.loop
	e.State = Active
	e.loop = &loopState{total: len(items)}
	if spec.output != "" {
		e.loop.output = make([]json.RawMessage, len(items))
		for i := range e.loop.output {
			e.loop.output[i] = json.RawMessage("null")
		}
		c.setLocal(e, spec.output, jsonList(e.loop.output))
	}
	if len(items) == 0 {
		e.State = Completing
		c.push(opComplete, e)
		return
	}
	n := len(items)
	if spec.sequential {
		n = 1
	}
	for i := range n {
		c.iterate(e, items[i], i+1)
	}
}

func (c *Core) collection(body *Element) ([]json.RawMessage, error) {
	x := body.Node.loop.collection
	v, err := x.eval(c, body.lookup)
	if err != nil {
		return nil, err
	}
	if v.kind != "ARRAY" {
		return nil, x.wrongType("ARRAY", v)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(v.raw, &items); err != nil {
		return nil, fmt.Errorf("input collection %q: %w", x.src, err)
	}
	return items, nil
}

// iterate creates iteration index (1-based) with its local variables.
func (c *Core) iterate(body *Element, item json.RawMessage, index int) {
	in := c.newElement(body.Node, body)
	in.Inner, in.loopIndex = true, index
	body.loop.created++
	if el := body.Node.loop.element; el != "" {
		c.setLocal(in, el, item)
	}
	c.setLocal(in, "loopCounter", json.RawMessage(strconv.Itoa(index)))
	c.push(opActivate, in)
}

// completeIteration collects the output of a finished iteration and decides
// whether the body goes on.
func (c *Core) completeIteration(e *Element) {
	body, spec := e.Parent, e.Node.loop
	if spec.outElement != nil {
		v, err := spec.outElement.eval(c, e.lookup)
		if err != nil {
			c.raise(e, opComplete, ExtractValueError, err.Error())
			return
		}
		if i := e.loopIndex - 1; i < len(body.loop.output) {
			body.loop.output[i] = v.raw
		}
		c.setLocal(body, spec.output, jsonList(body.loop.output))
	}
	done := false
	if spec.condition != nil {
		ok, err := spec.condition.boolean(c, body.loopLookup(e))
		if err != nil {
			c.raise(e, opComplete, ExtractValueError, err.Error())
			return
		}
		done = ok
	}
	var items []json.RawMessage
	more := !done && spec.sequential && e.loopIndex < body.loop.total
	if more {
		var err error
		if items, err = c.collection(body); err != nil {
			c.raise(e, opComplete, ExtractValueError, err.Error())
			return
		}
		more = e.loopIndex < len(items)
	}
	c.unsubscribe(e)
	c.remember(e)
	c.finish(e, Completed)
	body.loop.completed++
	switch {
	case done:
		for body.first != nil {
			c.terminate(body.first)
			body.loop.terminated++
		}
	case more:
		c.iterate(body, items[e.loopIndex], e.loopIndex+1)
		return
	case body.children > 0:
		return
	}
	body.State = Completing
	c.push(opComplete, body)
}

// loopLookup adds the counters of a completion condition; the iteration that completes counts as completed.
func (body *Element) loopLookup(e *Element) func(string) (json.RawMessage, bool) {
	l := body.loop
	return func(name string) (json.RawMessage, bool) {
		n := 0
		switch name {
		case "numberOfInstances":
			n = l.total
		case "numberOfActiveInstances":
			n = body.children - 1
		case "numberOfCompletedInstances":
			n = l.completed + 1
		case "numberOfTerminatedInstances":
			n = l.terminated
		default:
			return e.lookup(name)
		}
		return json.RawMessage(strconv.Itoa(n)), true
	}
}

// completeBody hands the output collection to the scope outside and moves on.
func (c *Core) completeBody(e *Element) {
	if spec := e.Node.loop; spec.output != "" {
		if v, ok := e.vars[spec.output]; ok {
			c.propagate(e.Parent, Doc{spec.output: v.Value})
		}
	}
	c.leave(e)
}
