package core

import "fmt"

// maxCallDepth bounds nested call activities: a process that calls itself ends in an incident.
const maxCallDepth = 1000

// activateCall starts the called process, in its latest version.
func (c *Core) activateCall(e *Element) {
	spec := e.Node.called
	fail := func(t ErrorType, text string) {
		c.unsubscribe(e)
		c.raise(e, opActivate, t, text)
	}
	id, err := spec.process.text(c, e.lookup)
	if err != nil {
		fail(ExtractValueError, err.Error())
		return
	}
	versions := c.processes[id]
	if len(versions) == 0 {
		fail(CalledElementError, fmt.Sprintf("Expected process with BPMN process id '%s' to be deployed, but not found.", id))
		return
	}
	p := versions[len(versions)-1]
	if p.root.start == nil {
		fail(CalledElementError, fmt.Sprintf("Expected process with BPMN process id '%s' to have a none start event, but not found.", id))
		return
	}
	if e.Inst.Depth+1 >= maxCallDepth {
		fail(CalledElementError, fmt.Sprintf("The call activity has reached the maximum depth of %d. This is likely due to a recursive call. Cancel the root process instance if this was unintentional. Otherwise, consider increasing the maximum depth, or use process instance modification to adjust the process instance.", maxCallDepth))
		return
	}
	e.State = Active
	child := c.newInstance(p, e)
	child.start = p.root.start
	e.child = child
	if spec.allFromParent {
		c.mergeLocal(child.Root, e.visible(nil))
		return
	}
	c.mergeLocal(child.Root, c.throwVars(e))
}

// callDone continues the call activity after the child completed.
func (c *Core) callDone(e *Element, child *Instance) {
	if e.Node.called.allToParent || len(e.Node.outputs) > 0 {
		e.doc = child.Root.visible(nil)
	}
	e.State = Completing
	c.push(opComplete, e)
}
