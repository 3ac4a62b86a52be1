package core

import (
	"fmt"

	"github.com/vitrip/journeyman/bpmn"
)

// activate runs the activation step of e: input mappings, subscriptions, then
// what its kind does.
func (c *Core) activate(e *Element) {
	n := e.Node
	if e.Body {
		c.activateBody(e)
		return
	}
	if err := c.applyInputs(e); err != nil {
		c.raise(e, opActivate, IOMappingError, err.Error())
		return
	}
	if n.Kind == bpmn.KindExclusiveGateway || n.Kind == bpmn.KindInclusiveGateway {
		c.activateGateway(e)
		return
	}
	var spec *jobValues
	if n.job != nil {
		var err error
		if spec, err = c.evalJob(e); err != nil {
			c.raise(e, opActivate, ExtractValueError, err.Error())
			return
		}
	}
	if !e.triggered {
		if err := c.subscribe(e); err != nil {
			c.raise(e, opActivate, ExtractValueError, err.Error())
			return
		}
	}
	switch {
	case n.Parent == nil:
		c.activateProcess(e)
	case spec != nil:
		e.State = Active
		c.createJob(e, spec)
	case n.native:
		if err := c.createUserTask(e); err != nil {
			c.unsubscribe(e)
			c.raise(e, opActivate, ExtractValueError, err.Error())
			return
		}
		e.State = Active
	case n.Kind == bpmn.KindSubProcess:
		e.State = Active
		c.activateSubprocess(e)
	case n.called != nil:
		c.activateCall(e)
	case n.script != nil:
		c.activateScript(e)
	case n.Kind == bpmn.KindEventBasedGateway:
		e.State = Active
	case n.isCatch && !e.triggered && n.Kind != bpmn.KindStartEvent && n.event != bpmn.EventLink:
		e.State = Active // waits for its trigger
	case n.event == bpmn.EventError && n.Kind == bpmn.KindEndEvent:
		c.throwErrorEvent(e)
	case n.event == bpmn.EventEscalation && !n.isCatch:
		c.throwEscalation(e)
	case n.event == bpmn.EventSignal && !n.isCatch:
		c.throwSignal(e)
	case n.event == bpmn.EventCompensation && !n.isCatch:
		e.State = Active
		c.compensate(e)
	default:
		e.State = Active
		c.push(opComplete, e)
	}
}

func (c *Core) activateProcess(e *Element) {
	e.State = Active
	inst := e.Inst
	begin, doc, starts := inst.start, inst.startDoc, inst.starts
	inst.start, inst.startDoc, inst.starts = nil, nil, nil // they name elements of this version: a migration must not find them
	if len(starts) > 0 {
		c.startAt(e, starts, nil)
		return
	}
	s := c.newElement(begin, e)
	s.doc, s.triggered = doc, true
	c.push(opActivate, s)
}

func (c *Core) activateSubprocess(e *Element) {
	n := e.Node
	if len(e.startNodes) > 0 {
		nodes, given := e.startNodes, e.given
		e.startNodes, e.given = nil, nil
		c.startAt(e, nodes, given)
		return
	}
	if e.espStart != nil {
		s := c.newElement(e.espStart, e)
		s.doc, s.triggered = e.doc, true
		e.espStart, e.doc = nil, nil
		c.push(opActivate, s)
		return
	}
	c.enter(n.start, e)
}

func (c *Core) activateScript(e *Element) {
	v, err := e.Node.script.eval(c, e.lookup)
	if err != nil {
		c.unsubscribe(e)
		c.raise(e, opActivate, ExtractValueError, err.Error())
		return
	}
	e.State = Active
	e.doc = Doc{e.Node.resultVariable: v.raw}
	c.push(opComplete, e)
}

// activateGateway decides the flows of an exclusive or inclusive gateway.
func (c *Core) activateGateway(e *Element) {
	flows, incident, err := c.decide(e)
	if err != nil {
		c.raise(e, opActivate, incident, err.Error())
		return
	}
	e.State, e.chosen = Active, flows
	c.push(opComplete, e)
}

// decide evaluates the conditions of a gateway's flows in document order.
func (c *Core) decide(e *Element) ([]*Flow, ErrorType, error) {
	n := e.Node
	if len(n.out) == 0 {
		return nil, "", nil
	}
	if len(n.out) == 1 && n.out[0].condition == nil {
		return n.out, "", nil
	}
	exclusive := n.Kind == bpmn.KindExclusiveGateway
	var taken []*Flow
	for _, f := range n.out {
		if f == n.def {
			continue
		}
		if f.condition == nil {
			if !exclusive {
				taken = append(taken, f)
			}
			continue
		}
		ok, err := f.condition.boolean(c, e.lookup)
		if err != nil {
			return nil, ExtractValueError, err
		}
		if ok {
			taken = append(taken, f)
			if exclusive {
				return taken, "", nil
			}
		}
	}
	if len(taken) > 0 {
		return taken, "", nil
	}
	if n.def != nil {
		return []*Flow{n.def}, "", nil
	}
	return nil, ConditionError, fmt.Errorf("Expected at least one condition to evaluate to true, or to have a default flow") //nolint:staticcheck,revive // Zeebe's wording
}
