package core

import (
	"fmt"
	"slices"
)

// maxCallDepth bounds nested call activities: a process that calls itself ends in an incident.
const maxCallDepth = 1000

// activateCall starts the called process, in its latest version or the latest with a tag.
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
	p := c.calledVersion(id, spec.tag)
	if p == nil {
		tagged := ""
		if spec.tag != "" {
			tagged = fmt.Sprintf(" and version tag '%s'", spec.tag)
		}
		fail(CalledElementError, fmt.Sprintf("Expected process with BPMN process id '%s'%s to be deployed, but not found.", id, tagged))
		return
	}
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

// calledVersion is the latest version of a process, or the latest that has the tag; nil when there is none.
func (c *Core) calledVersion(id, tag string) *Process {
	for _, p := range slices.Backward(c.processes[id]) {
		if tag == "" || p.Tag == tag {
			return p
		}
	}
	return nil
}

// callDone continues the call activity after the child completed.
func (c *Core) callDone(e *Element, child *Instance) {
	if e.Node.called.allToParent || len(e.Node.outputs) > 0 {
		e.doc = child.Root.visible(nil)
	}
	e.State = Completing
	c.push(opComplete, e)
}
